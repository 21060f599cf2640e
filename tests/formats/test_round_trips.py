"""What is written is read again within the steps of its format, drawn by the filter that it was made for."""

from __future__ import annotations

import dataclasses
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from format_models import matched, sog, sog_parts, some_table, turned_by

from splatmeter.errors import MissingExtra, MissingFile, UsageError
from splatmeter.formats import gltf, motion, zstd
from splatmeter.formats.registry import default_form, read_model, write_model
from splatmeter.gaussians import gaussians, ply
from splatmeter.gaussians.crop import inside
from splatmeter.gaussians.marks import MIP, PLAIN
from splatmeter.ops import FILTER_3D, LOG_SCALES, MEANS, OPACITY_LOGITS, RasterSettings, Table

FORMS = {
    "compressed": "m.compressed.ply",
    "spz": "m.spz",
    "spz3": "m3.spz",
    "splat": "m.splat",
    "gltf": "m.glb",
}


@dataclasses.dataclass(frozen=True)
class Steps:
    """How far a value may be from the one that was written: half a step of the format, and a little more."""

    mean: float
    log_scale: float
    opacity: float
    angle: float
    color: float
    harmonic: float


STEPS = {
    "compressed": Steps(0.02, 0.005, 0.002, 0.004, 0.02, 0.0157),
    "spz": Steps(0.00013, 0.032, 0.002, 0.005, 0.0132, 0.0157),
    "spz3": Steps(0.00013, 0.032, 0.002, 0.005, 0.0132, 0.0157),
    "splat": Steps(0, 1e-6, 0.002, 0.02, 0.007, 1),
    "gltf": Steps(0, 1e-6, 1e-7, 3e-3, 0, 0),
}


def fused_of(table: Table, folder: Path) -> Table:
    ply.write_fused(folder / "fused.ply", table, 3)
    return ply.read_model(folder / "fused.ply").table


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_a_model_comes_back_within_the_steps_of_its_format(tmp_path: Path, form: str, degree: int) -> None:
    original = some_table(300, degree)
    path, step = tmp_path / FORMS[form], STEPS[form]
    write_model(path, form, original, degree, MIP)
    model = read_model(path)
    expected, found = fused_of(original, tmp_path), matched(model.table, original)
    away = np.abs(found.geometry - expected.geometry)
    assert away[:, MEANS].max() <= step.mean and away[:, LOG_SCALES].max() <= step.log_scale
    assert np.abs(gaussians.opacities(found) - gaussians.opacities(expected)).max() <= step.opacity
    assert turned_by(found, expected) <= step.angle
    brightest = {"splat": 1.77, "spz": 3.33, "spz3": 3.33}.get(form, np.inf)
    visible = np.clip(expected.harmonics[:, :3], -brightest, brightest)
    assert np.abs(found.harmonics[:, :3] - visible).max() <= step.color
    assert np.abs(found.harmonics[:, 3:] - expected.harmonics[:, 3:]).max() <= step.harmonic
    assert (model.sh_degree, model.nonfinite, model.filtered) == (0 if form == "splat" else degree, 0, False)
    assert not model.table.geometry[:, FILTER_3D].any()


@pytest.mark.parametrize("settings", [MIP, PLAIN, RasterSettings(kernel_size=0.25), None])
@pytest.mark.parametrize("form", FORMS)
def test_the_mark_survives_where_the_format_has_a_place_for_it(
    tmp_path: Path, form: str, settings: RasterSettings | None
) -> None:
    path = tmp_path / FORMS[form]
    notes = write_model(path, form, some_table(), 3, settings)
    told = read_model(path).settings()
    if form in ("compressed", "gltf"):
        assert told == settings and not notes
    elif form == "splat":
        assert told is None and bool(notes) == (settings is not None)
    else:  # one bit
        assert told == (MIP if settings is not None and settings.compensate else None)
        assert bool(notes) == (settings is not None and settings.kernel_size == 0.25)


@pytest.mark.parametrize("version", ["spz", "spz3"])
def test_spz_has_the_flag_that_others_look_for(tmp_path: Path, version: str) -> None:
    write_model(tmp_path / "m.spz", version, some_table(), 3, MIP)
    content = (tmp_path / "m.spz").read_bytes()
    start = content if version == "spz" else gzip.decompress(content)
    magic, number, count, degree, _, flags = struct.unpack_from("<4sIIBBB", start)
    assert (magic, number, count, degree, flags) == (b"NGSP", 4 if version == "spz" else 3, 300, 3, 1)


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    for form, name in FORMS.items():
        contents = set()
        for _ in range(2):
            write_model(tmp_path / name, form, some_table(), 3, MIP)
            contents.add((tmp_path / name).read_bytes())
        assert len(contents) == 1, form


@pytest.mark.parametrize("scale", [1e-3, 1, 300])
def test_spz_fits_its_positions_to_the_size_of_the_scene(tmp_path: Path, scale: float) -> None:
    original = some_table()
    original.geometry[:, MEANS] *= scale
    original.geometry[:, LOG_SCALES] += np.log(scale)
    original.geometry[:, FILTER_3D] *= scale
    assert write_model(tmp_path / "m.spz", "spz", original, 3, MIP) == []
    found = read_model(tmp_path / "m.spz").table
    away = np.abs(found.geometry[:, MEANS] - original.geometry[:, MEANS])
    assert away.max() <= 0.05 * np.median(gaussians.filtered_scales(original).max(axis=1))


def test_strays_do_not_cost_the_others_their_precision(tmp_path: Path) -> None:
    original = some_table(3000)
    original.geometry[7, 0] = 1e7
    (note,) = write_model(tmp_path / "m.spz", "spz", original, 3, MIP)
    found = read_model(tmp_path / "m.spz").table
    kept = np.delete(original.geometry, 7, axis=0)
    assert "1 Gaussians lie too far away" in note
    assert np.abs(found.geometry[:, MEANS] - kept[:, MEANS]).max() < 0.0002


def test_values_at_the_ends_stay_finite(tmp_path: Path) -> None:
    original = some_table(600)
    original.geometry[0, OPACITY_LOGITS], original.geometry[1, OPACITY_LOGITS] = 60, -60
    original.geometry[2, LOG_SCALES], original.geometry[3, LOG_SCALES] = -40, 8
    original.geometry[2:4, FILTER_3D] = 0
    original.geometry[4, 6:10] = 0
    original.geometry[256:512, :16] = original.geometry[256, :16]  # a chunk without extent
    original.harmonics[5] = 30
    for form, name in FORMS.items():
        write_model(tmp_path / name, form, original, 3, MIP)
        model = read_model(tmp_path / name)
        assert (model.table.count, model.nonfinite) == (600, 0), form


def test_zstd_missing_names_the_extra_and_the_way_round_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    write_model(tmp_path / "m.spz", "spz", some_table(), 3, MIP)
    monkeypatch.setattr(zstd.importlib, "import_module", absent)
    for work in (
        lambda: read_model(tmp_path / "m.spz"),
        lambda: write_model(tmp_path / "n.spz", "spz", some_table(), 3, MIP),
    ):
        with pytest.raises(MissingExtra, match=r"spz3.*splatmeter\[spz\]"):
            work()
    assert not (tmp_path / "n.spz").exists()
    write_model(tmp_path / "n.spz", "spz3", some_table(), 3, MIP)
    assert read_model(tmp_path / "n.spz").form == "SPZ 3"


# ---- glTF -------------------------------------------------------------------------------------------------
def test_gltf_with_its_arrays_beside_it_reads_as_the_glb_does(tmp_path: Path) -> None:
    write_model(tmp_path / "m.gltf", "gltf", some_table(), 3, MIP)
    write_model(tmp_path / "m.glb", "gltf", some_table(), 3, MIP)
    beside, inside_one = read_model(tmp_path / "m.gltf"), read_model(tmp_path / "m.glb")
    np.testing.assert_array_equal(beside.table.geometry, inside_one.table.geometry)
    np.testing.assert_array_equal(beside.table.harmonics, inside_one.table.harmonics)
    assert beside.form == "glTF" and beside.settings() == inside_one.settings() == MIP


def test_turning_a_model_turns_what_one_sees_of_its_colours() -> None:
    table, generator = some_table(20), np.random.default_rng(1)
    turn = motion.matrix(np.array([0.5, 0.1, -0.7, np.sqrt(1 - 0.75)]))
    before = table.harmonics.reshape(-1, 16, 3).astype(np.float64)
    covariances = _covariances(table)
    moved = some_table(20)
    motion.move(moved, turn, 2.0, np.array([1.0, 2.0, 3.0]))
    directions = generator.normal(size=(9, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    seen = np.einsum("dk,nkc->ndc", motion.basis(directions), before)
    turned = motion.basis(directions @ turn.T)
    after = np.einsum("dk,nkc->ndc", turned, moved.harmonics.reshape(-1, 16, 3).astype(np.float64))
    np.testing.assert_allclose(after, seen, atol=1e-5)
    np.testing.assert_allclose(_covariances(moved), 4 * turn @ covariances @ turn.T, atol=1e-5)
    expected = 2 * table.geometry[:, MEANS] @ turn.T + [1, 2, 3]
    np.testing.assert_allclose(moved.geometry[:, MEANS], expected, atol=1e-5)


def test_half_a_turn_is_what_turning_says_it_is() -> None:
    quick, slow = some_table(50), some_table(50)
    motion.half_turn(quick)
    motion.move(slow, np.diag([-1.0, -1.0, 1.0]), 1.0, np.zeros(3))
    np.testing.assert_allclose(quick.harmonics, slow.harmonics, atol=1e-6)
    np.testing.assert_allclose(quick.geometry[:, MEANS], slow.geometry[:, MEANS], atol=1e-6)
    assert turned_by(quick, slow) < 3e-3
    motion.half_turn(quick)
    assert turned_by(quick, some_table(50)) < 3e-3


def _covariances(table: Table) -> np.ndarray:
    axes = np.stack([motion.matrix(q) for q in gaussians.rotations(table)])  # [N, 3, 3]
    stretched = axes * gaussians.scales(table)[:, None, :]
    return stretched @ stretched.transpose(0, 2, 1)


def test_gltf_places_gaussians_where_its_nodes_say(tmp_path: Path) -> None:
    import json

    write_model(tmp_path / "m.gltf", "gltf", some_table(40), 3, MIP)
    plain = read_model(tmp_path / "m.gltf").table
    record = json.loads((tmp_path / "m.gltf").read_text())
    record["nodes"] = [
        {"children": [1, 2], "translation": [0, 5, 0]},
        {"mesh": 0, "scale": [2, 2, 2]},
        {"mesh": 0, "rotation": [0, 0, 1, 0]},
    ]
    (tmp_path / "m.gltf").write_text(json.dumps(record))
    twice = read_model(tmp_path / "m.gltf").table
    assert twice.count == 80
    sizes = [part.max() - part.min() for part in (twice.geometry[:40, 0], twice.geometry[40:, 0])]
    assert max(sizes) == pytest.approx(2 * min(sizes), rel=1e-5)
    larger = twice.geometry[:40] if sizes[0] > sizes[1] else twice.geometry[40:]
    np.testing.assert_allclose(larger[:, MEANS], 2 * plain.geometry[:, MEANS] + [0, -5, 0], atol=1e-4)
    np.testing.assert_allclose(larger[:, LOG_SCALES], plain.geometry[:, LOG_SCALES] + np.log(2), atol=1e-5)


def test_glb_names_what_the_extension_demands(tmp_path: Path) -> None:
    import json

    write_model(tmp_path / "m.glb", "gltf", some_table(), 2, MIP)
    content = (tmp_path / "m.glb").read_bytes()
    magic, version, whole, length, kind = struct.unpack_from("<4sIII4s", content)
    assert (magic, version, whole, kind) == (b"glTF", 2, len(content), b"JSON") and length % 4 == 0
    record = json.loads(content[20 : 20 + length])
    primitive = record["meshes"][0]["primitives"][0]
    assert primitive["mode"] == 0 and record["extensionsUsed"] == [gltf.EXTENSION]
    assert {"POSITION", f"{gltf.EXTENSION}:ROTATION", f"{gltf.EXTENSION}:SH_DEGREE_2_COEF_4"} <= set(
        primitive["attributes"]
    )
    assert f"{gltf.EXTENSION}:SH_DEGREE_3_COEF_0" not in primitive["attributes"]
    first = record["accessors"][primitive["attributes"]["POSITION"]]
    assert len(first["min"]) == len(first["max"]) == 3 and first["count"] == 300


# ---- SOG, other files, the registry -----------------------------------------------------------------------
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_sog_is_read_from_a_zip_and_from_a_folder(tmp_path: Path, degree: int) -> None:
    expected = fused_of(some_table(300, degree), tmp_path)
    (tmp_path / "m.sog").write_bytes(sog(expected, degree, "antialiased"))
    for name, content in sog_parts(expected, degree, "antialiased").items():
        (tmp_path / name).write_bytes(content)
    for path in (tmp_path / "m.sog", tmp_path / "meta.json"):
        model = read_model(path)
        away = np.abs(model.table.geometry - expected.geometry)
        assert away[:, MEANS].max() < 0.002 and away[:, LOG_SCALES].max() < 0.02
        assert np.abs(model.table.harmonics - expected.harmonics).max() < 0.02
        assert np.abs(gaussians.opacities(model.table) - gaussians.opacities(expected)).max() < 0.003
        assert turned_by(model.table, expected) < 0.02
        assert (model.sh_degree, model.settings(), model.form) == (degree, MIP, "SOG 2")


def test_a_sog_without_a_mark_does_not_say_how_it_is_drawn(tmp_path: Path) -> None:
    for mark, expected in ((None, None), ("default", PLAIN), ("2dgs", None)):
        (tmp_path / "m.sog").write_bytes(sog(some_table(20), 0, mark))
        assert read_model(tmp_path / "m.sog").settings() == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("SplatRenderMode: mip", MIP),
        ("SplatRenderMode: default", PLAIN),
        ("SplatRenderMode: 2dgs", None),
        ("antialiased 1", MIP),
        ("antialiased 0", PLAIN),
        ("antialiased", None),
        ("made by somebody", None),
    ],
)
def test_marks_of_others_in_a_ply_are_understood(
    tmp_path: Path, comment: str, expected: RasterSettings | None
) -> None:
    ply.write_plain(tmp_path / "m.ply", some_table(), 3, [comment])
    assert read_model(tmp_path / "m.ply").settings() == expected


def test_our_own_mark_is_believed_first_and_others_find_theirs(tmp_path: Path) -> None:
    ply.write_fused(tmp_path / "m.ply", some_table(), 3, ["antialiased 0"], RasterSettings(kernel_size=0.25))
    model = read_model(tmp_path / "m.ply")
    assert "SplatRenderMode: mip" in model.comments
    assert model.settings() == RasterSettings(kernel_size=0.25)


def test_the_first_bytes_count_and_not_the_name(tmp_path: Path) -> None:
    for form, name in FORMS.items():
        if form != "splat":
            write_model(tmp_path / name, form, some_table(), 3, MIP)
            (tmp_path / name).rename(tmp_path / "model.download")
            assert read_model(tmp_path / "model.download").table.count == 300
    assert default_form(Path("A.COMPRESSED.PLY")) == "compressed" and default_form(Path("a.ply")) is None
    assert default_form(Path("a.GLB")) == "gltf" and default_form(Path("a.sog")) is None


def test_nothing_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_model(tmp_path / "nothing.spz")
    with pytest.raises(UsageError, match="no Gaussians"):
        write_model(tmp_path / "m.spz", "spz", some_table(0), 3, MIP)


def test_a_box_keeps_what_lies_in_it() -> None:
    table = some_table()
    part = inside(table, (-1, -2, -3, 1, 2, 3))
    means = part.geometry[:, MEANS]
    assert 0 < part.count < 300 and (np.abs(means) <= [1, 2, 3]).all()
    assert part.count == int((np.abs(table.geometry[:, MEANS]) <= [1, 2, 3]).all(axis=1).sum())
    assert len(part.harmonics) == part.count
