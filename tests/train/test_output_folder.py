"""One run per folder, and nobody else's files."""

from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Make, run

from splatmeter.backend import Backend
from splatmeter.errors import MissingFile, OutputError
from splatmeter.train.loop import train


def test_a_folder_with_a_run_is_refused_unless_it_may_be_replaced(make: Make, backend: Backend) -> None:
    config = make(iterations=2, checkpoint_iterations=(2,))
    run(config, backend)
    (config.model_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="already holds a run"):
        run(config, backend)
    run(make(iterations=1, overwrite=True), backend)
    assert not (config.model_path / "chkpnt2.safetensors").exists()
    assert (config.model_path / "notes.txt").read_text() == "mine"


def test_two_runs_never_share_a_folder(make: Make, backend: Backend) -> None:
    config = make()
    events = train(config, backend)
    next(events)
    with pytest.raises(OutputError, match="is training into"):
        run(dataclasses.replace(config, overwrite=True), backend)
    events.close()
    assert run(make(iterations=1, overwrite=True), backend)


def test_resuming_a_run_that_has_just_begun_names_its_process(make: Make, backend: Backend) -> None:
    config = make()
    events = train(config, backend)
    next(events)
    with pytest.raises(OutputError, match=f"Process {os.getpid()} is training into .*run right now"):
        run(make(resume=True), backend)
    events.close()
    with pytest.raises(MissingFile, match="no checkpoint to resume"):
        run(make(resume=True), backend)
    assert run(make(iterations=1, overwrite=True), backend), "looking took no lock"


def test_looking_whether_somebody_trains_there_makes_no_folder(make: Make, backend: Backend) -> None:
    with pytest.raises(MissingFile, match="no checkpoint to resume"):
        run(make("never", resume=True), backend)
    assert not make("never").model_path.exists()


def test_the_lock_of_a_killed_process_does_not_count(tmp_path: Path) -> None:
    from splatmeter.train.folder_lock import FolderLock

    script = (
        "import os, sys; from pathlib import Path; from splatmeter.train.folder_lock import FolderLock;"
        "lock = FolderLock(Path(sys.argv[1])); print('locked', flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert dead.stdout.strip() == "locked"
    FolderLock(tmp_path).release()


def test_a_disk_too_full_for_the_lock_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from splatmeter.train.folder_lock import FolderLock

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("splatmeter.files.locks.Path.write_text", full)
        with pytest.raises(OutputError, match=r"No space left on device.* Make room, or choose another"):
            FolderLock(tmp_path)
    FolderLock(tmp_path).release()


@pytest.mark.parametrize(
    ("folder", "told"), [("file", "there is a file of that name"), ("file/below", "Not a directory")]
)
def test_where_room_would_not_help_it_is_not_asked_for(tmp_path: Path, folder: str, told: str) -> None:
    from splatmeter.train.folder_lock import FolderLock

    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as found:
        FolderLock(tmp_path / folder)
    assert f"({told}). Choose another --model-path." in str(found.value)


def test_a_file_system_for_reading_only_is_not_taken_for_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from splatmeter.train.folder_lock import FolderLock

    def read_only(*_: Any) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("splatmeter.files.locks.Path.write_text", read_only)
    with pytest.raises(OutputError, match=r"\(Read-only file system\)\. Choose another --model-path\.$"):
        FolderLock(tmp_path)
