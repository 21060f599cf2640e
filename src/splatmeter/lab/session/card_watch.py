"""The card of a run: which one it is, how it did, and what record and log say of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from splatmeter.lab.executor import Command
from splatmeter.lab.json_files import write_text
from splatmeter.lab.monitor import clocks
from splatmeter.lab.monitor.clocks import CardState
from splatmeter.lab.monitor.nvml import Card, cards
from splatmeter.lab.monitor.which_card import which_card

LOOK_SECONDS = 1.0
"""Between two looks at clocks and heat; memory is looked at more often."""
_COLUMNS = ("seconds", "graphics_mhz", "memory_mhz", "celsius", "watts", "reasons", "busy")


class CardWatch:
    """Looks at the card that a command will use; nothing is asked of it where there is none."""

    def __init__(self, command: Command | None = None) -> None:
        self._cards = cards()
        variables = os.environ | dict(command.environment if command else {})
        choice = which_card(self._cards, variables, command.arguments if command else ())
        self.card: Card | None = choice.card
        self.because, self._certain = choice.because, choice.certain
        self.facts: dict[str, Any] = choice.card.facts() if choice.card else {}
        self.total_bytes: int | None = self.facts.get("memory_bytes")
        self.states: list[CardState] = []
        self.seen = False
        """A process of the run was seen on it."""
        self._pids: Callable[[], Sequence[int]] = lambda: ()
        self._begin = self._looked = time.perf_counter()

    def begin(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._begin = time.perf_counter()
        self._looked = self._begin - LOOK_SECONDS

    def look(self) -> int | None:
        """Bytes that all processes use on the card; now and then it also notes the card's state."""
        if self.card is None:
            return None
        now = time.perf_counter()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if not self.seen:
                self._search()
            self.states.append(self.card.state(now - self._begin))
        return self.card.used_bytes()

    def _search(self) -> None:
        """The driver's list of processes decides, where it has one, if the rules of CUDA leave a doubt."""
        pids = self._pids()
        for card in self._cards.found if not self._certain else (self.card,):
            if card is not None and card.runs(pids):
                self.seen = self._certain = True
                self.because += ", and a process of the run was seen on it" if card is self.card else ""
                if card is not self.card:
                    self.card, self.facts = card, card.facts()
                    self.because = "a process of the run was seen on it"
                    self.total_bytes = self.facts.get("memory_bytes")
                    self.states.clear()
                return

    def record(self, folder: Path) -> dict[str, Any]:
        if self.card is None:
            return {"reason": self.because}
        if self.states:
            rows = [[_cell(getattr(state, name)) for name in _COLUMNS] for state in self.states]
            write_text(
                folder / "card.csv", "\n".join(",".join(row) for row in [list(_COLUMNS), *rows]) + "\n"
            )
        return {
            **self.facts,
            "chosen_by": self.because,
            "certain": self._certain,
            "seen": self.seen,
            **clocks.card_summary(self.states),
        }

    def close(self) -> None:
        self._cards.close()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def card_facts(variables: Mapping[str, str], words: Sequence[str] = ()) -> dict[str, Any]:
    """Facts about the card that a command with these variables will use; {} where none can be seen."""
    found = cards()
    try:
        card = which_card(found, variables, words).card
        return card.facts() if card else {}
    finally:
        found.close()
