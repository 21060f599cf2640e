"""--max-per-pixel: small photos get only as many Gaussians as they can tell apart, full-sized ones all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from running import Make, bits, of, run

from splatmeter.backend import Backend
from splatmeter.densify.densifier import Densifier
from splatmeter.errors import UsageError
from splatmeter.events import Densified
from splatmeter.ops import VISITS, empty_table
from splatmeter.train.config import TrainConfig
from splatmeter.train.growth import visible_share

GROWING = {"densification": "cut", "densify_grad_threshold": 1e-9, "progressive": "2:25"}


def grown(make: Make, backend: Backend, name: str, **changes: Any) -> dict[int, int]:
    events = run(make(name, iterations=60, densify_until_iter=55, **(GROWING | changes)), backend)
    return {event.step: event.gaussians for event in of(Densified, events)}


def test_small_photos_limit_growth_and_large_ones_do_not(make: Make, backend: Backend) -> None:
    free = grown(make, backend, "free")
    held = grown(make, backend, "held", max_per_pixel=1e-3)
    small, large = [step for step in free if step <= 25], [step for step in free if step > 25]
    assert len(small) >= 2 and len(large) >= 2
    first = held[small[0]]
    assert all(held[step] <= first for step in small) and free[small[-1]] > 1.5 * first
    assert held[large[0]] > 1.5 * first


def test_what_is_far_from_crowded_grows_to_the_bit_as_without_a_limit(make: Make, backend: Backend) -> None:
    assert grown(make, backend, "free") == grown(make, backend, "held", max_per_pixel=1e6)


def test_a_smaller_budget_of_the_user_comes_first(make: Make, backend: Backend) -> None:
    counts = grown(make, backend, "few", max_per_pixel=1e6, max_gaussians=150)
    assert max(counts.values()) == 150


@pytest.mark.parametrize("stop", [12, 20])
def test_stopping_and_resuming_changes_no_bit(make: Make, backend: Backend, stop: int) -> None:
    limited = GROWING | {"max_per_pixel": 0.6}
    run(make("straight", checkpoint_iterations=(40,), **limited), backend)
    run(make("cut", iterations=stop, checkpoint_iterations=(stop,), **limited), backend)
    resumed = make("cut", resume=True, checkpoint_iterations=(40,), **limited)
    run(resumed, backend)
    folder = resumed.model_path
    assert folder is not None
    expected = bits(folder.with_name("straight") / "chkpnt40.safetensors")
    assert bits(folder / "chkpnt40.safetensors") == expected


@pytest.mark.parametrize("count", [1, 3000, 200_000])
def test_visits_of_some_rows_tell_what_photos_show(backend: Backend, count: int) -> None:
    """Three rows in ten are always in sight, the others never: a stretch at one end, as in a Morton order."""
    table = empty_table(count)
    table.geometry[: -(-3 * count // 10), VISITS] = 50
    found = visible_share(backend.upload(table), 50)
    assert found == pytest.approx(1.0 if count == 1 else 0.3, abs=0.08)


def test_rows_that_nobody_saw_limit_nothing(backend: Backend) -> None:
    assert 0 < visible_share(backend.upload(empty_table(10)), 50) < 1e-3


def test_statistics_are_those_since_the_growth_before() -> None:
    densifier = Densifier(TrainConfig(densify_from_iter=300).densify_settings(1.0))
    assert [densifier.observed(step) for step in (400, 500, 1200)] == [400, 100, 100]


def test_nonsense_is_refused(make: Make) -> None:
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match="--max-per-pixel"):
            make(max_per_pixel=value)
