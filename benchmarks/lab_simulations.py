"""The lab's rules on thousands of invented comparisons, as they were and as they are.

Writes results/lab_simulations.md. Nothing here trains anything; --trials makes it quicker or finer.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from lab_noise import (
    AFTER,
    BEFORE,
    REGIMES,
    Array,
    Noise,
    Rule,
    claims,
    first_claims,
    log_ratios,
    sine,
    white,
)

from splatmeter.lab.audit.speed import collapse
from splatmeter.lab.compare.chance import FALSE_FASTER
from splatmeter.lab.compare.covariate import adjusted
from splatmeter.lab.compare.margins import TOLERANCE, margin_of
from splatmeter.lab.compare.metric import (
    CONFIDENCE,
    SUPPORTING,
    MetricResult,
    Quality,
    judge_metric,
    shared_level,
)
from splatmeter.lab.compare.quality import compare_quality
from splatmeter.lab.compare.ratio import evidence
from splatmeter.lab.samples.run_sample import (
    Arm,
    Evaluation,
    RatePoint,
    RunSample,
)
from splatmeter.lab.samples.student import quantile

RESULTS = Path(__file__).parent / "results" / "lab_simulations.md"
BLOCKS = (4, 6, 10, 20)
PSNR, SEEDS_DB, REPEATS_DB = 26.0, 0.1, 0.02
PER_DB = {"psnr": 1 / PSNR, "ssim": 0.0035 / 0.1, "lpips": 0.0166 / 0.1, "l1": 0.0115 / 0.1}
"""Fraction of a metric for each dB: by this the seeds' 0.1 dB is seen in the other metrics."""
VALUES = {"psnr": PSNR, "ssim": 0.8, "lpips": 0.24, "l1": 0.035}
ALIKE = 0.9
"""Correlation between the metrics of one model."""


def percent(share: float, trials: int) -> str:
    error = math.sqrt(max(share * (1 - share), 1 / trials) / trials)
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


# Speed


def false_faster(rule: Rule, noise: Noise, trials: int, after_aa: bool) -> dict[str, float]:
    """Share of A/A comparisons called faster, per number of blocks and until decided."""
    g = np.random.default_rng(13)
    found: dict[str, float] = {}
    for blocks in BLOCKS:
        control = log_ratios(rule, noise, g, trials, blocks) if after_aa else None
        found[str(blocks)] = claims(rule, log_ratios(rule, noise, g, trials, blocks), control)[0].mean()
    control = log_ratios(rule, noise, g, trials, 10) if after_aa else None
    found["until decided, 20"] = first_claims(rule, log_ratios(rule, noise, g, trials, 20, True), control)[
        0
    ].mean()
    return found


def regimes(trials: int) -> str:
    rows: list[list[str]] = []
    for name, noise in REGIMES.items():
        row = [name]
        for rule, after_aa in ((BEFORE, False), (AFTER, False), (AFTER, True)):
            found = false_faster(rule, noise, trials, after_aa)
            worst = max(found, key=found.__getitem__)
            row += [f"{percent(found[worst], trials)} ({worst})", f"{100 * found['until decided, 20']:.1f}"]
        rows.append(row)
    head = ["regime", "before: worst", "until decided", "after: worst", "until decided"]
    return table([*head, "after, with an A/A: worst", "until decided"], rows)


def power(trials: int) -> str:
    """Share of true speed-ups of 3 % called faster."""
    plain: Noise = lambda g, rows, runs: 0.02 * g.standard_normal((rows, runs))  # noqa: E731
    cases: dict[str, tuple[Noise, float]] = {"2 % noise a run": (plain, 0.0)}
    for name in ("AR(1) 0.8, 2 %", "drift -0.4 % a run", "one step of 5 %", "spikes: 10 % of runs, 6.4 %"):
        cases[name] = (REGIMES[name], 0.008)
    rows: list[list[str]] = []
    for name, (noise, jitter) in cases.items():
        for blocks in (4, 6, 10):
            row = [name, str(blocks)]
            for rule, after_aa in ((BEFORE, False), (AFTER, False), (BEFORE, True), (AFTER, True)):
                g = np.random.default_rng(11)
                control = log_ratios(rule, noise, g, trials, blocks, jitter=jitter) if after_aa else None
                d = math.log(1.03) + log_ratios(rule, noise, g, trials, blocks, jitter=jitter)
                row.append(percent(claims(rule, d, control)[0].mean(), trials))
            rows.append(row)
    return table(["noise", "blocks", "before", "after", "before, with an A/A", "after, with an A/A"], rows)


def locked(trials: int) -> str:
    rows: list[list[str]] = []
    for period in (2, 2.5, 3, 3.5, 4, 5, 6, 8, 12):
        row = [f"{period:g} runs"]
        for rule in (BEFORE, AFTER):
            g = np.random.default_rng(12)
            noise = sine(period)
            four = claims(rule, log_ratios(rule, noise, g, trials, 4))
            until = first_claims(rule, log_ratios(rule, noise, g, trials, 20, True))
            row += [
                percent(four[0].mean(), trials),
                percent(four[1].mean(), trials),
                percent(until[0].mean(), trials),
            ]
        rows.append(row)
    words = ("faster, 4 blocks", "slower, 4 blocks", "faster, until decided")
    return table(["period", *(f"{rule}: {word}" for rule in ("before", "after") for word in words)], rows)


def controls(trials: int) -> str:
    """What an A/A does that leans by chance, is of another day, or shows a bias of the set-up itself."""
    rows: list[list[str]] = []
    for name, bias, day, effect in (
        ("A/A fails by chance", 0.0, 1.0, 0.0),
        ("true 3 %, A/A of a day four times as noisy", 0.0, 4.0, math.log(1.03)),
        ("nothing, A/A of a day half as noisy", 0.0, 0.5, 0.0),
        ("nothing but a bias of 2 % of the set-up, in both", 0.02, 1.0, 0.02),
        ("nothing but a bias of 5 % of the set-up, in both", 0.05, 1.0, 0.05),
    ):
        row = [name]
        for rule in (BEFORE, AFTER):
            g = np.random.default_rng(14)
            control = bias + 0.0283 * day * g.standard_normal((trials, 10))
            d = effect + 0.0283 * g.standard_normal((trials, 10))
            huge = np.full((trials, 10), 1.0) + 1e-4 * g.standard_normal((trials, 10))
            failed = name.startswith("A/A fails")
            share = (
                1 - claims(rule, huge, control)[0].mean() if failed else claims(rule, d, control)[0].mean()
            )
            row.append(percent(share, trials))
        rows.append(row)
    return table(["ten blocks, 2 % noise a run", "before", "after"], rows)


def stolen(trials: int) -> str:
    """Ten blocks, s_d of 2.83 %, of which stolen time explains a share; the product's own estimates."""
    rows: list[list[str]] = []
    for explained, causes in ((0.0, 0.0), (0.5, 0.0), (0.8, 0.0), (0.5, 0.05)):
        row = [
            f"{100 * explained:.0f} %" + (", and the candidate loses 5 % more to others" if causes else "")
        ]
        for effect in (0.0, math.log(1.03)):
            g = np.random.default_rng(17)
            plain = at_equal = 0
            for _ in range(trials):
                x = 0.05 * g.standard_normal(10) - causes
                noise = math.sqrt(1 - explained) * g.standard_normal(10)
                d = effect + 0.0283 * (math.sqrt(explained) * x / 0.05 + noise)
                own = evidence(d.tolist())
                other = adjusted(d.tolist(), x.tolist()) or own
                plain += own.main.log_mean > own.main.half_width
                at_equal += other.main.log_mean > other.main.half_width
            row += [percent(plain / trials, trials), percent(at_equal / trials, trials)]
        rows.append(row)
    head = ["explained by stolen time", "nothing: faster, plain", "at equal stolen time"]
    return table([*head, "true 3 %: faster, plain", "at equal stolen time"], rows)


def asked_again(trials: int) -> str:
    """Pairs that share seeds are added one by one from the fourth to the twentieth, until PSNR is held."""
    rows: list[list[str]] = []
    for loss in (0.0, 0.005, 0.0075, 0.01):
        g = np.random.default_rng(18)
        gain = -loss + SEEDS_DB / PSNR * g.standard_normal((trials, 20))
        held = np.zeros(trials, bool)
        lost = np.zeros(trials, bool)
        for n in range(4, 21):
            mean, error = gain[:, :n].mean(1), gain[:, :n].std(1, ddof=1) / math.sqrt(n)
            held |= mean - quantile(CONFIDENCE, n - 1) * error > -TOLERANCE
            lost |= mean + quantile(0.95, n - 1) * error < -TOLERANCE
        rows.append([f"{100 * loss:g} %", percent(held.mean(), trials), percent(lost.mean(), trials)])
    return table(["true loss of PSNR", "held at some look", "lost at some look"], rows)


def many_phases(trials: int) -> str:
    """Labs of twenty phases that change nothing."""
    shares: list[float] = []
    for rule in (BEFORE, AFTER):
        g = np.random.default_rng(15)
        shares.append(
            claims(rule, log_ratios(rule, white, g, 20 * trials, 6))[0].reshape(trials, 20).any(1).mean()
        )
    told = 1 - (1 - FALSE_FASTER) ** 20
    return (
        "Twenty phases that change nothing, white noise, six blocks: a false *faster* in "
        f"{percent(shares[1], trials)} % of labs; log and report say {100 * told:.0f} %, "
        f"{20 * FALSE_FASTER:g} expected."
    )


# Quality


def gains(
    g: np.random.Generator, pairs: int, rho: float, loss: float, steps: int, alike: float = ALIKE
) -> Array:
    """[steps, pairs, 4] gains as fractions; `loss` is the true loss of PSNR as a fraction."""
    scale = np.array([PER_DB[metric] for metric in VALUES])
    direction = np.sqrt(2 * (1 - rho)) * SEEDS_DB
    common = g.standard_normal((1, pairs, 1))
    own = g.standard_normal((steps, pairs, 1)) if steps > 1 else common
    shared = np.sqrt(0.7) * common + np.sqrt(0.3) * own if steps > 1 else common
    each = g.standard_normal((steps, pairs, 4))
    decibels = direction * (np.sqrt(alike) * shared + np.sqrt(1 - alike) * each) - loss * PSNR
    return decibels * scale


def judged(found: Array, margins: Sequence[float], new: bool) -> list[MetricResult]:
    results: list[MetricResult] = []
    for place, step in enumerate(found):
        for metric, margin, gain in zip(VALUES, margins, step.T, strict=True):
            value = VALUES[metric]
            sign = 1.0 if metric in ("psnr", "ssim") else -1.0
            pairs = [(value, value * (1 + sign * float(x))) for x in gain]
            main = metric == "psnr" and place == len(found) - 1
            confidence = CONFIDENCE if main or not new else SUPPORTING
            results.append(judge_metric((metric, "test", place), pairs, False, margin, confidence))
    return list(shared_level(results)) if new else results


def gate_rates(
    new: bool, pairs: int, rho: float, loss: float, steps: int, trials: int
) -> tuple[float, float]:
    """(all metrics held, any lost)"""
    g = np.random.default_rng(10)
    margins = [margin_of(metric, TOLERANCE) if new else TOLERANCE for metric in VALUES]
    held = lost = 0
    for _ in range(trials):
        results = judged(gains(g, pairs, rho, loss, steps), margins, new)
        lost += any(result.quality is Quality.LOST for result in results)
        held += all(result.acceptable for result in results)
    return held / trials, lost / trials


def gate(trials: int) -> str:
    rows: list[list[str]] = []
    for pairs, rho in ((4, 0.5), (6, 0.5), (10, 0.0), (8, 0.5)):
        for steps in (1, 2):
            for loss, name in ((0.0, "equal"), (0.01, "1 % lost"), (0.005, "0.5 % lost, the tolerance")):
                if (pairs, rho) in ((4, 0.5), (8, 0.5)) and loss == 0.005:
                    continue
                old = gate_rates(False, pairs, rho, loss, steps, trials)
                new = gate_rates(True, pairs, rho, loss, steps, trials)
                seeds = "shared seeds" if rho else "independent"
                design = f"{pairs} pairs, {seeds}, {steps} step{'s' * (steps > 1)}"
                rows.append(
                    [design, name, *(percent(share, trials) for share in (old[0], new[0], old[1], new[1]))]
                )
    return table(["design", "truth", "held, before", "held, after", "lost, before", "lost, after"], rows)


def one_seed(trials: int) -> str:
    """The trainer takes no seed: four blocks repeat one, and the change draws once anew."""
    rows: list[list[str]] = []
    for loss, name in ((0.0, "equal"), (0.01, "1 % lost")):
        g = np.random.default_rng(9)
        before, after = [0, 0], [0, 0]
        for _ in range(trials):
            sides = PSNR + SEEDS_DB * g.standard_normal((2, 1)) + REPEATS_DB * g.standard_normal((2, 4))
            sides[1] -= loss * PSNR
            pairs = list(zip(*sides.tolist(), strict=True))
            old = judge_metric(("psnr", "test", 1), pairs, False, TOLERANCE).quality
            runs = [seedless(arm, block, value) for arm, values in zip("AB", sides.tolist(), strict=True)
                    for block, value in enumerate(values)]  # fmt: skip
            new = compare_quality(runs, "A", "B")[0].quality
            for count, quality in ((before, old), (after, new)):
                count[0] += quality is Quality.NON_INFERIOR
                count[1] += quality is Quality.LOST
        rows.append(
            [name, *(percent(n / trials, trials) for n in (before[0], after[0], before[1], after[1]))]
        )
    return table(["truth", "held, before", "held, after", "lost, before", "lost, after"], rows)


def seedless(arm: str, block: int, psnr: float) -> RunSample:
    evaluation = Evaluation(1, "test", {"psnr": psnr})
    return RunSample(Arm(arm), block, 0, 1.0, 1, 1, 1, seed=block, seed_set=False, evaluations=(evaluation,))


# Stretches of a run


def collapses(trials: int) -> str:
    """Comparisons of twelve runs with twenty stretches each."""
    cases: dict[str, Callable[[np.random.Generator], Array]] = {
        "0.3 % of stretches are ten times slower": lambda g: np.where(g.random(20) < 0.003, 1.0, 10.0),
        "a fifth of a run is three and a half times slower": lambda g: np.where(
            np.arange(20) < 16, 10.0, 2.8
        ),
        "memory runs over after 60 % of a run, five times slower": lambda g: np.where(
            np.arange(20) < 12, 10.0, 2.0
        ),
    }
    rows: list[list[str]] = []
    for name, speeds in cases.items():
        g = np.random.default_rng(16)
        before = after = 0
        for _ in range(trials):
            runs = [_rates(speeds(g) * (1 + 0.05 * g.standard_normal(20))) for _ in range(12)]
            before += any(_fell(run) for run in runs)
            after += any(collapse(run) for run in runs)
        rows.append([name, percent(before / trials, trials), percent(after / trials, trials)])
    return table(["what happens", "questionable, before", "questionable, after"], rows)


def _rates(speeds: Array) -> RunSample:
    points = tuple(RatePoint(50 * (i + 1), 1000, float(speed)) for i, speed in enumerate(speeds))
    return RunSample(Arm("A"), 0, 0, 1.0, 1, 1000, 1000, rates=points)


def _fell(run: RunSample) -> bool:
    speeds = [point.steps_per_second for point in run.rates]
    return any(max(speeds[:i]) > 3 * speeds[i] for i in range(1, len(speeds)))


def few_of(trials: int) -> int:
    """The product judges quality one comparison at a time."""
    return max(10, trials // 10)


def sections(trials: int) -> Iterator[tuple[str, str]]:
    few = few_of(trials)
    yield (
        "9. Repeats of one seed: 0.1 dB between seeds, 0.02 dB between repeats, one redraw by the change",
        one_seed(few),
    )
    yield "10. The gate: PSNR, SSIM, LPIPS and L1, 0.1 dB between seeds, correlated 0.9", gate(few)
    yield "10. Asking for one more pair again and again, PSNR alone", asked_again(trials)
    yield "11. Power: a true speed-up of 3 %", power(trials)
    yield "11. What an A/A does", controls(trials)
    yield (
        "11. False *faster* in 23 regimes, the worst of 4, 6, 10, 20 blocks and until decided",
        regimes(trials),
    )
    yield "12. Disturbances locked to the run count: sines of 5 % over 0.8 % noise", locked(trials)
    yield "13. Speed collapse", collapses(few)
    yield "13. Stolen time as a covariate (only if the protocol says so)", stolen(few)
    yield "14. Many phases", many_phases(few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--trials", type=int, default=20_000, help="of each rule on speed; a tenth for quality"
    )
    trials = parser.parse_args().trials
    begin = time.perf_counter()
    parts = [
        "# The lab's rules by simulation",
        f"Per cent with their standard errors, of {trials:,} comparisons on speed and "
        f"{few_of(trials):,} on quality. *Before* is 308345a. Made by `benchmarks/lab_simulations.py`.",
    ]
    for title, text in sections(trials):
        parts += [f"## {title}", text]
        print(f"{time.perf_counter() - begin:6.0f} s  {title}", flush=True)
    RESULTS.write_text("\n\n".join([*parts, ""]), "utf-8")
    print(RESULTS)


if __name__ == "__main__":
    main()
