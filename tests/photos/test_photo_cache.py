"""The cache changes how long loading takes and how much is kept, never what is loaded."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import InputError, MissingFile
from splatmeter.photos import cache as cache_module
from splatmeter.photos.cache import PhotoCache
from splatmeter.photos.photo import Photo, read

BYTES = 3 * 6 * 5


@pytest.fixture
def photos(tmp_path: Path) -> list[Photo]:
    generator = np.random.default_rng(1)
    result = []
    for number in range(6):
        Image.fromarray(generator.integers(0, 256, (10, 12, 3), np.uint8)).save(tmp_path / f"{number}.png")
        result.append(Photo(tmp_path / f"{number}.png", 6, 5))
    return result


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[Photo]:
    """Records what is decoded, in order."""
    seen: list[Photo] = []

    def recording(photo: Photo) -> np.ndarray:
        seen.append(photo)
        return read(photo)

    monkeypatch.setattr(cache_module, "read", recording)
    return seen


@pytest.mark.parametrize("budget", [0, 2 * BYTES, 10**9])
@pytest.mark.parametrize("ahead", [False, True])
def test_pixels_do_not_depend_on_budget_or_prefetching(photos: list[Photo], budget: int, ahead: bool) -> None:
    with PhotoCache(budget, threads=2) as cache:
        for index in [0, 1, 2, 3, 4, 5, 5, 3, 1, 0]:
            if ahead:
                cache.prefetch(photos[(index + 1) % 6])
            np.testing.assert_array_equal(cache.load(photos[index]), read(photos[index]))
        assert cache.kept_bytes <= budget


def test_kept_photos_are_decoded_once_and_the_first_ones_stay(
    photos: list[Photo], decodings: list[Photo]
) -> None:
    with PhotoCache(2 * BYTES) as cache:
        for _ in range(3):
            for photo in photos[:3]:
                cache.load(photo)
    assert [decodings.count(photo) for photo in photos[:3]] == [1, 1, 3]


def test_a_prefetched_photo_is_not_decoded_again_even_without_budget(
    photos: list[Photo], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, seen = threading.Event(), []

    def recording(photo: Photo) -> np.ndarray:
        seen.append(photo)
        begun.set()
        return read(photo)

    monkeypatch.setattr(cache_module, "read", recording)
    with PhotoCache(0) as cache:
        cache.prefetch(photos[0])
        assert begun.wait(10)
        cache.load(photos[0])
        assert seen == [photos[0]]
        cache.load(photos[0])
        assert seen == [photos[0]] * 2


def test_a_photo_that_fails_in_the_background_fails_on_load(photos: list[Photo]) -> None:
    photos[0].path.write_bytes(b"no image")
    with PhotoCache(10**6) as cache:
        cache.prefetch(photos[0])
        cache.prefetch(Photo(Path("gone.png"), 2, 2))
        with pytest.raises(InputError, match=r"0\.png"):
            cache.load(photos[0])
        with pytest.raises(MissingFile, match=r"gone\.png"):
            cache.load(Photo(Path("gone.png"), 2, 2))
        assert cache.load(photos[1]).shape == (3, 5, 6)


def test_forgotten_prefetches_do_not_pile_up(photos: list[Photo]) -> None:
    with PhotoCache(0) as cache:
        for photo in photos * 3:
            cache.prefetch(photo)
        assert len(cache._coming) <= 2


def test_many_threads_get_the_same_pixels(photos: list[Photo]) -> None:
    expected = [read(photo) for photo in photos]
    wrong: list[int] = []

    def work(cache: PhotoCache, seed: int) -> None:
        for index in np.random.default_rng(seed).integers(0, 6, 60).tolist():
            cache.prefetch(photos[(index + seed) % 6])
            if not np.array_equal(cache.load(photos[index]), expected[index]):
                wrong.append(index)

    with PhotoCache(3 * BYTES, threads=2) as cache:
        threads = [threading.Thread(target=work, args=(cache, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and cache.kept_bytes == 3 * BYTES


def test_closing_ends_the_threads_and_loading_still_works(photos: list[Photo]) -> None:
    before = threading.active_count()
    cache = PhotoCache(10**6, threads=2)
    cache.prefetch(photos[0])
    cache.close()
    cache.close()
    assert threading.active_count() == before and cache.kept_bytes == 0
    cache.prefetch(photos[1])
    np.testing.assert_array_equal(cache.load(photos[1]), read(photos[1]))


def test_photos_of_a_coarser_stage_give_way_to_finer_ones(
    photos: list[Photo], decodings: list[Photo]
) -> None:
    coarse = [dataclasses.replace(photo, divisor=2) for photo in photos]
    with PhotoCache(2 * BYTES) as cache:
        for photo in coarse:
            cache.load(photo)
        assert cache.kept_bytes == sum(photo.nbytes for photo in coarse)
        for photo in photos[:3]:
            cache.load(photo)
            assert cache.kept_bytes <= 2 * BYTES
        decodings.clear()
        for photo in photos[:3]:
            cache.load(photo)
        assert decodings == [photos[2]]  # two fit, and no coarse one is in their way


def test_waiting_is_counted_where_a_photo_was_not_there_in_time(photos: list[Photo]) -> None:
    with PhotoCache(10**6) as cache:
        cache.load(photos[0])
        assert cache.waited() > 0
        cache.load(photos[0])
        assert cache.waited() == 0


def test_as_many_requests_wait_as_asked_for(photos: list[Photo], monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(photo: Photo) -> np.ndarray:
        started.set()
        go_on.wait()
        return read(photo)

    monkeypatch.setattr(cache_module, "read", slow)
    with PhotoCache(0, threads=1, ahead=5) as cache:
        for photo in photos[:5]:
            cache.prefetch(photo)
        started.wait()
        assert len(cache._coming) == 5
        go_on.set()
