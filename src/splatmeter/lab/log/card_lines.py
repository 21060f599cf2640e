"""The graphics card in the words of the log: which one it was, and how it did."""

from __future__ import annotations

from collections.abc import Sequence

from splatmeter.lab.monitor import clocks
from splatmeter.lab.record.result import RunResult


def card_configuration(results: Sequence[RunResult]) -> dict[str, str]:
    """For the head of the log: which card, or why nobody knows; {} where none was used."""
    for result in results:
        if result.card_used:
            return {"Graphics card": clocks.card_text(result.card)}
    for result in results:
        reason = result.card.get("reason")
        if result.on_a_card and reason:
            return {"Graphics card": f"not observed ({reason})"}
    return {}


def card_line(results: Sequence[RunResult]) -> str:
    """How the card did in all runs of a phase; empty where nothing was seen."""
    return clocks.state_text(clocks.merged([result.card for result in results if result.card_used]))
