"""More seeds for quality: pairs of runs that nobody times count for the measurement they repeat."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_lab import IMAGES, add, carried_out, make_lab, option

from splatmeter.errors import UsageError
from splatmeter.events import Evaluated, Finished, Progress, Started
from splatmeter.lab.executor import Arrival, Command, Scripted
from splatmeter.lab.json_files import write_text
from splatmeter.lab.judgement.verdicts import judged
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.lab.session.blocks import done_blocks
from splatmeter.lab.session.quality_seeds import first_seed


def seeded(noise: float = 0.001, swing: float = 0.3) -> Scripted:
    """PSNR depends on the seed; the candidate's swings around it, better for even seeds and worse for odd."""
    luck = random.Random(4)

    def script(command: Command) -> Iterator[Arrival]:
        speed, seed = option(command, "--speed", 100.0), option(command, "--seed", 0)
        own = 0.0 if speed == 100 else swing * (-1) ** int(seed)
        psnr = option(command, "--psnr", 26.0) + own + 0.0137 * seed
        second = (1 + luck.gauss(0, noise)) / speed
        yield Arrival(0.1, Started({"resolution": 4}, 0, 1000, IMAGES[1:], IMAGES[:1]))
        for step in range(10, 201, 10):
            yield Arrival(step * second, Progress(step, step * second, 0.05, 1000))
        yield Arrival(200 * second, Evaluated(200, "test", {"psnr": psnr, "l1": 0.9 / psnr}))
        yield Arrival(200 * second, Finished(200, 200 * second, 1000, loss=0.05 + own / 1000))

    return Scripted(script)


def measured(folder: Path, *options: str) -> tuple[Lab, Scripted]:
    lab = make_lab(folder, evaluate_at=0)
    add(lab, "candidate", "--speed", "110", *options)
    executor = seeded()
    carried_out(lab, "ab", ["baseline", "candidate"], executor, blocks=4)
    return lab, executor


def more(lab: Lab, executor: Scripted, pairs: int) -> set[int]:
    phases = ["baseline", "candidate"]
    plan, _ = carried_out(
        lab, "quality", phases, executor, blocks=pairs, first_seed=first_seed(lab, phases), prime=False
    )
    return done_blocks(plan.folder(lab))


def test_quality_that_four_seeds_leave_open_is_settled_by_pairs_that_nobody_times(tmp_path: Path) -> None:
    lab, executor = measured(tmp_path)
    before = judged(lab, "baseline", "candidate")
    assert before.verdict.kind is VerdictKind.UNDECIDED
    assert "`splatmeter lab quality candidate --against baseline --pairs" in before.verdict.sentence
    begun = len(executor.commands)
    assert more(lab, executor, 30) == set(range(30))
    assert len(executor.commands) == begun + 60, "no priming"
    after = judged(lab, "baseline", "candidate")
    assert after.verdict.kind is VerdictKind.FASTER
    assert {result.seeds for result in after.comparison.quality} == {34}
    assert after.comparison.speed == before.comparison.speed, "their times count for nothing"
    assert after.session == before.session


def test_every_pair_has_a_seed_that_no_run_had_before(tmp_path: Path) -> None:
    lab, executor = measured(tmp_path)
    begun = len(executor.commands)
    more(lab, executor, 3)
    more(lab, executor, 2)
    drawn = [int(option(command, "--seed", -1)) for command in executor.commands[begun:]]
    assert sorted(drawn) == [6, 6, 7, 7, 8, 8, 9, 9, 10, 10]


def test_a_loss_is_not_made_good_by_more_seeds(tmp_path: Path) -> None:
    lab, executor = measured(tmp_path, "--psnr", "25.74")
    more(lab, executor, 30)
    assert judged(lab, "baseline", "candidate").verdict.kind is VerdictKind.QUALITY_LOST


def test_pairs_of_another_protocol_count_for_nothing(tmp_path: Path) -> None:
    lab, executor = measured(tmp_path)
    longer = dataclasses.replace(lab.protocol(), test_every=4)
    kept = lab.protocol_file.read_text()
    write_text(lab.protocol_file, protocols.protocol_text(longer))
    more(lab, executor, 6)
    write_text(lab.protocol_file, kept)
    assert {r.seeds for r in judged(lab, "baseline", "candidate").comparison.quality} == {4}


def test_the_figures_of_a_phase_are_those_that_were_timed(tmp_path: Path) -> None:
    lab, executor = measured(tmp_path)
    before = document(lab).phases[1].speed
    more(lab, executor, 2)
    assert document(lab).phases[1].speed == before


def test_a_trainer_without_seeds_is_refused_and_its_runs_are_repeats_of_one(tmp_path: Path) -> None:
    lab = make_lab(tmp_path, evaluate_at=0, command=("trainer",))
    add(lab, "candidate", "--speed", "110")
    carried_out(lab, "ab", ["baseline", "candidate"], seeded(), blocks=6)
    found = judged(lab, "baseline", "candidate").verdict
    assert found.kind is VerdictKind.UNDECIDED and "6 repeats of one seed" in found.sentence
    assert "shift_seeds" in found.sentence
    assert "repeats of one seed" in document(lab).configuration["Seeds"]
    with pytest.raises(UsageError, match="takes no seed"):
        first_seed(lab, ["baseline", "candidate"])
