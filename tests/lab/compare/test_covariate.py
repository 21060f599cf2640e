"""Stolen time explains noise, or it is left alone: the rule is fixed before the runs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.covariate import adjusted, stolen_differences
from splatmeter.lab.compare.ratio import evidence, log_ratios
from splatmeter.lab.samples.run_sample import Arm, RunSample

STOLEN = [0.02, -0.03, 0.05, -0.01, -0.04, 0.01, 0.03, -0.03]
NOISE = [0.002, -0.001, 0.001, -0.002, 0.0, 0.001, -0.002, 0.001]
EXPLAINED = [0.03 + 1.2 * x + e for x, e in zip(STOLEN, NOISE, strict=True)]


def test_what_stolen_time_explains_is_no_noise_any_more() -> None:
    plain, found = evidence(EXPLAINED), adjusted(EXPLAINED, STOLEN)
    assert found is not None and found.main.half_width < 0.2 * plain.main.half_width
    assert found.main.log_mean == pytest.approx(0.03, abs=0.002) and found.trimmed is not None
    assert "stolen" in found.main.method


def test_the_interval_is_that_of_the_intercept_of_a_regression() -> None:
    found = adjusted(EXPLAINED, STOLEN)
    design = np.stack([np.ones(8), STOLEN], axis=1)
    fitted, squares, *_ = np.linalg.lstsq(design, np.array(EXPLAINED), rcond=None)
    error = math.sqrt(float(squares[0]) / 6 * float(np.linalg.inv(design.T @ design)[0, 0]))
    assert found is not None
    assert found.main.log_mean == pytest.approx(float(fitted[0]))
    assert found.main.half_width == pytest.approx(2.446911851 * error)


@pytest.mark.parametrize(
    ("differences", "covariate"),
    [
        (EXPLAINED[:5], STOLEN[:5]),  # too few
        (EXPLAINED, [*STOLEN[:-1], None]),  # unknown
        (EXPLAINED, [0.01] * 8),  # all alike
        (EXPLAINED, [0.2 + x for x in STOLEN]),  # the arms differ in it
        ([-d for d in EXPLAINED], STOLEN),  # slower with less stolen
    ],
)
def test_otherwise_the_plain_estimate_stands(differences: list[float], covariate: list[float | None]) -> None:
    assert adjusted(differences, covariate) is None


def runs() -> list[RunSample]:
    found: list[RunSample] = []
    for block, (d, x) in enumerate(zip(EXPLAINED, STOLEN, strict=True)):
        plain = RunSample(Arm("A"), block, 0, 10 * math.exp(d), 100, 1000, 1000, stolen_share=0.1 + x)
        found += [plain, dataclasses.replace(plain, arm=Arm("B"), seconds=10.0, stolen_share=0.1)]
    return found


def test_it_is_used_only_if_the_protocol_said_so() -> None:
    assert log_ratios(runs(), "A", "B") == pytest.approx(EXPLAINED)
    assert stolen_differences(runs(), "A", "B") == pytest.approx(STOLEN)
    plain, asked = compare(runs(), "A", "B"), compare(runs(), "A", "B", Rules(covariate="stolen"))
    assert plain.speed == evidence(list(log_ratios(runs(), "A", "B")))
    assert "stolen" in asked.speed.main.method
    peeking = compare(runs(), "A", "B", Rules(covariate="stolen", until_decided=True))
    assert "anytime" in peeking.speed.main.method


def test_what_nobody_counted_is_unknown() -> None:
    unknown = [dataclasses.replace(run, stolen_share=None) for run in runs()]
    assert set(stolen_differences(unknown, "A", "B")) == {None}
    assert "stolen" not in compare(unknown, "A", "B", Rules(covariate="stolen")).speed.main.method
