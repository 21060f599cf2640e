from __future__ import annotations

import math

import pytest

from splatmeter.lab.samples.student import (
    cdf,
    normal_cdf,
    quantile,
    regularized_beta,
)

DEGREES = (1, 2, 3, 4, 5, 7.5, 9, 19, 50, 200, 201, 10_000, 1_000_000)
PROBABILITIES = (1e-6, 0.001, 0.025, 0.05, 0.3, 0.499, 0.7, 0.95, 0.975, 0.9995)


@pytest.mark.parametrize(
    ("probability", "degrees", "tabulated"),
    [
        (0.975, 1, 12.7062047362),
        (0.975, 3, 3.1824463053),
        (0.975, 5, 2.5705818356),
        (0.975, 9, 2.2621571628),
        (0.95, 4, 2.1318467863),
        (0.95, 12, 1.7822875556),
        (0.995, 7, 3.4994832974),
        (0.975, 120, 1.9799304051),
    ],
)
def test_quantiles_agree_with_printed_tables(probability: float, degrees: int, tabulated: float) -> None:
    assert quantile(probability, degrees) == pytest.approx(tabulated, abs=2e-10)


def test_one_and_two_degrees_of_freedom_agree_with_their_closed_forms() -> None:
    for t in (-40.0, -1.5, -1e-3, 0.0, 0.2, 3.0, 1e4):
        assert cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-13)
        assert cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-13)


@pytest.mark.parametrize("degrees", DEGREES)
def test_cdf_and_quantile_agree_with_scipy(degrees: float) -> None:
    special = pytest.importorskip("scipy.special", reason="scipy is absent: agreement with it is not checked")
    for t in (-50.0, -3.0, -0.1, 0.0, 0.01, 1.0, 2.5, 30.0):
        assert cdf(t, degrees) == pytest.approx(float(special.stdtr(degrees, t)), abs=1e-10)
    for p in PROBABILITIES:
        expected = float(special.stdtrit(degrees, p))
        assert quantile(p, degrees) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_quantile_undoes_the_cdf(degrees: float) -> None:
    for p in PROBABILITIES:
        assert cdf(quantile(p, degrees), degrees) == pytest.approx(p, rel=1e-10)


def test_many_degrees_of_freedom_approach_the_normal_distribution() -> None:
    assert cdf(1.3, 1e8) == pytest.approx(normal_cdf(1.3), abs=1e-8)


def test_infinite_arguments_have_certain_outcomes() -> None:
    assert (cdf(-math.inf, 3), cdf(math.inf, 3), quantile(0.5, 3)) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("call", [lambda: quantile(0.0, 3), lambda: quantile(1.0, 3), lambda: cdf(1.0, 0)])
def test_impossible_arguments_are_refused(call) -> None:
    with pytest.raises(ValueError, match=r"not|positive"):
        call()


def test_the_beta_function_refuses_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        regularized_beta(1, 1, 1.5)
