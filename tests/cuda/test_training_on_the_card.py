"""Whole steps: the same model as the CPU's, the same bits whatever the schedule, one wait, no allocations."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from parity_scenes import camera, random_table, smooth_image
from standin import Standin
from twins import ARRAYS, CardTwin, NativeTwin, adam_tuple, arrays_of, camera_row, owed_after, settings_tuple

from splatmeter.ops import RasterSettings, Table

SETTINGS = RasterSettings(absolute_gradients=True)
SIZE = (75, 41)
VIEWS = [camera(*SIZE, seed=seed, shift=(shift, 0.0)) for seed, shift in ((1, 0.4), (2, -0.4), (3, 0.0))]
PHOTOS = [
    np.clip(128 + 60 * smooth_image(*SIZE, seed=seed), 0, 255).astype(np.uint8) for seed in range(len(VIEWS))
]


def put_photos(card: CardTwin) -> None:
    for key, photo in enumerate(PHOTOS):
        card.card.put_photo(key, photo)


def train(card: CardTwin, table: Table, steps: int, observing: int | None = None) -> Table:
    """From changing sides, so that some rows are seen and others wait."""
    card.put(table)
    put_photos(card)
    learned = 0
    for step in range(steps):
        card.owe(owed_after(learned) if learned else None)
        number = 0 if step == observing else learned + 1
        view = step % len(VIEWS)
        card.card.train_step(camera_row(VIEWS[view]), settings_tuple(SETTINGS), view, 0.2, adam_tuple(number))
        learned += number > 0
    return card.get()


def train_on_cpu(
    cpu: NativeTwin, table: Table, steps: int, observing: int
) -> tuple[Table, list[tuple[float, float]]]:
    cpu.put(table)
    learned, losses = 0, []
    for step in range(steps):
        cpu.owe(owed_after(learned) if learned else None)
        view = step % len(VIEWS)
        cpu.forward(VIEWS[view], SETTINGS)
        l1, ssim, gradient = cpu.loss(PHOTOS[view], 0.2, PHOTOS[view].shape)
        cpu.update(gradient, 0 if step == observing else learned + 1)
        learned += step != observing
        losses.append((l1, ssim))
    return cpu.get(), losses


def bits(table: Table) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays_of(table))).hexdigest()


def test_twelve_steps_make_the_cpu_engines_model(card: CardTwin, cpu: NativeTwin) -> None:
    """Rows fall behind and catch up; the seventh step only looks."""
    card.card.reports(True)
    found = train(card, random_table(200), 12, observing=6)
    expected, losses = train_on_cpu(cpu, random_table(200), 12, observing=6)
    for name in ARRAYS:
        one, two = getattr(found, name).astype(np.float64), getattr(expected, name)
        assert np.linalg.norm(one - two) <= 2e-4 * np.linalg.norm(two), name
    assert (found.geometry[:, 15] != expected.geometry[:, 15]).mean() <= 0.02
    assert 0 < (expected.geometry[:, 15] < 11).sum() < 200  # some rows are behind
    reports = card.card.reports(True)
    assert [report[1] for report in reports] == pytest.approx([l1 for l1, _ in losses], abs=2e-5)
    assert [report[2] for report in reports] == pytest.approx([ssim for _, ssim in losses], abs=2e-5)
    assert np.diff([report[0] for report in reports]).tolist() == [1] * 11
    assert all(report[5] == 0 for report in reports)


def test_the_same_bits_whatever_the_schedule(card: CardTwin, schedule: Standin) -> None:
    found = set()
    for seed, preempt in ((1, 0), (2, 0), (3, 1)):
        schedule.option("seed", seed)
        schedule.option("preempt", preempt)
        found.add(bits(train(card, random_table(120), 4)))
    assert len(found) == 1


def test_a_step_waits_once_and_allocates_nothing(card: CardTwin, schedule: Standin) -> None:
    train(card, random_table(200), 3)  # every view once: buffers have grown as far as they must
    allocations = card.card.allocations
    for step in range(3, 9):
        before = schedule.count("waits")
        card.owe(owed_after(step))
        card.card.train_step(
            camera_row(VIEWS[step % 3]), settings_tuple(SETTINGS), step % 3, 0.2, adam_tuple(step + 1)
        )
        assert schedule.count("waits") == before + 1
    assert card.card.allocations == allocations
    assert len(card.card.reports()) >= 5  # all but the last have come by themselves


def test_a_loss_that_is_no_number_changes_nothing(card: CardTwin) -> None:
    """The bad step, and those after it, leave the model as it was; the number of the bad one comes back."""
    table = random_table(80)
    card.put(table)
    put_photos(card)
    card.card.reports(True)
    first = card.card.train_step(camera_row(VIEWS[0]), settings_tuple(SETTINGS), 0, 0.2, adam_tuple(1))
    good = card.get()
    broken = RasterSettings(background=(float("nan"), 0.0, 0.0))
    for settings in (broken, SETTINGS):
        card.card.train_step(camera_row(VIEWS[1]), settings_tuple(settings), 1, 0.2, adam_tuple(2))
    assert bits(card.get()) == bits(good) != bits(table)
    reports = card.card.reports(True)
    assert [report[5] for report in reports] == [0, first + 1, first + 1]
    assert np.isnan(reports[1][1]) and np.isfinite(reports[2][1])
    card.card.forgive()
    card.card.train_step(camera_row(VIEWS[1]), settings_tuple(SETTINGS), 1, 0.2, adam_tuple(2))
    assert bits(card.get()) != bits(good)
    assert card.card.reports(True)[0][5] == 0


def test_reports_of_many_steps_come_in_order(card: CardTwin) -> None:
    """The ring of reports turns more than twice."""
    card.card.reports(True)
    train(card, random_table(30), 20)
    numbers = [report[0] for report in card.card.reports(True)]
    assert len(numbers) == 20 and np.diff(numbers).tolist() == [1] * 19
    assert card.card.reports(True) == []


def test_more_pairs_than_ever_before_find_room(standin: Standin) -> None:
    card = CardTwin()
    table = random_table(60)
    table.geometry[:, 3:6] -= 3
    card.put(table)
    card.forward(VIEWS[2], SETTINGS)
    few, allocations = card.card.pair_count, card.card.allocations
    table.geometry[:, 3:6] += 9  # each of them covers the image
    card.put(table)
    color, _ = card.forward(VIEWS[2], SETTINGS)
    assert card.card.pair_count > 2 * few and np.isfinite(color).all()
    assert card.card.allocations >= allocations


def test_photos_beyond_the_budget_make_room_for_each_other(standin: Standin) -> None:
    card = CardTwin()
    card.put(random_table(20))
    size = PHOTOS[0].nbytes
    card.card.set_photo_budget(2 * size)
    for turn in range(3):
        for key, photo in enumerate(PHOTOS):
            card.card.put_photo(key, photo)
            card.card.train_step(camera_row(VIEWS[key]), settings_tuple(SETTINGS), key, 0.2, adam_tuple(0))
        if turn == 0:
            allocations = card.card.allocations
    assert card.card.photo_bytes == 2 * size
    assert card.card.allocations == allocations
    losses = [report[1] for report in card.card.reports(True)]
    assert losses[:3] == losses[3:6] == losses[6:]
    assert len(set(losses)) == 3
    with pytest.raises(ValueError, match="not on the card"):
        card.card.train_step(camera_row(VIEWS[0]), settings_tuple(SETTINGS), 77, 0.2, adam_tuple(0))


def test_large_photos_are_copied_in_chunks(card: CardTwin) -> None:
    """Chunks of 4 MB, two of which are used in turn."""
    photo = np.random.default_rng(0).integers(0, 256, (3, 1700, 2400), np.uint8)  # 12.2 MB: three chunks
    photo[2] ^= photo[0]
    for key in (100, 101):
        card.card.put_photo(key, photo + np.uint8(key))
    for key in (100, 101):
        found = np.zeros_like(photo)
        card.card.get_photo(key, found)
        np.testing.assert_array_equal(found, photo + np.uint8(key))
