"""The losses of a run: steps whose numbers an engine still owes, and averages of those it has told."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from splatmeter.backend import Ticket
from splatmeter.ops import Similarity

RECENT_LOSSES = 100

MOST_UNREAD = 100
"""Steps that may be under way; an engine that is further behind is waited for."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that was handed to the engine, and what the state was before it."""

    step: int
    view: str
    degree_before: int
    ticket: Ticket


class NonFiniteLossError(Exception):
    """The engine changed nothing in that step or after it; the state goes back to the step before."""

    def __init__(self, begun: Begun, loss: float) -> None:
        super().__init__(f"the loss of view {begun.view} is {loss}")
        self.begun = begun


class Losses:
    """Reads numbers in the order of steps. Asking for an average waits for all of them."""

    def __init__(self, ssim_weight: float, average: float = 0.0, recent: Iterable[float] = ()) -> None:
        self._ssim_weight = ssim_weight
        self._unread: deque[Begun] = deque()
        self._last = Similarity(math.nan, math.nan)
        self.average = average
        """0.4 new + 0.6 old, as the original shows it."""
        self.recent: deque[float] = deque(recent, maxlen=RECENT_LOSSES)

    def expect(self, begun: Begun) -> None:
        """NonFiniteLossError where this or an earlier step turned out to have no number for its loss."""
        self._unread.append(begun)
        while self._unread and (self._unread[0].ticket.ready or len(self._unread) > MOST_UNREAD):
            self._read_next()

    def read_all(self) -> None:
        """The same, after waiting for what is under way."""
        while self._unread:
            self._read_next()

    def forget_unread(self) -> None:
        self._unread.clear()

    @property
    def last(self) -> float:
        return self._last.loss(self._ssim_weight)

    @property
    def last_l1(self) -> float:
        return self._last.l1

    @property
    def recent_mean(self) -> float:
        return sum(self.recent) / len(self.recent) if self.recent else math.nan

    def _read_next(self) -> None:
        similarity = self._unread[0].ticket.read()
        loss = similarity.loss(self._ssim_weight)
        if not math.isfinite(loss):
            raise NonFiniteLossError(self._unread[0], loss)
        self._unread.popleft()
        self._last = similarity
        self.average = 0.4 * loss + 0.6 * self.average
        self.recent.append(loss)
