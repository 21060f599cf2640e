"""Limits of memory by control groups: both versions, groups inside groups, containers, files not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from splatmeter import control_groups, process_memory

GIB = 2**30
NAMES = {2: ("memory.max", "memory.current", "inactive_file"),
         1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")}  # fmt: skip


def group(folder: Path, version: int, limit: object, used: int, files: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    limit_file, usage_file, statistic = NAMES[version]
    (folder / limit_file).write_text(f"{limit}\n")
    (folder / usage_file).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{statistic} {files}\n")


def membership(folder: Path, *lines: str) -> Path:
    path = folder / "self"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_job_is_held_to_its_own_limit_and_to_those_around_it(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    group(root / "slurm", 2, 16 * GIB, 13 * GIB)
    group(root / "slurm" / "job_7", 2, 4 * GIB, GIB)
    group(root / "slurm" / "job_7" / "step", 2, "max", GIB)
    own = membership(tmp_path, "0::/slurm/job_7/step")
    assert control_groups.memory_limit(own, root) == 4 * GIB
    assert control_groups.memory_left(own, root) == 3 * GIB
    group(root / "slurm", 2, 16 * GIB, 15 * GIB)  # a neighbour took the rest
    assert control_groups.memory_left(own, root) == GIB


def test_the_first_version_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    group(root / "memory", 1, 9223372036854771712, 8 * GIB)
    group(root / "memory" / "four", 1, 4 * GIB, GIB)
    group(root / "cpu" / "four", 1, GIB, GIB)
    own = membership(tmp_path, "9:name=systemd:/", "4:cpu,memory:/four", "1:cpu:/four", "0::/")
    assert control_groups.memory_left(own, root) == 3 * GIB


def test_files_that_the_system_drops_first_are_free(tmp_path: Path) -> None:
    for version in (1, 2):
        root = tmp_path / str(version)
        group(root, version, 4 * GIB, 4 * GIB, files=3 * GIB)
        assert control_groups.memory_left(membership(tmp_path, "0::/"), root) == 3 * GIB


def test_in_a_container_the_root_is_its_own(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    group(root, 2, 2 * GIB, GIB)
    for path in ("/", "/docker/0123", "/../other", ""):
        assert control_groups.memory_left(membership(tmp_path, f"0::{path}"), root) == GIB


@pytest.mark.parametrize("line", ["", "0", "nonsense", "4:memory", ":::", "0::/gone"])
def test_what_cannot_be_read_limits_nothing(tmp_path: Path, line: str) -> None:
    root = tmp_path / "cgroup"
    group(root, 2, "max", GIB)
    (root / "memory.stat").write_bytes(b"\xff\n")
    assert control_groups.memory_left(membership(tmp_path, line), root) is None
    assert control_groups.memory_limit(tmp_path / "none", root) is None


def test_more_than_the_limit_is_nothing_left(tmp_path: Path) -> None:
    group(tmp_path, 2, GIB, 2 * GIB)
    assert control_groups.memory_left(membership(tmp_path, "0::/"), tmp_path) == 0


def test_what_is_free_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "memory_left", lambda: 12345)
    assert process_memory.available_bytes() == 12345
    monkeypatch.setattr(control_groups, "memory_left", lambda: None)
    assert process_memory.available_bytes() > 12345
