"""A card opened through the extension: its images, and its troubles in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from splatmeter.errors import CardBroken, CardUnavailable, NotEnoughMemory, SplatmeterError

Image = tuple[int, bool, bytes]  # compute capability, PTX or cubin, content


_IMAGES = Path(__file__).parent / "images"


@cache
def images() -> list[Image]:
    """What was compiled for cards: PTX, and in wheels also cubins, which need no work of the driver's."""
    files = [path for path in sorted(_IMAGES.iterdir()) if path.suffix in (".ptx", ".cubin")]
    return [(int(path.stem.rpartition("_")[2]), path.suffix == ".ptx", path.read_bytes()) for path in files]


def open_card(number: int) -> Any:
    """The extension's card with our kernels loaded; CardUnavailable in one sentence where that cannot be."""
    from splatmeter import _native  # type: ignore[attr-defined]

    with told_in_our_words():
        return _native.Card(number, images())


def model_on(card: Any) -> Any:
    """The extension's place for one more table on that card."""
    from splatmeter import _native  # type: ignore[attr-defined]

    with told_in_our_words():
        return _native.CardModel(card)


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """The extension's CardError(kind, sentence) as the error that fits."""
    from splatmeter import _native  # type: ignore[attr-defined]

    try:
        yield
    except _native.CardError as problem:
        kind, sentence = problem.args
        if kind == "out of memory":
            advice = "Use --max-gaussians, a coarser --resolution, or --device cpu."
            raise NotEnoughMemory(f"{sentence} {advice}") from None
        if kind in ("no driver", "no card"):
            raise CardUnavailable(sentence) from None
        if kind == "too old":
            raise CardBroken(sentence) from None
        raise SplatmeterError(f"{sentence} Use --device cpu if it happens again.") from None
