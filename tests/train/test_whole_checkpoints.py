"""Where a run's newest checkpoint is damaged, one that is whole is named, and how to go on from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Make, of, run

from splatmeter.backend import Backend
from splatmeter.errors import CheckpointError
from splatmeter.events import Started
from splatmeter.train import container

HOW = {"iterations": 6, "densification": "none", "checkpoint_iterations": (2, 4), "checkpoint_minutes": 1e6}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def refusal(make: Make, backend: Backend, name: str = "run") -> CheckpointError:
    with pytest.raises(CheckpointError) as found:
        run(make(name, resume=True, densification="none"), backend)
    return found.value


def test_the_newest_whole_one_is_named_and_goes_on(make: Make, backend: Backend) -> None:
    folder = make(**HOW).model_path
    run(make(**HOW), backend)
    cut(folder / "chkpnt6.safety.safetensors")
    said = refusal(make, backend)
    older = folder / "chkpnt4.safetensors"
    assert f"{older} is whole: go on from there with --resume --start-checkpoint {older}." in str(said)
    assert "cut off" in said.what and "chkpnt4" not in said.what, "who begins anew does not say it"
    cut(older)
    assert f"{folder / 'chkpnt2.safetensors'} is whole" in str(refusal(make, backend))
    going_on = make(resume=True, start_checkpoint=folder / "chkpnt2.safetensors", densification="none")
    assert of(Started, run(going_on, backend))[0].step == 2


def test_a_changed_byte_is_damage_too(make: Make, backend: Backend) -> None:
    run(make(**HOW), backend)
    newest = make().model_path / "chkpnt6.safety.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    assert "chkpnt4.safetensors is whole" in str(refusal(make, backend))


def test_where_none_is_whole_that_is_said(make: Make, backend: Backend) -> None:
    run(make(**HOW), backend)
    for path in make().model_path.glob("chkpnt*"):
        cut(path)
    assert str(refusal(make, backend)).endswith(f"No other one in {make().model_path} is whole.")


def test_a_run_with_a_time_is_told_a_way_that_it_may_go(make: Make, backend: Backend) -> None:
    run(make(**HOW), backend)
    cut(make().model_path / "chkpnt6.safety.safetensors")
    with pytest.raises(CheckpointError) as found:
        run(make(resume=True, seconds=60.0), backend)
    assert "with chkpnt6.safety.safetensors out of the folder, --resume goes on" in str(found.value)
    assert "--start-checkpoint" not in str(found.value)


def test_nothing_is_added_where_the_newest_is_whole_or_was_chosen(make: Make, backend: Backend) -> None:
    run(make(**HOW), backend)
    newest = make().model_path / "chkpnt6.safety.safetensors"
    arrays, state = container.read(newest)
    container.write(newest, arrays, state | {"scene": "0" * 64})
    assert str(refusal(make, backend)).endswith("Pass the scene it was trained on.")
    cut(newest)
    with pytest.raises(CheckpointError) as found:
        run(make("other", start_checkpoint=newest), backend)
    assert str(found.value).endswith("Use an earlier checkpoint or copy the file again.")
