"""Time that the machine's owner took away explains part of the noise: used only if the protocol says so.

On a shared machine a run is slower while its processors are given to somebody else (*stolen* time, which the
system counts). d = δ + β·x + noise, with x the difference of the stolen shares of a block's two runs; δ is
what is asked for. The rule is fixed before the runs, `covariate = "stolen"` in protocol.toml, and looks at
the covariate in three ways only:

- at least six blocks, all with a known share, and shares that differ at all;
- no difference between the arms in it: a candidate that causes what it is excused for is not excused;
- a slope above 0, because stolen time makes nobody faster.

Otherwise the plain estimate stands. CPU time is no covariate: a faster program uses less of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from splatmeter.lab.compare.ratio import (
    FEWEST_FOR_TRIMMED,
    Estimate,
    SpeedEvidence,
    paired,
    trimmed,
)
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.run_sample import RunSample
from splatmeter.lab.samples.student import quantile

STOLEN = "stolen"
FEWEST = 6


def stolen_differences(runs: Iterable[RunSample], reference: str, candidate: str) -> tuple[float | None, ...]:
    """Share of stolen time in the reference's run minus that in the candidate's, for the same blocks and in
    the same order as `log_ratios`; None where nobody counted.
    """
    shares: dict[int, dict[str, list[float | None]]] = {}
    for run in runs:
        shares.setdefault(run.block, {}).setdefault(run.arm.name, []).append(run.stolen_share)
    both = [block for _, block in sorted(shares.items()) if reference in block and candidate in block]
    return tuple(_difference(block[reference], block[candidate]) for block in both)


def adjusted(differences: Sequence[float], covariate: Sequence[float | None]) -> SpeedEvidence | None:
    """The evidence at equal stolen time; None where the rule asks for the plain one."""
    known = [x for x in covariate if x is not None]
    n = len(differences)
    if n < FEWEST or len(known) != n:
        return None
    center = mean(known)
    squares = math.fsum((x - center) ** 2 for x in known)
    own = paired(known)
    if squares <= 0.0 or abs(own.log_mean) > own.half_width:
        return None
    slope = math.fsum((x - center) * d for x, d in zip(known, differences, strict=True)) / squares
    if slope <= 0.0:
        return None
    cleaned = [d - slope * x for x, d in zip(known, differences, strict=True)]
    level = mean(cleaned)
    residual = math.sqrt(math.fsum((d - level) ** 2 for d in cleaned) / (n - 2))
    error = residual * math.sqrt(1.0 / n + center * center / squares)
    wide, narrow = quantile(0.975, n - 2) * error, quantile(0.95, n - 2) * error
    main = Estimate("paired t at equal stolen time", n, level, residual, wide, narrow)
    return SpeedEvidence(main, trimmed(cleaned) if n >= FEWEST_FOR_TRIMMED else None)


def _difference(a: Sequence[float | None], b: Sequence[float | None]) -> float | None:
    if any(value is None for value in (*a, *b)):
        return None
    return mean([value for value in a if value is not None]) - mean(
        [value for value in b if value is not None]
    )
