"""A lab whose trainer is a script of invented times: for tests that must not depend on a clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from splatmeter.events import Evaluated, Failed, Finished, Progress, Started
from splatmeter.lab.executor import Arrival, Command, Scripted
from splatmeter.lab.json_files import write_text
from splatmeter.lab.plan import protocol
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.session import Beat, Session
from splatmeter.lab.session.session_plan import SessionPlan, Wishes

IMAGES = tuple(f"{number:03d}.jpg" for number in range(16))


def make_lab(folder: Path, **settings: object) -> Lab:
    """baseline <- candidate; the scripted trainer reads `--speed` and `--psnr` from the options."""
    lab = Lab(folder)
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        "scene": "garden",
        "trainer": "events",
        "command": ("trainer", "--seed", "{seed}"),
        "start_iteration": 0,
    }
    program = folder / "program"
    program.mkdir(exist_ok=True)
    (program / "train.py").write_text("# what the scripted trainer would execute\n")
    given |= {"iterations": 200, "evaluate_at": 100, "directory": str(program), **settings}
    write_text(lab.protocol_file, protocol.protocol_text(Protocol(**given)))  # type: ignore[arg-type]
    lab.phases.add(Phase("baseline", created="1"))
    return lab


def add(lab: Lab, name: str, *options: str, parent: str = "baseline", **fields: object) -> None:
    lab.phases.add(
        Phase(name, parent=parent, options=options, created=str(1 + len(lab.phases.names())), **fields)
    )  # type: ignore[arg-type]


def option(command: Command, name: str, default: float) -> float:
    """The last one wins, as on a real command line."""
    words = command.arguments
    places = [place for place, word in enumerate(words) if word == name]
    return float(words[places[-1] + 1]) if places else default


def trainer(noise: float = 0.0, seed: int = 0, drift: float = 0.0) -> Scripted:
    """100 it/s unless told otherwise; every run has its own luck, and the machine may slow down from run
    to run.
    """
    source = random.Random(seed)
    runs = [0]

    def script(command: Command) -> Iterator[Arrival]:
        runs[0] += 1
        luck = 1.0 + source.gauss(0, noise) + drift * runs[0]
        step_seconds = luck / option(command, "--speed", 100.0)
        psnr = option(command, "--psnr", 26.0) + 0.02 * option(command, "--seed", 0)
        yield Arrival(0.1, Started({"resolution": 4}, 0, 1000, IMAGES[1:], IMAGES[:1]))
        for step in range(10, 201, 10):
            if step == option(command, "--fail-at", 0):
                yield Arrival(step * step_seconds, Failed(step, "ran out of luck"))
                return
            yield Arrival(step * step_seconds, Progress(step, step * step_seconds, 0.05, 1000))
            if step in (100, 200):
                yield Arrival(step * step_seconds, Evaluated(step, "test", {"psnr": psnr, "ssim": psnr / 30}))
        yield Arrival(200 * step_seconds, Finished(200, 200 * step_seconds, 1000, loss=0.05))

    return Scripted(script)


def carried_out(
    lab: Lab, kind: str, phases: list[str], executor: Scripted,
    decided: Callable[[SessionPlan], bool] = lambda plan: False,
    **wishes: object,
) -> tuple[SessionPlan, list[Beat]]:  # fmt: skip
    plan = plans.make(lab, kind, phases, Wishes(**{"seed": 1, **wishes}))  # type: ignore[arg-type]
    return plan, list(Session(lab, plan, executor).beats(lambda: decided(plan)))
