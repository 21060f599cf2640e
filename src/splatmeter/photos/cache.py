"""Keeps decoded photos within a budget and decodes the next ones while this one is being trained on.

The cache keeps what came first and never evicts. Training walks through a fresh permutation of all views in
each round, so a photo comes back only after about all the others: "least recently used" would throw each
photo away shortly before it is needed, whereas a fixed set that fills the budget is hit in proportion to its
size. Only photos of another divisor give way: training goes from coarse to fine and never looks back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.photos.photo import Photo, read
from splatmeter.process_memory import give_back

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Delivered:
    photo: Any
    nbytes: int


class PhotoCache:
    """Thread-safe. The arrays it hands out are shared: read them, do not write to them.

    Evaluation should have its own cache with budget 0, so that test photos take no room from training ones.
    """

    def __init__(
        self,
        budget_bytes: int,
        threads: int = 1,
        ahead: int = 0,
        deliver: Callable[[Pixels], Any] = lambda pixels: pixels,
    ) -> None:
        """`ahead`: how many requests may wait, at least; by default one more than there are threads.

        `deliver` takes decoded pixels to where they are used, in the thread that decoded them; what it gives
        is what `load` gives.
        """
        self._budget = budget_bytes
        self._deliver = deliver
        self._kept: dict[Photo, _Delivered] = {}
        self._kept_bytes = 0
        self._coming: dict[Photo, Future[_Delivered]] = {}  # in order of request
        self._most_coming = max(threads + 1, ahead, 2)
        self._waited = 0.0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="photos")
        self._closed = False

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def load(self, photo: Photo) -> Any:
        """The pixels u8 [3, H, W], or what `deliver` made of them; also where the failure of an earlier
        prefetch comes to light."""
        with self._lock:
            kept = self._kept.get(photo)
            if kept is not None:
                return kept.photo
            coming = self._coming.pop(photo, None)
        began = perf_counter()
        try:
            # A request that no thread has begun yet is taken back: decoding here is sooner than queueing.
            delivered = self._fetch(photo) if coming is None or coming.cancel() else coming.result()
        finally:
            self._waited += perf_counter() - began
        return self._keep(photo, delivered)

    def waited(self) -> float:
        """Seconds that loading took since this was last asked: 0 as long as photos are there in time."""
        seconds, self._waited = self._waited, 0.0
        return seconds

    def prefetch(self, photo: Photo) -> None:
        """Begins decoding in the background; never blocks, never raises for a bad photo: load does."""
        with self._lock:
            if self._closed or photo in self._kept or photo in self._coming:
                return
            while len(self._coming) >= self._most_coming:  # forgotten requests must not pile up
                self._coming.pop(next(iter(self._coming))).cancel()
            self._coming[photo] = self._pool.submit(self._fetch, photo)

    def limit(self, budget_bytes: int) -> None:
        """From here on at most this much; what is too much goes at once, the latest first."""
        with self._lock:
            self._budget = budget_bytes
            gone = self._kept_bytes > budget_bytes
            while self._kept_bytes > budget_bytes:
                self._kept_bytes -= self._kept.popitem()[1].nbytes
        if gone:
            give_back()

    def give_way(self) -> bool:
        """To something that needs the memory more: half of what is kept goes, and no more will come. False
        where there is nothing left to give."""
        if not self._kept_bytes:
            return False
        self.limit(self._kept_bytes // 2)
        return True

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

    def _fetch(self, photo: Photo) -> _Delivered:
        pixels = read(photo)
        return _Delivered(self._deliver(pixels), pixels.nbytes)

    def _keep(self, photo: Photo, delivered: _Delivered) -> Any:
        with self._lock:
            if photo not in self._kept and self._makes_room(photo, delivered.nbytes):
                self._kept[photo] = delivered
                self._kept_bytes += delivered.nbytes
            return self._kept.get(photo, delivered).photo

    def _makes_room(self, photo: Photo, nbytes: int) -> bool:
        """Photos of another divisor go as soon as room is short; the caller holds the lock."""
        if self._kept_bytes + nbytes > self._budget:
            for other in [other for other in self._kept if other.divisor != photo.divisor]:
                self._kept_bytes -= self._kept.pop(other).nbytes
        return self._kept_bytes + nbytes <= self._budget
