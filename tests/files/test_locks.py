"""One process alone, and what happens where a file system cannot promise that."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from splatmeter.files.locks import Lock

HOLD = (
    "import sys; from pathlib import Path; from splatmeter.files.locks import Lock;"
    "lock = Lock(Path(sys.argv[1])); print(lock.take(), flush=True); sys.stdin.read()"
)


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline().strip() == "True"
        yield other
        other.kill()


def test_another_process_is_kept_out_and_knows_by_whom(tmp_path: Path) -> None:
    mine = Lock(tmp_path / "lock")
    with held_elsewhere(tmp_path / "lock") as other:
        assert not mine.take() and not mine.take()
        assert mine.holder == str(other.pid)
        mine.release()  # what it does not have it cannot give away
        assert not Lock(tmp_path / "lock").take()
    assert mine.take() and mine.holder == str(os.getpid())
    mine.release()
    assert mine.holder == ""


def test_two_of_one_process_exclude_each_other_and_any_thread_may_release(tmp_path: Path) -> None:
    one, two = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert one.take() and not two.take()
    thread = threading.Thread(target=one.release)
    thread.start()
    thread.join()
    assert two.take()
    two.release()


def test_who_waits_gets_it_when_it_is_free(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path / "lock") as other:
        timer = threading.Timer(0.3, other.kill)
        timer.start()
        lock = Lock(tmp_path / "lock")
        assert lock.take(wait=True)
        assert other.wait() != 0
        timer.join()
    lock.release()


def test_where_there_are_no_locks_work_goes_on_unguarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def without(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", without)
    lock = Lock(tmp_path / "lock")
    assert lock.take()
    lock.release()


def test_a_lock_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        Lock(tmp_path / "file" / "lock").take()
