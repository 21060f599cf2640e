"""Kills a lab with SIGKILL at random moments and resumes it, checking after every kill that nothing is lost.

python kill_at_random.py FOLDER KILLS [SEED [LONGEST]]     (500 kills take a few minutes; on a busy machine a
                                                           LONGEST wait above 0.9 s lets blocks be finished)
python kill_at_random.py --work FOLDER           (the process that is killed)
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

STAND_IN = str(Path(__file__).with_name("stand_in.py"))


def make(folder: Path, steps: int = 60) -> None:
    from splatmeter.lab.json_files import write_text
    from splatmeter.lab.plan import protocol
    from splatmeter.lab.plan.phases import Phase
    from splatmeter.lab.record.lab import Lab

    words = (sys.executable, "-S", STAND_IN, "events", "--steps", str(steps), "--seed", "{seed}")
    lab = Lab(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = protocol.Protocol(
        scene=".",
        directory=str(folder),
        trainer="events",
        command=words,
        iterations=steps,
        start_iteration=0,
        evaluate_at=0,
    )
    write_text(lab.protocol_file, protocol.protocol_text(made))
    lab.phases.add(Phase("baseline", created="1"))
    lab.phases.add(Phase("candidate", parent="baseline", created="2"))


def work(folder: Path) -> None:
    """Goes on with the session that waits, or begins a new one."""
    from splatmeter.lab.executor import ChildProcess
    from splatmeter.lab.record.index import Index
    from splatmeter.lab.record.lab import Lab
    from splatmeter.lab.session import session_plan as plans
    from splatmeter.lab.session.session import Session

    lab = Lab(folder)
    waiting = plans.unfinished(lab)
    if waiting:
        plan = plans.load(lab, waiting[-1])
    else:
        plan = plans.make(lab, "ab", ["baseline", "candidate"], plans.Wishes(blocks=4, seed=1, prime=False))
    for beat in Session(lab, plan, ChildProcess()).beats():
        if beat.stage == "block done":
            Index(lab).sync()


def check(folder: Path, before: set[str]) -> set[str]:
    """All blocks that were complete still are; every result is whole; the index agrees with the folders."""
    from splatmeter.lab.record.index import Index
    from splatmeter.lab.record.lab import Lab

    done = {str(path) for path in folder.glob("sessions/*/blocks/*/block.json")}
    assert before <= done, f"lost: {before - done}"
    for path in folder.glob("sessions/*/blocks/*/*/result.json"):
        assert json.loads(path.read_text())["identity"]["session"]
    for path in done:
        assert len(list(Path(path).parent.glob("*/result.json"))) == 2
    Index(Lab(folder)).sync()
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counted = index.execute("SELECT count(*) FROM runs WHERE counted = 1").fetchone()[0]
    assert counted == 2 * len(done), f"{counted} runs indexed, {len(done)} blocks complete"
    return done


def kill_repeatedly(folder: Path, kills: int, seed: int = 0, longest: float = 0.9) -> int:
    """Returns the number of complete blocks at the end, when the last session was let through."""
    source = random.Random(seed)
    make(folder)
    done: set[str] = set()
    for _ in range(kills):
        worker = subprocess.Popen([sys.executable, __file__, "--work", str(folder)], stderr=subprocess.PIPE)
        time.sleep(source.uniform(0.1, longest))
        worker.send_signal(signal.SIGKILL)
        _, complaint = worker.communicate()
        assert worker.returncode in (0, -signal.SIGKILL), complaint.decode()
        done = check(folder, done)
    subprocess.run([sys.executable, __file__, "--work", str(folder)], check=True)
    return len(check(folder, done))


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(Path(sys.argv[2]))
    else:
        begin = time.time()
        seed = int(sys.argv[3]) if sys.argv[3:] else 0
        longest = float(sys.argv[4]) if sys.argv[4:] else 0.9
        blocks = kill_repeatedly(Path(sys.argv[1]), int(sys.argv[2]), seed, longest)
        print(f"{sys.argv[2]} kills in {time.time() - begin:.0f} s, {blocks} complete blocks, nothing lost")
