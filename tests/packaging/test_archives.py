"""Stray files, missing licences and dead links are found before anything is given away."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from test_index_page import REPOSITORY, loaded

TRACKED = {"README.md", "src/splatmeter/__init__.py", "src/splatmeter/backends/cuda/images/compute_75.ptx"}
METADATA = (
    """Metadata-Version: 2.4
Name: splatmeter
Author: splatmeter developers
License-Expression: Apache-2.0 AND BSD-3-Clause AND MIT
License-File: LICENSE
License-File: LICENSES/README.md
License-File: LICENSES/nanobind.txt
License-File: LICENSES/robin-map.txt
Description-Content-Type: text/markdown

# splatmeter

[far](https://example.org), `[code](a.md)`.
"""
    + "Words. " * 200
)
INFO = "splatmeter-0.1.0.dist-info/"
WHEEL = [
    "splatmeter/__init__.py",
    "splatmeter/backends/cuda/images/compute_75.ptx",
    "splatmeter/_native.cpython-311-x86_64-linux-gnu.so",
    "splatmeter/_scenery.cpython-311-x86_64-linux-gnu.so",
    f"{INFO}licenses/LICENSE",
    f"{INFO}licenses/LICENSES/README.md",
    f"{INFO}licenses/LICENSES/nanobind.txt",
    f"{INFO}licenses/LICENSES/robin-map.txt",
]


def wheel(folder: Path, names: list[str], metadata: str = METADATA) -> Path:
    path = folder / "splatmeter-0.1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
        archive.writestr(f"{INFO}METADATA", metadata)
    return path


def source(folder: Path, names: list[str]) -> Path:
    path = folder / "splatmeter-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*names, "PKG-INFO"]:
            content = METADATA.encode() if name == "PKG-INFO" else b""
            entry = tarfile.TarInfo(f"splatmeter-0.1.0/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def wrong(path: Path) -> list[str]:
    return list(loaded("check_archives").wrong_with(path, TRACKED))


def test_whole_archives_have_nothing_wrong(tmp_path: Path) -> None:
    assert not wrong(wheel(tmp_path, WHEEL)) and not wrong(source(tmp_path, sorted(TRACKED)))


def test_a_demo_folder_in_the_source_archive_is_named(tmp_path: Path) -> None:
    found = wrong(source(tmp_path, [*TRACKED, "demo/model/point_cloud.ply"]))
    assert found == ["splatmeter-0.1.0/demo/model/point_cloud.ply is not of the repository"]


def test_a_file_that_was_left_out_is_named(tmp_path: Path) -> None:
    assert wrong(source(tmp_path, sorted(TRACKED)[1:])) == ["splatmeter-0.1.0/README.md is missing"]
    assert wrong(wheel(tmp_path, WHEEL[1:])) == ["splatmeter/__init__.py is missing"]


def test_a_wheel_with_another_pythons_extension_is_named(tmp_path: Path) -> None:
    (found,) = wrong(wheel(tmp_path, [*WHEEL, "splatmeter/_native.cpython-310-x86_64-linux-gnu.so"]))
    assert "cpython-310" in found and found.endswith("not one each of _native and _scenery")


@pytest.mark.parametrize("left_out", ["_native", "_scenery"])
def test_a_wheel_without_one_of_its_extensions_is_named(tmp_path: Path, left_out: str) -> None:
    (found,) = wrong(wheel(tmp_path, [name for name in WHEEL if left_out not in name]))
    assert found.startswith("its extensions are ") and "not one each of" in found


def test_a_cubin_may_take_the_place_of_the_oldest_ptx_and_of_nothing_else(tmp_path: Path) -> None:
    kept = [name for name in WHEEL if "compute_75" not in name]
    assert wrong(wheel(tmp_path, kept))
    assert not wrong(wheel(tmp_path, [*kept, "splatmeter/backends/cuda/images/sm_75.cubin"]))
    assert wrong(wheel(tmp_path, [*WHEEL, "splatmeter/sm_75.cubin"]))


@pytest.mark.parametrize("dead", ["[x](docs/lab.md)", "![p](docs/p.png)", "[y](#below)", '<img src="p.png">'])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, dead: str) -> None:
    (sentence,) = wrong(wheel(tmp_path, WHEEL, METADATA + dead))
    assert "leads nowhere" in sentence


def test_a_missing_notice_is_named(tmp_path: Path) -> None:
    assert wrong(wheel(tmp_path, WHEEL[:-1])) == ["the licence file LICENSES/robin-map.txt is missing"]


def test_the_version_is_the_same_everywhere() -> None:
    from splatmeter import __version__

    stated = re.search(r'(?m)^version = "(.+)"$', (REPOSITORY / "pyproject.toml").read_text("utf-8"))
    newest = re.search(r"(?m)^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text("utf-8"))
    assert stated and newest and stated[1] == newest[1] == __version__
