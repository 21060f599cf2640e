"""`splatmeter doctor` where something is wrong with a card or its driver: a note, since the CPU trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from splatmeter.backends import cuda
from splatmeter.cli import doctor, main
from splatmeter.errors import CardBroken, CardUnavailable, SplatmeterError


def failing(problem: SplatmeterError) -> Callable[[int], NoReturn]:
    def open_card(_: int) -> NoReturn:
        raise problem

    return open_card


@pytest.mark.parametrize(
    "problem",
    [
        CardUnavailable("No NVIDIA driver was found."),
        CardBroken("The driver is too old."),
        SplatmeterError("The card failed while starting the driver: unknown error (999)."),
    ],
    ids=["no driver", "an old driver", "a broken driver"],
)
def test_a_card_that_does_not_work_is_a_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: SplatmeterError
) -> None:
    monkeypatch.setattr(cuda, "cuda_backend", failing(problem))
    assert main.main(["doctor"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "graphics card" in line)
    assert line.startswith("optional") and str(problem) in line


@pytest.mark.parametrize("problem", [CardUnavailable("None."), SplatmeterError("It failed (999).")])
def test_a_driver_that_hides_that_of_windows_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: SplatmeterError
) -> None:
    monkeypatch.delenv("SPLATMETER_LIBCUDA", raising=False)
    monkeypatch.setattr(cuda, "cuda_backend", failing(problem))
    monkeypatch.setattr(doctor, "WSL_DRIVER", tmp_path / "libcuda.so.1")
    assert "remove that package" not in doctor._card().detail
    (tmp_path / "libcuda.so.1").touch()
    found = doctor._card()
    assert found.state == "optional" and f"may hide {tmp_path / 'libcuda.so.1'}" in found.detail
