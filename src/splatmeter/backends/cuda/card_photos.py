"""Photos on their way to a card: decoded pixels stay with the host's cache, their copy lies in the card's."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backends.cuda.card import told_in_our_words

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class CardPhoto:
    key: int
    pixels: Pixels  # u8 [3, H, W]; once more for the card, should it have had to make room


class CardPhotos:
    """`deliver` is called by the threads that decode: the copy is under way before a step asks for it. Where
    there is no room for it, the step that needs it makes some."""

    def __init__(self, card: Any) -> None:
        self._card = card
        self._keys = itertools.count(1)

    def deliver(self, pixels: Pixels) -> CardPhoto:
        photo = CardPhoto(next(self._keys), np.ascontiguousarray(pixels))
        with told_in_our_words():
            self._card.put_photo(photo.key, photo.pixels)
        # a photo that the host has let go comes under another key, should it come again
        weakref.finalize(photo, self._card.forget_photo, photo.key).atexit = False
        return photo
