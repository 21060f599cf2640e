"""The page's scripts without a browser: they decode what Python packed, and sort what our engine sees."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from page_models import SETTINGS, mixed_table, ring

from splatmeter.gaussians import gaussians
from splatmeter.ops import LOG_SCALES, MEANS, OPACITY_LOGITS, Pinhole, Table
from splatmeter.page import html_file, quantise
from splatmeter.page.viewpoints import record

WEB = Path(html_file.__file__).parent / "web"
pytestmark = pytest.mark.skipif(
    not shutil.which("node"),
    reason="node is not installed: the page's scripts were not run outside a browser",
)


def camera_and_seen(table: Table, camera: Pinhole) -> dict[str, object]:
    """With the rows that our readable engine draws from there."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing tells what is to be seen")
    from splatmeter.backends.reference import projection

    arrays = (torch.as_tensor(table.geometry), torch.as_tensor(table.harmonics))
    seen = projection.project(*arrays, camera, SETTINGS).keep.nonzero()[:, 0]
    told = record(camera, np.zeros(3))
    return {**told, "translation": camera.translation.tolist(), "seen": seen.tolist()}


@pytest.mark.parametrize("script", sorted(WEB.glob("*.js")), ids=lambda path: path.name)
def test_every_script_is_javascript_by_itself(script: Path) -> None:
    checked = subprocess.run(["node", "--check", str(script)], capture_output=True, text=True, check=False)
    assert not checked.returncode, checked.stderr


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_scripts_do_what_they_say(degree: int, tmp_path: Path) -> None:
    table = mixed_table(600, degree)
    table.geometry[:, MEANS] -= np.median(table.geometry[:, MEANS], axis=0)
    taken = html_file.packed_text(table, degree)
    restored = quantise.restored(taken.packed)
    restored.geometry[:, MEANS] -= taken.packed.origin
    turned = quantise.to_differences(restored.harmonics.reshape(-1, 16, 3).astype(np.float64))
    given = {
        "header": taken.packed.header,
        "text": taken.text,
        "means": restored.geometry[:, MEANS].tolist(),
        "logScales": restored.geometry[:, LOG_SCALES].tolist(),
        "opacities": gaussians.sigmoid(restored.geometry[:, OPACITY_LOGITS]).tolist(),
        "harmonics": turned.tolist(),
        "cameras": [camera_and_seen(restored, camera) for camera in ring(3)],
    }
    assert SETTINGS.sh_degree == 3 and all(len(camera["seen"]) > 50 for camera in given["cameras"])
    (tmp_path / "given.json").write_text(json.dumps(given))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for path in [*WEB.glob("*.js"), Path(__file__).parent / "scripts.test.mjs"]:
        shutil.copy(path, tmp_path)
    answer = subprocess.run(
        ["node", "--test", "scripts.test.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stdout[-3000:]
