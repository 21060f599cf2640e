"""Whether a trainer's seed can be set, and the shim for those that seed themselves."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from splatmeter.errors import UsageError
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import TRAINERS, Protocol, check_protocol
from splatmeter.lab.trainers.seed_shim import shifted
from splatmeter.lab.trainers.seeds import OWN_WAY, SHIM, Seeds, seeds_text

ORIGINAL = Protocol(scene="/garden", trainer="mip-splatting", directory="/original")
SEEDED_BY_ITSELF = """
import random, sys
random.seed(0)
drawn = [random.randint(0, 10**9) for _ in range(3)]
try:
    import numpy
    numpy.random.seed(0)
    drawn.append(int(numpy.random.randint(0, 10**9)))
except ImportError:
    pass
print(drawn, sys.argv[1:], __name__, sys.path[0])
"""


def test_every_trainer_says_whether_its_seed_can_be_set() -> None:
    assert set(OWN_WAY) == set(TRAINERS)


@pytest.mark.parametrize(
    ("protocol", "phase", "wanted"),
    [
        (Protocol(), Phase("p"), Seeds.FLAG),
        (ORIGINAL, Phase("p"), Seeds.NONE),
        (dataclasses.replace(ORIGINAL, shift_seeds=True), Phase("p"), Seeds.SHIM),
        (dataclasses.replace(ORIGINAL, shift_seeds=True), Phase("p", command=("run.sh",)), Seeds.NONE),
        (Protocol(trainer="fork", command=("python", "train.py")), Phase("p"), Seeds.NONE),
        (Protocol(trainer="fork", command=("train.py", "--seed={seed}")), Phase("p"), Seeds.TEMPLATE),
        (
            Protocol(trainer="fork", command=("train.py",)),
            Phase("p", options=("-x", "{seed}")),
            Seeds.TEMPLATE,
        ),
        (Protocol(), Phase("p", command=("{python}", "around.py", "{train}")), Seeds.TEMPLATE),
        (Protocol(), Phase("p", command=("{python}", "around.py")), Seeds.NONE),
    ],
)
def test_the_seed_is_set_where_it_reaches_the_trainer(
    protocol: Protocol, phase: Phase, wanted: Seeds
) -> None:
    assert commands.seeds(protocol, [phase]) is wanted


def test_the_log_says_repeats_of_one_seed_where_there_is_only_one() -> None:
    assert seeds_text(Seeds.NONE, 0, 6).startswith("repeats of one seed")
    assert seeds_text(Seeds.FLAG, 0, 6) == "0 to 5, the same in both arms of a block"
    assert "shim" in seeds_text(Seeds.SHIM, 0, 6)


def test_the_flag_puts_the_shim_before_the_originals_script(tmp_path: Path) -> None:
    request = RunRequest(tmp_path, seed=3)
    words = commands.arguments(dataclasses.replace(ORIGINAL, shift_seeds=True), [], request)
    assert words[1:4] == (str(SHIM), "3", "train.py")
    assert commands.arguments(ORIGINAL, [], request)[1] == "train.py"
    own = dataclasses.replace(ORIGINAL, command=("{python}", "{seed_shim}", "{seed}", "train.py"))
    assert commands.arguments(own, [], request)[1:] == (str(SHIM), "3", "train.py")


def test_the_flag_is_refused_where_it_would_do_nothing() -> None:
    with pytest.raises(UsageError, match="seed_shim"):
        check_protocol(Protocol(shift_seeds=True))
    with pytest.raises(UsageError, match="seed_shim"):
        check_protocol(dataclasses.replace(ORIGINAL, command=("run.sh",), shift_seeds=True))


def test_the_flag_makes_other_runs_and_its_absence_the_same_as_ever() -> None:
    shifted_runs = dataclasses.replace(ORIGINAL, shift_seeds=True)
    assert shifted_runs.fingerprint() != ORIGINAL.fingerprint()
    assert Protocol(seeds=4).fingerprint() == "d5d3cc4571113263", "an A/A of before must still be found"


def started(tmp_path: Path, *words: str) -> str:
    script = tmp_path / "elsewhere" / "train.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SEEDED_BY_ITSELF)
    told = subprocess.run(
        (sys.executable, *words, str(script), "--eval", "-r", "4"), capture_output=True, text=True, check=True
    )
    return told.stdout


def test_a_script_that_seeds_itself_gets_other_draws_for_other_seeds(tmp_path: Path) -> None:
    plain = started(tmp_path)
    assert str(tmp_path / "elsewhere") in plain and "__main__" in plain and "['--eval', '-r', '4']" in plain
    assert started(tmp_path, str(SHIM), "0") == plain, "seed 0 is exactly the script"
    third = started(tmp_path, str(SHIM), "3")
    assert third != plain and started(tmp_path, str(SHIM), "3") == third
    assert started(tmp_path, str(SHIM), "4") != third


def test_what_is_no_whole_number_is_handed_on_as_it_is() -> None:
    got: list[object] = []
    plant = shifted(got.append, 5)
    for seed in (1, None, "text", True, 2**32 - 2):
        plant(seed)
    assert got == [6, None, "text", True, 3]


def test_the_shim_says_what_it_needs(tmp_path: Path) -> None:
    for words, message in (((), "Usage"), (("x", "train.py"), "whole number"), (("1", "no.py"), "not there")):
        told = subprocess.run(
            (sys.executable, str(SHIM), *words), capture_output=True, text=True, check=False
        )
        assert told.returncode and message in told.stderr
