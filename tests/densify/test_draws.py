"""Random numbers by name: whoever makes them makes the same ones, and they are random enough."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.densify.draws import keys_of, normals, uniform, words

ROWS = np.arange(200_000)


def test_numbers_depend_on_their_name_and_not_on_who_else_is_drawn() -> None:
    keys = keys_of(3, 600, 1)
    some = np.array([199_999, 5, 77, 5])
    np.testing.assert_array_equal(normals(keys, ROWS)[some], normals(keys, some))
    np.testing.assert_array_equal(uniform(keys, ROWS)[some], uniform(keys, some))


def test_the_bits_are_these_on_every_machine() -> None:
    """A device must make the same: these words are the definition."""
    assert keys_of(0, 600, 1) == [int(key) for key in np.random.SeedSequence((0, 600, 1)).generate_state(5)]
    one = words([1, 2, 3, 4, 5], np.array([0, 7]))
    assert [[int(word) for word in column] for column in one] == EXPECTED


EXPECTED = [
    [779996176, 3343860189],
    [822924215, 219897073],
    [2155184602, 1310419889],
    [3217583722, 2289684739],
]


@pytest.mark.parametrize("other", [(3, 600, 2), (3, 700, 1), (4, 600, 1), (3, 600)])
def test_other_names_give_unrelated_numbers(other: tuple[int, ...]) -> None:
    here, there = normals(keys_of(3, 600, 1), ROWS), normals(keys_of(*other), ROWS)
    together = np.corrcoef(np.hstack([here, there]).T)  # [6, 6]
    assert np.abs(together - np.eye(6)).max() < 5 / np.sqrt(len(ROWS))


def test_neighbouring_rows_are_unrelated() -> None:
    values = normals(keys_of(0, 1, 1), ROWS)
    for lag in (1, 2, 8, 1024):
        together = np.corrcoef(values[:-lag].T, values[lag:].T)[:3, 3:]
        assert np.abs(together).max() < 5 / np.sqrt(len(ROWS))


def test_normals_are_normal_and_uniforms_uniform() -> None:
    values = normals(keys_of(9, 9, 9), ROWS)
    error = 1 / np.sqrt(len(ROWS))
    assert np.abs(values.mean(axis=0)).max() < 5 * error
    assert values.std(axis=0) == pytest.approx(1, abs=5 * error)
    assert (values**4).mean(axis=0) == pytest.approx(3, abs=5 * np.sqrt(96) * error)
    drawn = uniform(keys_of(9, 9, 0), ROWS)
    assert drawn.min() >= 0 and drawn.max() < 1
    counts, _ = np.histogram(drawn, bins=100, range=(0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 99 + 5 * np.sqrt(2 * 99)
