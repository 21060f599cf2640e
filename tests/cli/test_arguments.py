"""The command line accepts the original's spelling and complains in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from splatmeter.cli.arguments import normalise, parse
from splatmeter.errors import UsageError


@dataclass(frozen=True)
class Example:
    source: Path
    """Where the photos are."""
    white_background: bool = False
    """Composite over white."""
    network: Literal["vgg", "alex"] = "vgg"
    """Which one."""
    resolution: int = -1
    """Divisor."""


SHORT = {"-s": "--source", "--source_path": "--source", "-r": "--resolution", "-w": "--white-background"}


def example(*words: str) -> Example:
    return parse(Example, "splatmeter example", words, "An example.", short=SHORT)


@pytest.mark.parametrize(
    "words",
    [
        ("-s", "here", "-w", "-r", "4"),
        ("--source", "here", "--white-background", "--resolution", "4"),
        ("--source_path=here", "--white_background", "-r4"),
        ("-s=here", "-w", "--resolution=4"),
    ],
)
def test_all_spellings_mean_the_same(words: tuple[str, ...]) -> None:
    assert example(*words) == Example(Path("here"), white_background=True, resolution=4)


def test_a_negative_number_is_a_value() -> None:
    assert example("-s", "here", "-r", "-1").resolution == -1


def test_underscores_in_values_stay() -> None:
    assert normalise(["--images=images_4", "my_folder"], {}) == ["--images=images_4", "my_folder"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "The option --source is required: a path."),
        (("-s", "a", "--network", "resnet"), "--network takes one of vgg, alex, not 'resnet'."),
        (("-s", "a", "--network", "alexx"), "not 'alexx'. Did you mean alex?"),
        (("-s", "a", "-r", "big"), "--resolution takes a whole number, not 'big'."),
        (("-s", "a", "-r", "1.5"), "--resolution takes a whole number, not '1.5'."),
        (("-s", "a", "--sauce", "b"), "There is no option --sauce. Did you mean --source?"),
        (("-s",), "--source needs a value: a path."),
        (("-s", "-r", "4"), "--source needs a value: a path."),
        (("-s", "a", "--white-background=yes"), "is a switch and takes no value, but was given 'yes'."),
        (("-s", "a", "b"), "'b' is one argument too many."),
    ],
)
def test_errors_are_one_sentence_that_names_the_word(words: tuple[str, ...], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        example(*words)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message and "│" not in message
    assert caught.value.exit_code == 64


def test_help_shows_the_short_forms_and_leaves_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        example("--help")
    assert not caught.value.code
    shown = capsys.readouterr().out
    assert "-s --source" in shown and "Where the photos are." in shown


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train -s x --itterations 5", "There is no option --itterations. Did you mean --iterations?"),
        ("train -s x --iter 5", "There is no option --iter. Did you mean --iterations?"),
        ("train -s x --max_gausians=5", "There is no option --max-gausians. Did you mean --max-gaussians?"),
        ("train -s x --no-evl", "Did you mean --no-eval?"),
        ("train -s x --zzqq", "There is no option --zzqq. See splatmeter train --help"),
        ("eval -m x --sclae 2", "Did you mean --scales?"),
        ("render -m x --iteratoin 3", "Did you mean --iteration?"),
        ("export x --ouput y", "Did you mean --output?"),
        ("view x --prot 3", "Did you mean --port?"),
        ("info x --jsn", "Did you mean --json?"),
        ("doctor --jsn", "Did you mean --json?"),
        ("demo --quik", "Did you mean --quick?"),
        ("profile --resolutoin 3", "Did you mean --resolution?"),
        ("selftest --devise cuda", "Did you mean --device?"),
        ("scene info x --imges y", "Did you mean --images? See splatmeter scene info --help"),
        ("scene undistort a b --imges y", "Did you mean --images?"),
        ("scene from-photo a b", "Did you mean from-photos?"),
        ("lab run --bloks 3", "Did you mean --blocks? See splatmeter lab run --help"),
        ("lab verdikt x", "There is no 'verdikt'. Did you mean verdict?"),
        ("trian", "There is no command trian. Did you mean train?"),
        ("--versoin", "There is no option --versoin. Did you mean --version?"),
    ],
)
def test_every_command_names_the_nearest_option(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from splatmeter.cli.main import main

    assert main(line.split()) == 64
    told = capsys.readouterr().err
    assert said in told and len(told) <= 160 and told.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("info", "The argument PATH is missing: a path. See splatmeter info --help"),
        ("scene undistort", "The argument IN is missing: a path."),
        ("info a b", "'b' is one argument too many."),
        ("train -s x --test-iterations 5 six", "--test-iterations takes whole numbers, not 'six'."),
        ("train -s x --densification mcm", "Did you mean mcmc?"),
        ("train -s x --eval=yes", "--eval is a switch and takes no value"),
        ("eval -m x --lpips vgg16", "--lpips takes one of vgg, alex, none, not 'vgg16'. Did you mean vgg?"),
        ("export --kernel-size small", "--kernel-size takes a number, not 'small'."),
        ("demo --steps", "There is no option --steps."),
    ],
)
def test_sentences_come_from_the_fields_of_each_command(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from splatmeter.cli.main import main

    assert main(line.split()) == 64
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
