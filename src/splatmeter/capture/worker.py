"""The child process: does what job.json in its folder says, tells its parent in JSON lines how far it is."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from splatmeter.capture.job import Job
from splatmeter.capture.stages import run_stages
from splatmeter.capture.work import Work
from splatmeter.errors import SplatmeterError


def main(arguments: list[str]) -> int:
    """Standard output is for the parent alone: what libraries print goes to the log."""
    speaking = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        speaking.write(json.dumps(message) + "\n")

    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = Work(Path(arguments[1]))
    try:
        _TASKS[arguments[0]](work, say)
    except SplatmeterError as problem:
        say({"error": type(problem).__name__, "message": str(problem)})
        return 1
    except MemoryError:
        say(
            {
                "error": "NotEnoughMemory",
                "message": "Memory ran out. Close other programs, or use a smaller --max-size.",
            }
        )
        return 1
    except OSError as problem:
        where = Path(str(problem.filename)).name if problem.filename else "the work folder"
        say(
            {
                "error": "OutputError",
                "message": f"{where}: {problem.strerror}. Check free space and permissions.",
            }
        )
        return 1
    return 0


def _end_with_parent() -> None:
    """Standard input ends when the parent does, even if killed: another run may begin in its folder."""
    while os.read(0, 4096):  # not sys.stdin: its lock would be held while the interpreter ends
        pass
    os._exit(1)


def _from_photos(work: Work, say: Any) -> None:
    job = Job.from_json(json.loads(work.job.read_text("utf-8"))["job"])

    def engine() -> Any:
        from splatmeter.capture.colmap_engine import ColmapEngine

        return ColmapEngine(work, job.settings)

    run_stages(job, work, engine, say)


def _undistort(work: Work, say: Any) -> None:
    from splatmeter.capture.undistort import undistort_in_child

    undistort_in_child(work, say)


_TASKS = {"from-photos": _from_photos, "undistort": _undistort}


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: so are we
        sys.exit(main(sys.argv[1:]))
