"""Densification in a part of space: Gaussians elsewhere stay as many as they are."""

from __future__ import annotations

import numpy as np
import pytest
from test_densify import LARGE, SMALL, grown, table_of

from splatmeter.backend import GrowthRule
from splatmeter.backends.cuda.model import CudaModel
from splatmeter.densify import region
from splatmeter.errors import CardUnavailable, UsageError

BELOW_2 = ((-1.0, 0.0, 0.0, -2.5),)  # rows 0, 1 and 2 of a table whose row i lies at x = i


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,0,0",
        "1,0,0,0,0",
        "a,b,c,d",
        "0,0,0,1",
        "1,0,0,nan",
        "inf,0,0,1",
        "1,0,0,1;",
        ";".join(["1,0,0,1"] * 65),
    ],
)
def test_what_is_no_region_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match="--densify-region"):
        region.parse(text)


def test_a_region_as_text_is_the_same_region_to_the_last_bit() -> None:
    given = ((0.1, 1 / 3, -2.0, 1e-17), (-1.0, 0.0, 0.0, 5e10))
    assert region.parse(region.text_of(given)) == given
    assert region.text_of(()) is None and region.parse(None) == ()


def test_inside_is_all_half_spaces_at_once_with_their_borders() -> None:
    points = np.array([[0, 0, 0], [2, 0, 0], [2.1, 0, 0], [np.nan, 0, 0]], np.float32)
    between = ((1.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, -2.0))
    assert region.inside(points, between).tolist() == [True, True, False, False]
    assert region.inside(points[:3], ()).all()


@pytest.mark.parametrize("strategy", ["3dgs", "gof", "cut"])
def test_only_inside_do_gaussians_become_more(strategy: str) -> None:
    table, change = grown(
        table_of([SMALL, LARGE, SMALL, LARGE, SMALL, LARGE], [0.5] * 6, [1.0] * 6),
        strategy=strategy,
        region=BELOW_2,
    )
    assert change.cloned + change.split == 3
    outside = table.harmonics[:, 0] >= 3  # the colour tells the row that one comes from
    assert sorted(table.harmonics[outside, 0].tolist()) == [3.0, 4.0, 5.0]
    assert np.count_nonzero(~outside) == 6


def test_faint_ones_go_everywhere() -> None:
    table, change = grown(table_of([SMALL] * 5, [0.5, 0.5, 0.5, 0.001, 0.5], [0.0] * 5), region=BELOW_2)
    assert change.pruned == 1 and sorted(table.harmonics[:, 0].tolist()) == [0.0, 1.0, 2.0, 4.0]


def test_what_lies_outside_does_not_change_who_is_chosen_inside() -> None:
    """The gof criterion goes by shares: a stand-in with a large gradient must not move its threshold."""
    gradients = [3e-4, 1e-5, 2e-5]
    alone, _ = grown(table_of([SMALL] * 3, [0.5] * 3, gradients), strategy="gof")
    beside, _ = grown(
        table_of([SMALL] * 40, [0.5] * 40, gradients + [1.0] * 37), strategy="gof", region=BELOW_2
    )
    inside = beside.harmonics[:, 0] < 3
    np.testing.assert_array_equal(np.sort(alone.harmonics[:, 0]), np.sort(beside.harmonics[inside, 0]))


def test_a_budget_goes_to_the_inside() -> None:
    table, _ = grown(
        table_of([SMALL] * 6, [0.5] * 6, [1.0, 2.0, 3.0, 9.0, 9.0, 9.0]), max_gaussians=7, region=BELOW_2
    )
    assert table.count == 7 and np.count_nonzero(table.harmonics[:, 0] == 2) == 2


def test_relocation_copies_only_what_lies_inside() -> None:
    given = table_of([SMALL] * 6, [0.001, 0.9, 0.9, 0.9, 0.9, 0.001], [0.0] * 6)
    table, change = grown(given, strategy="mcmc", max_gaussians=6, region=BELOW_2)
    assert change.cloned == 2 and table.count == 6
    assert sorted(table.harmonics[table.harmonics[:, 0] >= 3, 0].tolist()) == [3.0, 4.0]


def test_relocation_without_anybody_inside_changes_nothing() -> None:
    nowhere = ((1.0, 0.0, 0.0, 1e9),)
    table, change = grown(
        table_of([SMALL] * 3, [0.001, 0.9, 0.9], [0.0] * 3), strategy="mcmc", max_gaussians=9, region=nowhere
    )
    assert table.count == 3 and change.cloned == 0


def test_a_card_refuses_by_the_options_name() -> None:
    model = object.__new__(CudaModel)
    rule = GrowthRule("gof", 0, 1, 1.0, 1.0, 0.005, 1.0, None, BELOW_2)
    with pytest.raises(CardUnavailable, match="--densify-region"):
        model.grow(rule)
