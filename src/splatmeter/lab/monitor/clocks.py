"""How a card did while a run lasted: clocks, heat, power and what held it back, from samples of its state."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IDLE, SET_BY_A_PERSON = 0x1, 0x2
HELD_BACK = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
    0x200: "limit of the board",
    0x400: "reliability",
}
"""NVML's bits for clocks below what was asked for; idling, settings and displays are not among them."""
SLOWED_BY_HEAT = ("hardware slowdown", "heat (driver)", "heat (hardware)", "power brake")
"""What no card does at ease; a power cap is everyday life on many."""
STEADY = 0.02
"""A share of its highest clock: a locked clock may move by a few of its steps."""
RARE = 0.01


@dataclass(frozen=True, slots=True)
class CardState:
    """One look; None is what the card or its driver does not tell."""

    seconds: float
    graphics_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    reasons: int | None = None
    busy: int | None = None
    """Percent of the last moments in which a kernel ran."""

    @property
    def works(self) -> bool:
        """A card that idles has other clocks, which say nothing about a run."""
        if self.reasons is not None and self.reasons & IDLE:
            return False
        return self.busy is None or self.busy > 0


def card_summary(states: Sequence[CardState]) -> dict[str, Any]:
    """Over the samples in which it worked; figures that nobody told are left out."""
    working = [state for state in states if state.works]
    found: dict[str, Any] = {"samples": len(states), "working_samples": len(working)}
    for name in ("graphics_mhz", "memory_mhz", "celsius", "watts"):
        values = [value for state in working if (value := getattr(state, name)) is not None]
        if values:
            found[name] = {"low": min(values), "median": statistics.median(values), "high": max(values)}
    told = [state.reasons for state in working if state.reasons is not None]
    if told:
        shares = {word: sum(bool(r & bit) for r in told) / len(told) for bit, word in HELD_BACK.items()}
        found["held_back"] = {word: share for word, share in shares.items() if share > 0}
        found["set_by_a_person"] = sum(bool(r & SET_BY_A_PERSON) for r in told) / len(told)
    return found


def merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several runs as one: the lowest and highest of all, and the mean share of what held the card back."""
    found: dict[str, Any] = {}
    for name in ("graphics_mhz", "memory_mhz", "celsius", "watts"):
        told = [record[name] for record in records if record.get(name)]
        if told:
            middle = statistics.median(figure["median"] for figure in told)
            ends = {"low": min(f["low"] for f in told), "high": max(f["high"] for f in told)}
            found[name] = {**ends, "median": middle}
    shares = [record["held_back"] for record in records if record.get("held_back") is not None]
    if shares:
        words = dict.fromkeys(word for share in shares for word in share)
        found["held_back"] = {word: sum(s.get(word, 0.0) for s in shares) / len(shares) for word in words}
    return found


def moved(record: Mapping[str, Any]) -> bool:
    """Whether its clock went up and down more than a locked one does."""
    clock = record.get("graphics_mhz") or {}
    return bool(clock) and clock["high"] - clock["low"] > STEADY * clock["high"]


def slowed_by_heat(record: Mapping[str, Any]) -> str:
    """What slowed it down that a repetition may be spared; empty if nothing did."""
    shares = record.get("held_back") or {}
    return ", ".join(word for word in SLOWED_BY_HEAT if shares.get(word, 0.0) > RARE)


def card_warnings(record: Mapping[str, Any]) -> list[str]:
    """One sentence each; [] where nothing moved or nobody tells."""
    found: list[str] = []
    shares = {word: share for word, share in (record.get("held_back") or {}).items() if share > RARE}
    if shares:
        words = ", ".join(f"{word} in {100 * share:.0f} % of the samples" for word, share in shares.items())
        found.append(f"the card was held back: {words}")
    if moved(record):
        clock = record["graphics_mhz"]
        found.append(
            f"the card's clock is not locked: it moved between {clock['low']} and {clock['high']} MHz;"
            f" `nvidia-smi --lock-gpu-clocks={clock['low']}` (as root) holds it"
        )
    return found


def card_text(facts: Mapping[str, Any]) -> str:
    """Which card it is, for the head of a log."""
    words = [str(facts.get("name", "unknown card"))]
    if facts.get("memory_bytes"):
        words.append(f"{facts['memory_bytes'] / 1e9:.1f} GB")
    if facts.get("of", 1) > 1 and facts.get("index") is not None:
        words.append(f"number {facts['index']} of {facts['of']}")
    if facts.get("uuid"):
        words.append(str(facts["uuid"])[:12])
    words += [f"driver {facts['driver']}"] if facts.get("driver") else []
    words += [f"CUDA {facts['cuda']}"] if facts.get("cuda") else []
    words += [f"at most {facts['max_graphics_mhz']} MHz"] if facts.get("max_graphics_mhz") else []
    words += [f"set to {facts['application_graphics_mhz']} MHz"] if _set(facts) else []
    words += [f"{facts['power_limit_watts']:.0f} W"] if facts.get("power_limit_watts") else []
    return ", ".join(words)


def _set(facts: Mapping[str, Any]) -> bool:
    """Somebody chose application clocks other than the card's own."""
    chosen, own = facts.get("application_graphics_mhz"), facts.get("default_graphics_mhz")
    return bool(chosen and own and chosen != own)


def state_text(record: Mapping[str, Any]) -> str:
    """How it did in a run, for the log; empty where nothing was told."""
    words: list[str] = []
    for name, unit in (
        ("graphics_mhz", "MHz"),
        ("memory_mhz", "MHz memory"),
        ("celsius", "°C"),
        ("watts", "W"),
    ):
        if figure := record.get(name):
            low, high = round(figure["low"]), round(figure["high"])
            words.append(f"{low} {unit}" if low == high else f"{low} to {high} {unit}")
    shares = record.get("held_back")
    if shares is not None:
        held = [f"{word} {100 * share:.0f} %" for word, share in shares.items() if share > RARE]
        words.append(f"held back by {', '.join(held)} of the time" if held else "never held back")
    return ", ".join(words)
