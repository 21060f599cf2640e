"""Keeps decoded photos within a budget and decodes the next one while this one is being trained on.

The cache keeps what came first and never evicts. Training walks through a fresh permutation of all views in
each round, so a photo comes back only after about all the others: "least recently used" would throw each
photo away shortly before it is needed, whereas a fixed set that fills the budget is hit in proportion to its
size.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from splatmeter.photos.photo import Photo, read

Pixels = NDArray[np.uint8]


class PhotoCache:
    """Thread-safe. The arrays it hands out are shared: read them, do not write to them.

    Evaluation should have its own cache with budget 0, so that test photos take no room from training ones.
    """

    def __init__(self, budget_bytes: int, threads: int = 1) -> None:
        self._budget = budget_bytes
        self._kept: dict[Photo, Pixels] = {}
        self._kept_bytes = 0
        self._coming: dict[Photo, Future[Pixels]] = {}  # in order of request
        self._most_coming = max(1, threads) + 1
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="photos")
        self._closed = False

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def load(self, photo: Photo) -> Pixels:
        """The pixels [3, H, W]; also where the failure of an earlier prefetch comes to light."""
        with self._lock:
            kept = self._kept.get(photo)
            if kept is not None:
                return kept
            coming = self._coming.pop(photo, None)
        # A request that no thread has begun yet is taken back: decoding here is sooner than queueing.
        pixels = read(photo) if coming is None or coming.cancel() else coming.result()
        return self._keep(photo, pixels)

    def prefetch(self, photo: Photo) -> None:
        """Begins decoding in the background; never blocks, never raises for a bad photo: load does."""
        with self._lock:
            if self._closed or photo in self._kept or photo in self._coming:
                return
            while len(self._coming) >= self._most_coming:  # forgotten requests must not pile up
                self._coming.pop(next(iter(self._coming))).cancel()
            self._coming[photo] = self._pool.submit(read, photo)

    def close(self) -> None:
        """Frees everything and ends the threads; loading afterwards decodes each time."""
        with self._lock:
            self._closed = True
            self._budget = 0
            self._kept.clear()
            self._kept_bytes = 0
            self._coming.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> PhotoCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, photo: Photo, pixels: Pixels) -> Pixels:
        with self._lock:
            if photo not in self._kept and self._kept_bytes + pixels.nbytes <= self._budget:
                self._kept[photo] = pixels
                self._kept_bytes += pixels.nbytes
            return self._kept.get(photo, pixels)
