"""Which engines exist, by name and by device; each is imported when asked for."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal, get_args

from splatmeter.backend import Backend
from splatmeter.errors import CardBroken, CardUnavailable, SplatmeterError, UsageError
from splatmeter.places import cache_folder

BackendName = Literal["native", "reference"]
NAMES: tuple[str, ...] = get_args(BackendName)
AUTO = "auto"
MOST_THREADS = 1024
_CARD = re.compile(r"cuda(?::(\d{1,3}))?")


def backend(
    name: str = "native", threads: int | None = None, device: str = "cpu", only_on_cpu: str = ""
) -> Backend:
    """`device`: cpu, cuda, cuda:1, ... or auto, the first card if there is one that passes its self-test and
    nothing is asked for that no card can do; `only_on_cpu` names it."""
    checked_threads(threads)
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
        return _cpu_beside_a_card(threads, only_on_cpu) if only_on_cpu else _card_or_cpu(threads)
    return _on_the_cpu(name, threads)


def checked_threads(threads: int | None) -> int | None:
    """None is "as many as there are"; UsageError for a number no machine could run."""
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"--threads is {threads}, but must be between 1 and {MOST_THREADS}.")
    return threads


def card_number(device: str) -> int | None:
    """0 of 'cuda', 1 of 'cuda:1'; None where no card is meant."""
    card = _CARD.fullmatch(device)
    return int(card[1] or 0) if card else None


def trusted_card(number: int, threads: int | None = None) -> Backend:
    """CardUnavailable, whatever is wrong with it."""
    from splatmeter.backends.cuda import cuda_backend
    from splatmeter.backends.cuda.trust import require_trust

    try:
        tested = cuda_backend(number, threads)
        require_trust(tested, _on_the_cpu("native", threads), cache_folder())
        del tested  # with the test's photos and buffers
        return cuda_backend(number, threads)
    except CardUnavailable:
        raise
    except SplatmeterError as problem:
        raise CardBroken(f"cuda:{number} cannot be used: {problem}") from None


def _card_or_cpu(threads: int | None) -> Backend:
    """Where there is no card there is nothing to tell; of one that is there and not used a note is kept."""
    cpu = _on_the_cpu("native", threads)
    try:
        return trusted_card(0, threads)
    except CardBroken as problem:
        return _noted(cpu, str(problem))
    except CardUnavailable:
        return cpu


def _cpu_beside_a_card(threads: int | None, why: str) -> Backend:
    """The same for a card that might well work, but cannot do what is asked for."""
    from splatmeter.backends.cuda import open_card

    cpu = _on_the_cpu("native", threads)
    try:
        open_card(0)
    except SplatmeterError:
        return cpu
    return _noted(cpu, f"{why} is not there yet on a card: the CPU does it.")


def _noted(cpu: Backend, card_not_used: str) -> Backend:
    details = {**cpu.facts.details, "card_not_used": card_not_used}
    return dataclasses.replace(cpu, facts=dataclasses.replace(cpu.facts, details=details))


def _on_the_cpu(name: str, threads: int | None) -> Backend:
    if name == "native":
        from splatmeter.backends.native import native_backend

        return native_backend(threads)
    if name == "reference":
        from splatmeter.backends.reference import reference_backend

        return reference_backend()
    raise UsageError(f"There is no backend {name!r}; choose one of: {', '.join(NAMES)}.")
