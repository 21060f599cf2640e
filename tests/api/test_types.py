"""What a type checker sees of the library: complete types, and mistakes found while they are typed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import splatmeter

SOURCE = Path(splatmeter.__file__).parents[1]

SCRIPT = '''
from pathlib import Path

import numpy as np
from typing_extensions import assert_type

from splatmeter import api

scene = api.load_scene("garden", eval=True, resolution=4)
shared: api.TrainOptions = {"eval": True, "iterations": 7000, "save_iterations": [1000, 7000]}
again: api.TrainOptions = {**shared, "start_checkpoint": "a.safetensors"}
run = api.train(scene.source, "output/garden", preset="fast", **again)
for event in run:
    if isinstance(event, api.Progress):
        assert_type(event.loss, float)
    elif isinstance(event, api.Evaluated):
        print(event.metrics["psnr"])
assert_type(api.train("garden", Path("output")).watch(), api.Finished)

model = api.load_model("output/garden", device="cpu")
assert_type(model, api.Model)
camera = api.Camera.look_at((4, 0, 2), scene.focus, scene.up, width=640, height=480, field_of_view=55)
same = api.Camera.from_camera_to_world(camera.camera_to_world, **camera.intrinsics)
picture = model.render(same, background=(1, 1, 1))
print(picture.pixels.shape, picture.color.mean(), picture.alpha.max(), np.nanmin(picture.depth))
near = model.select(np.linalg.norm(model.means, axis=1) < 2)
other = api.Model(near.means, near.scales, near.rotations, near.opacities, near.harmonics)
assert_type(other.save("near.spz", "spz3"), Path)
views = [view.camera for view in scene.train]
assert_type(api.orbit(views, 10), list[api.Camera])
assert_type(api.evaluate(model, scene.test).worst, str)
'''

MISTAKES = {
    'api.train("garden", "output", iteration=100)': 'No parameter named "iteration"',
    'api.train("garden", "output", iterations="many")': "reportArgumentType",
    'api.train("garden", "output", densification="best")': "reportArgumentType",
    'api.train("garden", "output", preset="slow")': "reportArgumentType",
    'api.load_scene("garden", resolutions=4)': 'No parameter named "resolutions"',
    "model.render(np.eye(4))": "reportArgumentType",
    'model.save("a.ply", "obj")': "reportArgumentType",
    "model.means = np.zeros((1, 3))": "reportAttributeAccessIssue",
}


def pyright(folder: Path, *words: str) -> dict[str, Any]:
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("types were not checked: pyright is not installed (pip install '.[test]')")
    ended = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(ended.stdout)
    except ValueError:
        pytest.skip(f"types were not checked: pyright does not run here ({ended.stderr.strip()[-200:]})")


@pytest.mark.slow
def test_a_users_script_is_right_under_the_strictest_rules_and_mistakes_are_found(tmp_path: Path) -> None:
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.10", "extraPaths": [str(SOURCE)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "right.py").write_text(SCRIPT)
    wrong = SCRIPT + "\n".join(MISTAKES) + "\n"
    (tmp_path / "wrong.py").write_text(wrong)
    found = pyright(tmp_path)["generalDiagnostics"]
    assert [entry for entry in found if entry["file"].endswith("right.py")] == []
    lines = wrong.split("\n")
    told = {lines[entry["range"]["start"]["line"]]: f"{entry['message']} {entry['rule']}" for entry in found}
    for mistake, word in MISTAKES.items():
        assert word in told.get(mistake, "nothing"), mistake


@pytest.mark.slow
def test_the_types_of_the_library_are_complete(tmp_path: Path) -> None:
    """As pyright counts them; the package says with py.typed that it has types."""
    assert (SOURCE / "splatmeter" / "py.typed").is_file()
    report = pyright(tmp_path, "--verifytypes", "splatmeter.api", "--ignoreexternal")["typeCompleteness"]
    assert report["pyTypedPath"], "the package was not found as one with types"
    counts = report["exportedSymbolCounts"]
    known, every = counts["withKnownType"], sum(counts.values())
    unknown = [
        symbol["name"] for symbol in report["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]
    ]
    assert known > 100
    assert known / every > 0.99, f"{known} of {every}; without a known type: {unknown[:10]}"
