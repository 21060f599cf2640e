"""What makes no sense in a plan that was read, said by the name of its field: people edit them.

Everything is looked at before a run begins, because a step would stumble over it hours later.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import typing
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from splatmeter.errors import UsageError
from splatmeter.train.config import TrainConfig
from splatmeter.typed_fields import Unfit, fitting, flags_as_names, suggestion

if TYPE_CHECKING:
    from splatmeter.train.plan import Entry

SIZES = (1, 2, 4)
"""What photos of full size may be divided by to the end."""
MOST_STEPS = 999_999_998
"""Stages of --progressive have nine digits, and one may last a step longer than the run."""
MOST = 2**63 - 1
"""Of any whole number: more are no numbers for arrays."""
_RANGES: dict[str, tuple[float, float]] = {
    "step": (0, MOST_STEPS),
    "done": (0, 1),
    "end": (1, MOST_STEPS),
    "interval": (1, MOST_STEPS),
    "budget": (1, MOST),
    "target": (0, MOST),
    "threshold": (1e-6, 10**6),
    "regularize": (0, 1),
    "used": (0, 10**12),
}
_IN_JSON = (("True", "true"), ("False", "false"), ("None", "null"), ("'", '"'))
"""What Python's words are in the file."""
_LONGEST = 60
"""Letters of a value that a message repeats."""


class Senseless(ValueError):
    """Which field is what, and what it must be; then perhaps a question."""

    def __init__(self, what: str, question: str = "") -> None:
        super().__init__(f"{what}.{question}")


def require_form(record: Any, version: int) -> None:
    """The plan itself; what its entries and settings say is looked at by the functions below."""
    _require_names(record, "it", ("plan", "seconds", "settings", "entries", "ended"), optional=("ended",))
    if record["plan"] != version or isinstance(record["plan"], bool):
        raise Senseless(f"plan is {_shown(record['plan'])}, but must be {version}, the version that is known")
    _require_range("seconds", _typed("seconds", record["seconds"], float), 0, 10**12)
    _typed("ended", record.get("ended"), bool | None)


# ---- settings ---------------------------------------------------------------------------------------------
def typed_settings(record: Any, left_out: Collection[str]) -> dict[str, Any]:
    """As `TrainConfig` takes them, without those that plans do not have. One that is not there is of a newer
    version than the plan, and has its default."""
    hints = {n: hint for n, hint in typing.get_type_hints(TrainConfig).items() if n not in left_out}
    _require_names(record, "settings", hints, optional={*hints} - {"iterations"})
    found = {name: _typed(f"settings.{name}", value, hints[name]) for name, value in record.items()}
    for name, value in found.items():
        _require_usable(f"settings.{name}", value)
    try:
        TrainConfig(**found)
    except UsageError as problem:
        told = flags_as_names(str(problem), {}).removesuffix(".")
        raise Senseless(f"of its settings, {told}") from None
    return found


def _require_usable(name: str, value: Any) -> None:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and not _can_be_a_name(one):
            raise Senseless(f"{name} is {_shown(one)}, but must be text that a file could be called")
        if isinstance(one, float) and not math.isfinite(one):
            raise Senseless(f"{name} is {one}, but must be finite")
        if isinstance(one, int) and abs(one) > MOST:
            raise Senseless(f"{name} is {_shown(one)}, but must be at most {MOST}")


def _can_be_a_name(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


# ---- entries ----------------------------------------------------------------------------------------------
def typed_entries(record: Any, kind: type[Entry]) -> tuple[Entry, ...]:
    if not isinstance(record, Sequence) or isinstance(record, str) or not record:
        raise Senseless(f"entries is {_shown(record)}, but must be a list with one entry or more")
    hints = typing.get_type_hints(kind)
    needed = {"step", "done", "end", "interval", "budget"}
    found: list[Entry] = []
    for number, entry in enumerate(record):
        where = f"entries[{number}]"
        _require_names(entry, where, hints, optional={*hints} - needed)
        values = {name: _typed(f"{where}.{name}", value, hints[name]) for name, value in entry.items()}
        found.append(kind(**values))
        _require_entry(where, found[-1])
    _require_order(found)
    return tuple(found)


def _require_entry(where: str, entry: Entry) -> None:
    for name, (least, most) in _RANGES.items():
        _require_range(f"{where}.{name}", getattr(entry, name), least, most)
    if entry.finest not in SIZES:
        raise Senseless(f"{where}.finest is {entry.finest}, but must be one of {SIZES}")
    if entry.end < entry.step:
        raise Senseless(f"{where}.end is {entry.end}, but must not be before its step, {entry.step}")


def _require_order(entries: Sequence[Entry]) -> None:
    if entries[0].step != 0 or entries[0].done != 0:
        raise Senseless("entries[0] must have step 0 and done 0: it is where the run begins")
    for number, (one, two) in enumerate(itertools.pairwise(entries), start=1):
        if not one.step < two.step <= one.end:
            raise Senseless(
                f"entries[{number}].step is {two.step}, but must be after {one.step} and no later than "
                f"{one.end}, the step and the end of the entry before it"
            )
        if two.done < one.done:
            raise Senseless(
                f"entries[{number}].done is {two.done}, but must be {one.done} or more, as before it"
            )


# ---- what all of them need --------------------------------------------------------------------------------
def _require_names(record: Any, where: str, known: Collection[str], optional: Collection[str]) -> None:
    if not isinstance(record, Mapping):
        raise Senseless(f"{where} is {_shown(record)}, but must be an object with names and values")
    for name in record:
        if name not in known:
            raise Senseless(f"{where} has {_shown(name)}, which is no name there", suggestion(name, known))
    for name in known:
        if name not in record and name not in optional:
            raise Senseless(f"{where} has no {_shown(name)}")


def _typed(name: str, value: Any, hint: Any) -> Any:
    try:
        return fitting(value, hint)
    except Unfit as problem:
        wanted = problem.wanted
        for python, words in _IN_JSON:
            wanted = wanted.replace(python, words)
        raise Senseless(f"{name} is {_shown(problem.value)}, but must be {wanted}") from None


def _require_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise Senseless(f"{name} is {_shown(value)}, but must be between {least} and {most}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
