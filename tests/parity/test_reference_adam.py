"""The reference optimizer against torch.optim.Adam, and missed steps in closed form against doing them."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import copied, random_table
from pending_tables import pending_after

from splatmeter.backends.kernels import Gradients
from splatmeter.backends.lazy_adam import AdamStep
from splatmeter.backends.reference import reference_kernels
from splatmeter.ops import LAST_UPDATE, Rates, Table

torch = pytest.importorskip("torch", reason="torch is not installed: the reference optimizer was not checked")

RATES = Rates(
    mean=1.6e-4, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3
)
COLUMNS = {  # torch's parameter groups in our columns
    "mean": (0, 3),
    "scale": (3, 6),
    "rotation": (6, 10),
    "opacity": (10, 11),
}


def doubled(table: Table) -> Table:
    """The same table in float64, so that agreement can be asked for to the last digits."""
    for name in ("geometry", "harmonics", "geometry_moments", "harmonics_first", "harmonics_second"):
        setattr(table, name, getattr(table, name).astype(np.float64))
    return table


def gradients_of(count: int, seed: int, sparsity: float = 0.0) -> Gradients:
    generator = np.random.default_rng(seed)
    geometry, harmonics = np.zeros((count, 16)), generator.normal(size=(count, 48))
    geometry[:, :11] = generator.normal(size=(count, 11)) * 10.0 ** generator.uniform(-6, 1, (count, 11))
    unseen = generator.random(count) < sparsity
    geometry[unseen], harmonics[unseen] = 0, 0
    return Gradients(geometry, harmonics, np.zeros((count, 2)), np.zeros(count), ~unseen)


def test_several_steps_are_those_of_torch_adam() -> None:
    table = doubled(random_table(9))
    before = copied(table)
    groups = []
    for name, (start, stop) in COLUMNS.items():
        parameter = torch.nn.Parameter(torch.tensor(table.geometry[:, start:stop]))
        groups.append({"params": [parameter], "lr": getattr(RATES, name)})
    for name, part in (("harmonics_dc", slice(0, 3)), ("harmonics_rest", slice(3, 48))):
        parameter = torch.nn.Parameter(torch.tensor(table.harmonics[:, part]))
        groups.append({"params": [parameter], "lr": getattr(RATES, name)})
    theirs = torch.optim.Adam(groups, betas=(0.9, 0.999), eps=1e-15)
    backend = reference_kernels(torch.float64)
    for number in range(1, 7):
        gradients = gradients_of(9, seed=number, sparsity=0.3)
        slices = [gradients.geometry[:, start:stop] for start, stop in COLUMNS.values()]
        slices += [gradients.harmonics[:, :3], gradients.harmonics[:, 3:]]
        for group, gradient in zip(theirs.param_groups, slices, strict=True):
            group["params"][0].grad = torch.tensor(gradient)
        theirs.step()
        backend.adam(table, gradients, AdamStep(number, RATES))
    expected = [group["params"][0].detach().numpy() for group in theirs.param_groups]
    np.testing.assert_allclose(table.geometry[:, :11], np.concatenate(expected[:4], axis=1), rtol=1e-12)
    np.testing.assert_allclose(table.harmonics, np.concatenate(expected[4:], axis=1), rtol=1e-12)
    assert (table.geometry[:, LAST_UPDATE] == 6).all()
    np.testing.assert_array_equal(table.geometry[:, 11:15], before.geometry[:, 11:15])


@pytest.mark.parametrize(("first", "missed"), [(1, 1), (1, 2), (1, 17), (1, 300), (20_001, 900)])
def test_missed_steps_in_closed_form_are_the_steps_themselves(first: int, missed: int) -> None:
    """Ages past the tables are exact only once the bias corrections are 1, hence the late start there."""
    backend = reference_kernels(torch.float64)
    dense = doubled(random_table(8))
    for number in range(first, first + 3):
        backend.adam(dense, gradients_of(8, seed=number), AdamStep(number, RATES))
    lazy = copied(dense)

    def mean_rate(number: int) -> float:  # the means' rate falls while they are not looked at
        return RATES.mean * 0.99 ** min(number, 1000)

    nothing = Gradients(
        np.zeros((8, 16)), np.zeros((8, 48)), np.zeros((8, 2)), np.zeros(8), np.zeros(8, bool)
    )
    for number in range(first + 3, first + 3 + missed):
        rates = Rates(mean_rate(number), *[getattr(RATES, name) for name in Rates.__slots__[1:]])
        backend.adam(dense, nothing, AdamStep(number, rates))
    lazy.pending = pending_after(first + 2 + missed, RATES, mean_rate)
    backend.settle(lazy)
    # the tables of the closed form are float32: 6e-8 of a distance, which is small beside the values
    np.testing.assert_allclose(lazy.geometry, dense.geometry, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(lazy.harmonics, dense.harmonics, rtol=1e-6, atol=1e-7)
    # 0.999 as float32, to the power of 900, is off by 900 * 1.3e-8; first moments are 1e-24 of what they were
    np.testing.assert_allclose(lazy.geometry_moments, dense.geometry_moments, rtol=2e-5, atol=1e-20)
    np.testing.assert_allclose(lazy.harmonics_first, dense.harmonics_first, rtol=1e-6, atol=1e-20)
    np.testing.assert_allclose(lazy.harmonics_second, dense.harmonics_second, rtol=2e-5)


def test_settling_twice_is_settling_once() -> None:
    backend = reference_kernels()
    table = random_table(8)
    backend.adam(table, gradients_of(8, seed=1), AdamStep(1, RATES))
    table.pending = pending_after(9, RATES)
    backend.settle(table)
    once = copied(table)
    backend.settle(table)
    np.testing.assert_array_equal(table.geometry, once.geometry)
    np.testing.assert_array_equal(table.harmonics_second, once.harmonics_second)
    assert (table.geometry[:, LAST_UPDATE] == 9).all()
