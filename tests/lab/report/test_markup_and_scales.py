"""Nothing from outside becomes markup, and ticks lie at numbers a person would choose."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splatmeter.lab.report.curves import thinned
from splatmeter.lab.report.markup import Markup, tag, text
from splatmeter.lab.report.scale import decades, linear, nice_ticks, ratios, tick_text

HOSTILE = "<script>alert('x')</script>\"'&<!--"


def test_children_and_attributes_are_escaped() -> None:
    made = tag("a", HOSTILE, title=HOSTILE)
    assert made.count("<") == 2 and "<script" not in made and "<!--" not in made
    assert "&quot;" in made and "&#x27;" in made


def test_markup_is_not_escaped_twice() -> None:
    assert tag("b", tag("i", "&")) == "<b><i>&amp;</i></b>"


def test_characters_that_hide_text_are_shown_as_replaced() -> None:
    assert text("a\u202eb\x00c\ud800") == "a\ufffdb\ufffdc\ufffd"


@pytest.mark.parametrize("name", ["onclick", "style", "a b", "x=1"])
def test_attributes_that_could_run_something_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not an attribute"):
        tag("p", **{name: "x"})


def test_a_script_takes_constants_only() -> None:
    with pytest.raises(ValueError, match="constants only"):
        tag("script", "alert(1)")
    assert tag("script", Markup("1")) == "<script>1</script>"


def test_ticks_are_multiples_of_one_two_or_five() -> None:
    assert nice_ticks(0.0, 612.0, 4) == (0.0, 200.0, 400.0, 600.0)
    assert nice_ticks(0.93, 1.12, 4) == (0.95, 1.0, 1.05, 1.1)


def test_tick_labels_have_the_decimals_they_need() -> None:
    ticks = (0.95, 1.0, 1.05)
    assert [tick_text(tick, ticks) for tick in ticks] == ["0.95", "1.00", "1.05"]
    assert tick_text(20000.0, (0.0, 20000.0)) == "20\u202f000"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20))
def test_every_value_lies_on_its_linear_scale(values: list[float]) -> None:
    scale = linear(values, 0.0, 100.0)
    slack = 1e-8 * (scale.high - scale.low)
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    assert all(-1e-6 <= scale(value) <= 100.0 + 1e-6 for value in values)
    assert 1 <= len(scale.ticks) <= 20


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-3, 1e3), max_size=20))
def test_one_always_lies_inside_a_scale_of_ratios(values: list[float]) -> None:
    scale = ratios([*values, math.inf, math.nan, 0.0], 0.0, 100.0)
    assert 0.0 < scale(1.0) < 100.0 and scale.ticks


def test_twice_and_half_as_fast_lie_equally_far_from_one() -> None:
    scale = ratios([0.5, 2.0], 0.0, 100.0)
    assert scale(2.0) - scale(1.0) == pytest.approx(scale(1.0) - scale(0.5))


def test_a_falling_loss_gets_ticks_in_every_decade() -> None:
    assert decades([0.011, 0.4], 0.0, 1.0).ticks == (0.02, 0.05, 0.1, 0.2)


def test_thinning_keeps_the_ends_and_every_spike() -> None:
    points = tuple((float(n), 99.0 if n == 777 else float(n % 3)) for n in range(5000))
    kept = thinned(points, 100)
    assert len(kept) <= 104 and kept[0] == points[0] and kept[-1] == points[-1]
    assert (777.0, 99.0) in kept
