"""Active forms of scales and opacities, and what the 3D filter does to them."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.errors import InputError
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.harmonics import C0, coefficients_of, dc_from_rgb, degree_of, rgb_from_dc
from splatmeter.ops import FILTER_3D, LOG_SCALES, OPACITY_LOGITS, ROTATIONS, Table, empty_table


def random_table(count: int = 200, seed: int = 3) -> Table:
    generator = np.random.default_rng(seed)
    table = empty_table(count, trainable=False)
    table.geometry[:, :11] = generator.normal(0, 2, (count, 11))
    table.geometry[:, FILTER_3D] = generator.uniform(0, 0.5, count)
    table.harmonics[:] = generator.normal(0, 1, (count, 48))
    return table


def test_filtered_forms_match_the_published_products() -> None:
    table = random_table()
    scales = np.exp(table.geometry[:, LOG_SCALES].astype(np.float64))  # [N, 3]
    spread = scales**2 + table.geometry[:, FILTER_3D, None].astype(np.float64) ** 2
    opacity = 1 / (1 + np.exp(-table.geometry[:, OPACITY_LOGITS].astype(np.float64)))
    expected = opacity * np.sqrt((scales**2).prod(1) / spread.prod(1))
    np.testing.assert_allclose(gaussians.filtered_scales(table), np.sqrt(spread), rtol=1e-6)
    np.testing.assert_allclose(gaussians.filtered_opacities(table), expected, rtol=1e-6)
    np.testing.assert_allclose(
        gaussians.fused(table)[1], np.log(expected / (1 - expected)), rtol=1e-9, atol=1e-9
    )


def test_without_a_filter_nothing_changes() -> None:
    table = random_table()
    table.geometry[:, FILTER_3D] = 0
    np.testing.assert_allclose(gaussians.filtered_scales(table), gaussians.scales(table), rtol=1e-6)
    np.testing.assert_allclose(gaussians.filtered_opacities(table), gaussians.opacities(table), rtol=1e-6)
    logits = table.geometry[:, OPACITY_LOGITS]
    np.testing.assert_allclose(gaussians.fused(table)[1], logits, rtol=1e-6)


def test_a_collapsed_axis_stays_finite() -> None:
    """s = e^-60: the product of squares is far below the smallest float32."""
    table = empty_table(1, trainable=False)
    table.geometry[0, LOG_SCALES] = (-60, -1, -1)
    table.geometry[0, FILTER_3D] = 0.01
    logit = gaussians.fused(table)[1][0]
    assert np.isfinite(logit)
    assert logit == pytest.approx(np.log(0.5) - 60 - np.log(0.01), rel=1e-3)
    assert np.isfinite(gaussians.filtered_log_scales(table)).all()


@pytest.mark.parametrize("stored", [-200.0, -5.0, 0.0, 30.0, 200.0])
def test_extreme_opacities_neither_overflow_nor_lose_their_logit(stored: float) -> None:
    table = empty_table(1, trainable=False)
    table.geometry[0, OPACITY_LOGITS] = stored
    assert 0 <= gaussians.opacities(table)[0] <= 1
    assert gaussians.fused(table)[1][0] == pytest.approx(stored, abs=1e-6)


def test_logit_undoes_sigmoid() -> None:
    logits = np.linspace(-15, 15, 31)
    np.testing.assert_allclose(gaussians.logit(gaussians.sigmoid(logits)), logits, atol=1e-8)


def test_rotations_become_unit_length() -> None:
    table = random_table()
    table.geometry[0, ROTATIONS] = 0
    lengths = np.linalg.norm(gaussians.rotations(table), axis=1)
    np.testing.assert_allclose(lengths[1:], 1, rtol=1e-6)
    assert lengths[0] == 0


def test_an_empty_table_has_mean_opacity_zero() -> None:
    assert gaussians.mean_opacity(empty_table(0)) == 0
    assert gaussians.mean_opacity(empty_table(4)) == pytest.approx(0.5)


@pytest.mark.parametrize(("column", "degree"), [(2, 0), (3, 1), (11, 1), (12, 2), (26, 2), (27, 3), (47, 3)])
def test_the_degree_in_use_follows_the_last_coefficient(column: int, degree: int) -> None:
    table = empty_table(5, trainable=False)
    table.harmonics[2, column] = 1
    assert gaussians.harmonics_degree(table) == degree


def test_degrees_and_coefficients_agree() -> None:
    assert [degree_of(coefficients_of(degree)) for degree in range(4)] == [0, 1, 2, 3]
    with pytest.raises(InputError):
        degree_of(25)


def test_colours_survive_the_constant_harmonic() -> None:
    colours = np.array([[0, 0.5, 1]], np.float32)
    assert dc_from_rgb(colours)[0, 2] == pytest.approx(0.5 / C0)
    np.testing.assert_allclose(rgb_from_dc(dc_from_rgb(colours)), colours, atol=1e-6)


def test_rows_with_a_nan_are_found() -> None:
    table = random_table(4)
    table.geometry[1, 0] = np.nan
    table.harmonics[2, 47] = np.inf
    assert gaussians.finite_rows(table).tolist() == [True, False, False, True]
