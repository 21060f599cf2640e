"""PLY files: round trips, other people's files, hostile files, and a full disk."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from fuzz_ply import damage_bytes, damaged, outcome
from hypothesis import given, settings
from hypothesis import strategies as some

from splatmeter.errors import InputError, MissingFile, OutputError
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.inspect import describe
from splatmeter.gaussians.ply import (
    property_names,
    read_model,
    write_fused,
    write_model,
    write_plain,
)
from splatmeter.ops import FILTER_3D, LOG_SCALES, OPACITY_LOGITS, RasterSettings, Table, empty_table

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"
ORIGINAL = MODELS / "inria_format_point_cloud_9080.ply"
needs_models = pytest.mark.skipif(not MODELS.exists(), reason="real model files are not on this machine")


def random_table(count: int = 30, degree: int = 3) -> Table:
    generator = np.random.default_rng(count)
    table = empty_table(count, trainable=False)
    table.geometry[:, :11] = generator.normal(0, 2, (count, 11))
    table.geometry[:, FILTER_3D] = generator.uniform(0.01, 0.5, count)
    table.harmonics[:, : 3 * (degree + 1) ** 2] = generator.normal(size=(count, 3 * (degree + 1) ** 2))
    return table


def write_other(path: Path, table: Table, form: str, kind: str, degree: int = 3) -> None:
    """A writer of our own for layouts ours does not produce: reversed property order, other types."""
    ordinary = path.with_suffix(".ordinary")
    write_model(ordinary, table, degree)
    names = property_names(degree, with_filter=True)
    data = ordinary.read_bytes().split(b"end_header\n", 1)[1]
    columns = np.frombuffer(data, np.dtype([(name, "<f4") for name in names]))
    order = {"binary_big_endian": ">", "binary_little_endian": "<", "ascii": "="}[form]
    names = names[::-1]
    rows = np.empty(len(columns), [(name, order + {"float": "f4", "double": "f8"}[kind]) for name in names])
    for name in names:
        rows[name] = columns[name]
    header = [
        "ply",
        f"format {form} 1.0",
        "element camera 1",
        "property double near",
        f"element vertex {len(rows)}",
    ]
    header += [f"property {kind} {name}" for name in names]
    header += ["element face 1", "property list uchar int vertex_indices", "end_header", ""]
    if form == "ascii":
        body = "0.5\n" + "\n".join(" ".join(repr(float(v)) for v in row) for row in rows) + "\n3 0 1 2\n"
        path.write_bytes("\n".join(header).encode() + body.encode())
    else:
        path.write_bytes("\n".join(header).encode() + bytes(8) + rows.tobytes() + bytes([3]) + bytes(12))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 5000])
def test_a_model_survives_its_file_bit_for_bit(tmp_path: Path, degree: int, count: int) -> None:
    table = random_table(count, degree)
    write_model(tmp_path / "new" / "m.ply", table, degree, comments=["made for\na test"])
    model = read_model(tmp_path / "new" / "m.ply")
    np.testing.assert_array_equal(model.table.geometry, table.geometry)
    np.testing.assert_array_equal(model.table.harmonics, table.harmonics)
    assert (model.sh_degree, model.filtered, model.nonfinite) == (degree, True, 0)
    assert "made for a test" in model.comments
    assert not model.table.trainable or count == 0
    assert model.settings() is None


def test_the_layout_is_the_originals(tmp_path: Path) -> None:
    table = random_table(3)
    write_model(tmp_path / "m.ply", table, 3)
    header, data = (tmp_path / "m.ply").read_bytes().split(b"end_header\n", 1)
    names = [line.split()[-1].decode() for line in header.splitlines() if line.startswith(b"property float")]
    assert len(names) == 63 and names[-1] == "filter_3D" and names[:6] == ["x", "y", "z", "nx", "ny", "nz"]
    rows = np.frombuffer(data, "<f4").reshape(3, 63)
    assert not rows[:, 3:6].any()
    green_of_second_harmonic = rows[:, names.index("f_rest_15")]
    np.testing.assert_array_equal(green_of_second_harmonic, table.harmonics[:, 3 + 1])


def test_a_fused_file_holds_the_filtered_forms(tmp_path: Path) -> None:
    table = random_table(500)
    write_fused(tmp_path / "m.ply", table, 3, settings=RasterSettings(kernel_size=0.3))
    model = read_model(tmp_path / "m.ply")
    assert not model.filtered and not model.table.geometry[:, FILTER_3D].any()
    np.testing.assert_allclose(gaussians.scales(model.table), gaussians.filtered_scales(table), rtol=2e-6)
    np.testing.assert_allclose(
        gaussians.opacities(model.table), gaussians.filtered_opacities(table), rtol=2e-6
    )
    assert "filter_3d fused" in model.comments
    assert model.settings() == RasterSettings(kernel_size=0.3)


def test_fusing_collapsed_and_opaque_gaussians_stays_finite(tmp_path: Path) -> None:
    table = random_table(4)
    table.geometry[0, LOG_SCALES] = -80
    table.geometry[1, OPACITY_LOGITS] = 60
    table.geometry[2, OPACITY_LOGITS] = -90
    table.geometry[3, FILTER_3D] = 0
    write_fused(tmp_path / "m.ply", table, 3)
    assert read_model(tmp_path / "m.ply").nonfinite == 0


def test_a_plain_file_leaves_the_filter_out(tmp_path: Path) -> None:
    table = random_table(5)
    write_plain(tmp_path / "m.ply", table, 3)
    model = read_model(tmp_path / "m.ply")
    np.testing.assert_array_equal(model.table.geometry[:, :11], table.geometry[:, :11])
    assert not model.filtered


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_other_layouts_of_the_same_model_read_the_same(tmp_path: Path, form: str, kind: str) -> None:
    table = random_table(40)
    write_other(tmp_path / "m.ply", table, form, kind)
    model = read_model(tmp_path / "m.ply")
    np.testing.assert_array_equal(model.table.geometry, table.geometry)
    np.testing.assert_array_equal(model.table.harmonics, table.harmonics)


@needs_models
def test_the_original_trainers_file_survives_a_round_trip(tmp_path: Path) -> None:
    model = read_model(ORIGINAL)
    assert (model.table.count, model.sh_degree, model.filtered) == (9080, 3, False)
    write_plain(tmp_path / "again.ply", model.table, 3)
    again = (tmp_path / "again.ply").read_bytes().split(b"end_header\n", 1)[1]
    assert again == ORIGINAL.read_bytes().split(b"end_header\n", 1)[1]


@needs_models
def test_a_file_of_degree_one_in_another_order_is_read() -> None:
    model = read_model(MODELS / "babylon_combined_SPZv3.ply")
    assert (model.table.count, model.sh_degree, model.nonfinite) == (1566, 1, 0)
    assert not model.table.harmonics[:, 12:].any() and model.table.harmonics[:, 3:12].any()


@needs_models
@pytest.mark.parametrize(
    "name", ["combined_SPZv3.compressed.ply", "combined_SPZv3.spz", "combined_SPZv3.sog"]
)
def test_formats_we_do_not_read_are_named(name: str) -> None:
    with pytest.raises(InputError, match="reads PLY files of 3DGS and Mip-Splatting"):
        read_model(MODELS / f"babylon_{name}")


def test_rows_that_are_not_numbers_are_kept_and_counted(tmp_path: Path) -> None:
    table = random_table(9)
    table.geometry[2, 0] = np.nan
    table.harmonics[7, 5] = np.inf
    write_model(tmp_path / "m.ply", table, 3)
    model = read_model(tmp_path / "m.ply")
    assert (model.table.count, model.nonfinite) == (9, 2)
    assert describe(model).nonfinite == 2


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"element vertex 30", b"element vertex 99999999999999", "promises"),
        (b"element vertex 30", b"element vertex -3", "the number of its elements"),
        (b"property float rot_3\n", b"", "lacks 1 of the properties of Gaussians (rot_3)"),
        (b"property float rot_3", b"property list uchar float rot_3", "rot_3"),
        (b"property float nx", b"property list uchar float nx", "list"),
        (b"property float f_rest_44\n", b"", "f_rest"),
        (b"property float nx", b"property float x", "twice"),
        (b"property float nx", b"property half nx", "half"),
        (b"end_header", b"end_heather", "end_header"),
        (b"ply\n", b"plx\n", "not a PLY"),
        (b"format binary_little_endian 1.0", b"comment", "format"),
        (b"element vertex", b"element sommet", "no element 'vertex'"),
    ],
)
def test_a_hostile_header_gets_one_sentence(
    tmp_path: Path, before: bytes, after: bytes, expected: str
) -> None:
    path = tmp_path / "m.ply"
    write_model(path, random_table(30), 3)
    path.write_bytes(path.read_bytes().replace(before, after, 1))
    with pytest.raises(InputError) as caught:
        read_model(path)
    assert expected in str(caught.value) and str(path) in str(caught.value)


def test_a_cut_off_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.ply"
    write_model(path, random_table(30), 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="cut off"):
        read_model(path)


def test_missing_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_model(tmp_path / "nothing.ply")
    with pytest.raises(InputError, match="not a file"):
        read_model(tmp_path)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.ply"
    write_model(path, random_table(30), 3)
    before = path.read_bytes()
    resource = pytest.importorskip("resource", reason="a full disk cannot be staged on this system")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="unchanged"):
            write_model(path, random_table(5000), 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.ply"]


@settings(max_examples=300, deadline=None)
@given(seed=some.integers(0, 2**32))
def test_damaged_files_are_read_or_refused(seed: int) -> None:
    outcome(damaged(random.Random(seed)))


@settings(max_examples=100, deadline=None)
@given(content=some.binary(max_size=200), seed=some.integers(0, 2**32))
def test_noise_behind_the_first_word_is_refused(content: bytes, seed: int) -> None:
    assert outcome(damage_bytes(random.Random(seed), b"ply\n" + content)) == "refused"


def test_a_description_counts_what_cannot_be_seen(tmp_path: Path) -> None:
    table = random_table(100)
    table.geometry[:, FILTER_3D] = 0
    table.geometry[:, OPACITY_LOGITS] = 2
    table.geometry[:, LOG_SCALES] = np.log([0.001, 0.002, 0.004])
    table.geometry[:10, OPACITY_LOGITS] = -9
    table.geometry[10:13, LOG_SCALES] = 5
    write_model(tmp_path / "m.ply", table, 3)
    found = describe(read_model(tmp_path / "m.ply"))
    assert (found.gaussians, found.invisible, found.huge) == (100, 10, 3)
    assert found.scales["50"] == pytest.approx(0.004) and found.anisotropy["50"] == pytest.approx(2)
    assert found.memory_bytes == 100 * 256


def test_an_empty_model_can_be_described(tmp_path: Path) -> None:
    write_model(tmp_path / "m.ply", empty_table(0), 0)
    assert describe(read_model(tmp_path / "m.ply")).gaussians == 0
