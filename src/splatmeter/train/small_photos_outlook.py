"""How many Gaussians there will be where photos are small at first and --max-per-pixel holds growth back.

The course of such a set tells nothing: it stands still while photos are small and bursts once they are large.
What tells is the share of its Gaussians that ask for more, whether they get it or not: it hardly changes when
photos become large. Parts and factors were measured with --preset fast on six scenes, some of them in several
sizes: benchmarks/results/memory_forecast.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.train import progressive
from splatmeter.train.config import TrainConfig

ADDITIONS = (4.0, 2.4, 1.75, 1.3)
"""By so much later densifications add more, on average, than the first, the second, ... has added, where
nothing holds growth."""
HELD = 0.9
"""From this share of what is allowed on, a set is held back."""
LOOSER = 1.12
"""What is allowed grows a little as Gaussians become smaller, because a photo shows fewer of them."""
RELEASED = (1.0, 1.05, 1.15, 0.95, 0.75, 0.55)
"""A set that was held back grows by these parts of the share that asked for it while it was, in the first
densifications with large photos."""
NEVER_HELD = (1.0, 1.05, 1.05, 0.8, 0.6, 0.5)
"""The same for one that was not."""
LATER = 0.85
"""All parts go on falling by this factor."""
LEAST = 0.5
"""Of all parts, for the lower end."""
CONTENT, MOST_CONTENT, TRUST = 0.1, 1.0, 0.7
"""The share that asks falls at least with the first power of how many there are, while photos are small. A
steeper fall that was seen is believed to the last share, up to the second power."""
CONTENT_OF_RANDOM_POINTS = 0.6
"""The first power where points were random: few are left of them, which ask for much at first."""
DIFFERENT = 1.06
"""A set that has grown by less shows no such fall."""
CROWDED = 0.35
"""Small photos ask for less where points alone are more than is allowed: by this power of how many more."""


@dataclass(slots=True)
class SmallPhotosOutlook:
    config: TrainConfig
    random_points: bool = False
    _rounds: int = 0
    _held: bool = False
    _crowding: float = 1.0
    _asks: tuple[tuple[int, float], ...] = ()
    """Of the latest two densifications: how many there were before it, and the share of them that asked."""

    def note(
        self, step: int, before: int, gaussians: int, wanted: int, allowed: int
    ) -> tuple[float, float] | None:
        """Fewest and most at the end of growth, after a densification from `before` to `gaussians`. None
        where small photos have nothing to do with it."""
        self._rounds += 1
        self._asks = (*self._asks[-1:], (before, wanted / max(1, before)))
        stages = progressive.parse(self.config.progressive)
        if not self.config.max_per_pixel or not stages or not wanted:
            return None
        interval = self.config.densification_interval
        small = stages[-1].last // interval * interval  # the last densification with small photos
        large = max(0, (self.config.last_growth - max(step, small)) // interval)
        if step > small:
            return self._with_large_photos(gaussians, large, (step - small) // interval)
        added = ADDITIONS[min(self._rounds, len(ADDITIONS)) - 1] * max(0, gaussians - before)
        free = gaussians + added * ((small - step) // interval)
        self._held = gaussians >= HELD * allowed > 0
        if not self._held and free < (allowed or math.inf):
            return gaussians, free + added * large
        held = min(free, max(gaussians, LOOSER * allowed))
        self._crowding = max(1.0, gaussians / max(1, allowed)) ** CROWDED
        fewest, most = grown(held, self._crowding * self._asked_by(held), large, RELEASED)
        return gaussians / held * fewest, most

    def _with_large_photos(self, gaussians: int, rounds: int, done: int) -> tuple[float, float] | None:
        """After some of these densifications a set's own course tells more."""
        parts = RELEASED if self._held else NEVER_HELD
        # half of what counts for the first was gathered with small ones
        asked = self._asks[-1][1] * (self._crowding if done == 1 else 1.0)
        return grown(gaussians, asked, rounds, parts, done) if done < len(parts) else None

    def _asked_by(self, gaussians: float) -> float:
        """The share that will ask when there are so many. The first densification tells nothing of a fall:
        points are not yet Gaussians of their surroundings."""
        (earlier, more), (before, asked) = self._asks[0], self._asks[-1]
        power = CONTENT_OF_RANDOM_POINTS if self.random_points else CONTENT
        if self._rounds > 2 and before > DIFFERENT * earlier and more > 0:
            falls = math.log(more / asked) / math.log(before / earlier)
            power = max(power, TRUST * min(MOST_CONTENT, falls))
        return asked * (before / gaussians) ** power


def grown(
    gaussians: float, asked: float, rounds: int, parts: Sequence[float], done: int = 0
) -> tuple[float, float]:
    """Fewest and most after so many more densifications, where so many were done since photos are large, and
    `asked` is the share that asked for the latest."""
    later = [*parts, *(parts[-1] * LATER**age for age in range(1, done + rounds + 2 - len(parts)))]
    shares = [asked * part / parts[done] for part in later[done + 1 : done + rounds + 1]]
    fewest, most = (math.prod(1 + part * share for share in shares) for part in (LEAST, 1.0))
    return gaussians * fewest, gaussians * most
