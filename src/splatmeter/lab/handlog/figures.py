"""Reading one labelled bullet: 'Speed: 11.36 it/s (+0.24 it/s from Phase 1, +2.2%)'."""

from __future__ import annotations

import re
from collections.abc import Sequence

from splatmeter.lab.handlog.markdown import Bullet
from splatmeter.lab.handlog.names import mentioned_name
from splatmeter.lab.handlog.quantities import Quantity, quantities
from splatmeter.lab.handlog.values import (
    METRICS,
    ClaimedChange,
    HandFigure,
    Start,
)
from splatmeter.lab.handlog.word_lists import ARROW

_REFERENCE = re.compile(r"\b(?:from|vs\.?|versus|than|against|over|compared (?:to|with)|relative to)\b", re.I)
_SAME = re.compile(r"\bsame as\b|\bequal to\b|\bidentical to\b", re.IGNORECASE)
_ESTIMATED = re.compile(r"\bestimate[ds]?\b|\bguess", re.IGNORECASE)
_UNIT_OF = {"speed": "it/s", "training peak": "B", "evaluation peak": "B", "reported peak": "B"}
_INTERVAL = re.compile(r"\[\s*(\d[\d.,]*)\s*(?:,|;|–|to)\s*(\d[\d.]*)\s*\]")


def key_of_label(label: str, split: str = "") -> str:
    """Which figure a label names; empty if none. `split` is that of the list it stands in."""
    words = label.lower()
    spoken = "test" if "test" in words else "train" if re.search(r"\btrain\b", words) else split
    metric = next((name for name in METRICS if re.search(rf"\b{name}\b", words)), "")
    if metric:
        return f"{spoken} {metric}" if spoken else ""
    if "speed" in words and "spill" not in words:
        return "speed"
    if re.search(r"\bloss\b", words):
        return "loss"
    if "gaussians" in words or "model size" in words:
        return "gaussians"
    if "opacity" in words:
        return "opacity"
    return _memory_key(words)


def _memory_key(words: str) -> str:
    if "peak" not in words or "shared" in words:
        return ""
    if "eval" in words:
        return "evaluation peak"
    if "train" in words:
        return "training peak"
    return "reported peak" if "actual" not in words else ""


def figures_of(bullets: Sequence[Bullet], names: Sequence[str], split: str = "") -> dict[str, HandFigure]:
    """All figures of a section; the first of each kind counts, as people put the result first. What is
    labelled as a comparison ('Peak against baseline') counts where nothing else tells it."""
    figures: dict[str, HandFigure] = {}
    for bullet in sorted(bullets, key=lambda bullet: bool(_REFERENCE.search(bullet.label))):
        key = key_of_label(bullet.label, split)
        figure = read_figure(bullet, names, _UNIT_OF.get(key)) if key else None
        if figure is not None:
            figures.setdefault(key, figure)
        label = bullet.label.lower()
        if "metrics" in label or "quality" in label:
            inner = "train" if "train" in label else "test"
            for key, child in figures_of(bullet.children, names, inner).items():
                figures.setdefault(key, child)
    return figures


def read_figure(bullet: Bullet, names: Sequence[str], unit: str | None = None) -> HandFigure | None:
    """The first number (of the unit, if one is asked for), and what the rest of the line claims about it.

    Where an arrow leads on from it ('499 MB → 405 MB'), the figure is what it leads to.
    """
    found = [q for q in quantities(bullet.text) if unit is None or q.unit == unit]
    main = found[0] if found else None
    if len(found) > 1 and ARROW.match(bullet.text[found[0].end : found[1].start]):
        main = found[1]
    if main is None or main.signed:
        return None
    rest = bullet.text[main.end :]
    interval = _INTERVAL.search(rest)
    return HandFigure(
        main,
        bullet.line,
        bullet.text,
        _changes(rest, main, names),
        mentioned_name(rest, names) if _SAME.search(rest) else "",
        bool(_ESTIMATED.search(rest)) or main.approximate,
        (float(interval[1].rstrip(",")), float(interval[2])) if interval else None,
    )


def _changes(rest: str, main: Quantity, names: Sequence[str]) -> tuple[ClaimedChange, ...]:
    """Signed numbers of the same unit, or percentages, inside the parentheses after the figure."""
    changes: list[ClaimedChange] = []
    for group in re.findall(r"\(([^()]*)\)", rest):
        spoken = _REFERENCE.search(group)
        reference = mentioned_name(group[spoken.end() :], names) if spoken else ""
        for quantity in quantities(group):
            if quantity.signed and quantity.unit in (main.unit, "%"):
                changes.append(ClaimedChange(quantity, reference))
    return tuple(changes)


def start_of(text: str, line: int, names: Sequence[str]) -> Start | None:
    """'from baseline checkpoint (iter 3000→4000)', 'Started from checkpoint at iter 7000'."""
    found = re.search(r"\bfrom\s+(.{0,60}?)checkpoint\b(.*)", text, re.IGNORECASE)
    if not found:
        return None
    step = re.search(r"(?:iter\w*|step)\s*(\d{1,9})", found[2], re.IGNORECASE)
    return Start(int(step[1]) if step else None, mentioned_name(found[1], names), line)


def resolution_of(text: str) -> int | None:
    """4 from '-r4' or '-r 4'."""
    found = re.search(r"(?<![\w-])-r\s?(\d{1,9})\b|--resolution\s+(\d{1,9})", text)
    return int(found[1] or found[2]) if found else None
