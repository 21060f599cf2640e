"""One run per folder, and nobody else's files."""

from __future__ import annotations

import dataclasses
import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Make, run

from splatmeter.backend import Backend
from splatmeter.errors import OutputError
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
        with pytest.raises(OutputError, match="No space left on device"):
            FolderLock(tmp_path)
    FolderLock(tmp_path).release()
