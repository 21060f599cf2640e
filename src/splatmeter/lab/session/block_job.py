"""What a job does on its node: `python -m splatmeter.lab.session.block_job LAB SESSION BLOCK`.

One whole block of one session, with priming of its own. It finds the session's plan, code and start as they
were frozen, and refuses like any other run if they have changed. What it leaves are run folders; how it
went is its exit code, and its last line on standard error says why.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from splatmeter.errors import SplatmeterError
from splatmeter.jobs.worker import JOB
from splatmeter.lab.executor import ChildProcess
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.session import Session


def main(words: list[str]) -> int:
    root, name, block = words
    signal.signal(signal.SIGTERM, _leave)
    try:
        lab = Lab(Path(root)).checked()
        session = Session(lab, plans.load(lab, name), ChildProcess(), job=os.environ.get(JOB, ""))
        with contextlib.closing(session.beats_of(int(block))) as beats:
            for beat in beats:
                if beat.result is not None:
                    print(f"block {beat.block} {beat.arm}: {beat.result.status}", flush=True)
    except SplatmeterError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


def _leave(*_: object) -> None:
    """An orderly exit, so that the trainer is ended too."""
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
