"""Which engines exist, by name and by device; each is imported when asked for."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal, get_args

from splatmeter.backend import Backend
from splatmeter.errors import CardUnavailable, UsageError
from splatmeter.places import cache_folder

BackendName = Literal["native", "reference"]
NAMES: tuple[str, ...] = get_args(BackendName)
AUTO = "auto"
_CARD = re.compile(r"cuda(?::(\d{1,3}))?")


def backend(name: str = "native", threads: int | None = None, device: str = "cpu") -> Backend:
    """`device`: cpu, cuda, cuda:1, ... or auto, the first card if there is one that passes its self-test."""
    card = _CARD.fullmatch(device)
    if device not in (AUTO, "cpu") and not card:
        raise UsageError(
            f"--device {device} makes no sense; use auto, cpu, cuda, or cuda:1 for the second card."
        )
    if name == "reference" and card:
        raise UsageError("--backend reference is the CPU's; leave --device out, or leave --backend out.")
    if card:
        return trusted_card(int(card[1] or 0), threads)
    if device == AUTO and name == "native":
        return _card_or_cpu(threads)
    return _on_the_cpu(name, threads)


def card_number(device: str) -> int | None:
    """0 of 'cuda', 1 of 'cuda:1'; None where no card is meant."""
    card = _CARD.fullmatch(device)
    return int(card[1] or 0) if card else None


def trusted_card(number: int, threads: int | None = None) -> Backend:
    from splatmeter.backends.cuda import cuda_backend
    from splatmeter.backends.cuda.trust import require_trust

    card = cuda_backend(number, threads)
    require_trust(card, _on_the_cpu("native", threads), cache_folder())
    return cuda_backend(number, threads)  # as nobody has used it: the test's photos and buffers are gone


def _card_or_cpu(threads: int | None) -> Backend:
    cpu = _on_the_cpu("native", threads)
    try:
        return trusted_card(0, threads)
    except CardUnavailable as problem:
        if "self-test" not in str(problem):
            return cpu  # there is no card: nothing to tell
        noted = dataclasses.replace(cpu.facts, details={**cpu.facts.details, "card_not_used": str(problem)})
        return dataclasses.replace(cpu, facts=noted)


def _on_the_cpu(name: str, threads: int | None) -> Backend:
    if name == "native":
        from splatmeter.backends.native import native_backend

        return native_backend(threads)
    if name == "reference":
        from splatmeter.backends.reference import reference_backend

        return reference_backend()
    raise UsageError(f"There is no backend {name!r}; choose one of: {', '.join(NAMES)}.")
