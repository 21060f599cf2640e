"""How many planted contradictions the audit finds, and that it invents none."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted import Spoiled, doubted, matched, spoiled

from splatmeter.lab.handlog import parse_log, understanding

STYLES = spoiled("logs")
UNSEEN = spoiled("unseen")
"""Each was written before the auditor had met it; docs/lab.md has the rates of that first meeting."""
ALL = [*STYLES, *UNSEEN]
STORY = Path(__file__).parents[3] / "examples" / "garden_story.md"


def test_six_styles_have_at_least_thirty_plants() -> None:
    assert len(STYLES) == 6 and sum(len(log.plants) for log in STYLES) >= 30


def test_most_of_what_was_planted_is_found() -> None:
    for logs in (STYLES, UNSEEN):
        found = sum(len(matched(log)[0]) for log in logs)
        assert found >= 0.85 * sum(len(log.plants) for log in logs)


@pytest.mark.parametrize("log", ALL, ids=lambda log: log.name)
def test_no_style_is_left_out(log: Spoiled) -> None:
    found, invented = matched(log)
    missed = [plant.what for plant in log.plants if plant not in found]
    assert len(found) >= 0.7 * len(log.plants), missed
    assert invented == []


@pytest.mark.parametrize("log", ALL, ids=lambda log: log.name)
def test_a_clean_log_is_left_alone_because_it_was_understood(log: Spoiled) -> None:
    assert doubted(log.clean) == []
    read = understanding(parse_log(log.clean))
    assert read.enough and read.understood >= 0.7 * read.read and read.phases >= 4


def test_the_story_among_the_examples_is_clean() -> None:
    text = STORY.read_text("utf-8")
    assert doubted(text) == [] and understanding(parse_log(text)).enough
