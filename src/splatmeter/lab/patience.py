"""How long a run may take, and how long it may say nothing: a hang ends, whatever it is waiting for."""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.units import duration_text

SILENCE_SECONDS = 600.0
WITHOUT_EVENTS = 6
"""Many times the silence: how long a run may print without any progress; a spinner is no training."""
TIMES_THE_SLOWEST = 5.0
"""A run that takes this many times the slowest run of the reference is taken to hang."""


SHORTEST_LIMIT = 60.0
"""A short run on a busy machine is late without hanging."""


@dataclass(slots=True)
class Patience:
    """Asked twice a second with the seconds since the start; 0 means no limit."""

    limit: float = 0.0
    silence: float = 0.0
    _heard: float = 0.0
    _event: float = 0.0

    def heard(self, seconds: float) -> None:
        self._heard = max(self._heard, seconds)

    def event(self, seconds: float) -> None:
        self._event = max(self._event, seconds)

    def over(self, seconds: float) -> str:
        """Why it must end now; empty if it may go on."""
        if self.limit and seconds > self.limit:
            return f"it ran for more than its time limit of {duration_text(self.limit)}"
        if self.silence and seconds - self._heard > self.silence:
            return f"it printed nothing for {duration_text(self.silence)}"
        if self.silence and seconds - self._event > WITHOUT_EVENTS * self.silence:
            return f"it printed, but made no progress for {duration_text(WITHOUT_EVENTS * self.silence)}"
        return ""
