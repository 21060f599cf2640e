"""Numbers as the page writes them; what is unknown is a dash, never 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

from splatmeter.lab.report.markup import Markup, tag
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.units import bytes_text

UNKNOWN = "–"
SYMBOLS = {
    VerdictKind.FASTER: ("▲", "good"),
    VerdictKind.VERIFIED: ("✓", "good"),
    VerdictKind.NO_SPEED_UP: ("=", "same"),
    VerdictKind.SLOWER: ("▼", "bad"),
    VerdictKind.QUALITY_LOST: ("✕", "bad"),
    VerdictKind.UNDECIDED: ("?", "open"),
    VerdictKind.QUESTIONABLE: ("!", "doubt"),
    VerdictKind.PLANNED: ("○", "open"),
    VerdictKind.ON_HOLD: ("‖", "open"),
    VerdictKind.LEANER: ("▲", "good"),
    VerdictKind.FASTER_AND_LEANER: ("▲", "good"),
    VerdictKind.MORE_MEMORY: ("▼", "bad"),
    VerdictKind.SOONER: ("▲", "good"),
    VerdictKind.LATER: ("▼", "bad"),
    VerdictKind.BETTER: ("▲", "good"),
    VerdictKind.WORSE: ("▼", "bad"),
    VerdictKind.NO_GAIN: ("=", "same"),
}
"""Each verdict has a sign as well as a colour."""
METRICS = {"psnr": ("PSNR", "dB", 2), "ssim": ("SSIM", "", 4), "lpips": ("LPIPS", "", 4), "l1": ("L1", "", 5)}


def figure_cell(value: float | None, decimals: int = 2, unit: str = "") -> str:
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{decimals}f}{chr(160) + unit if unit else ''}"


def rate_text(value: float | None) -> str:
    """Four significant digits, however slow or fast."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3
    return f"{value:,.{decimals}f}"


def size_text(count: float | None) -> str:
    return UNKNOWN if count is None else bytes_text(count).replace(" ", chr(160))


def metric_name(name: str) -> str:
    return METRICS.get(name, (name, "", 4))[0]


def metric_text(name: str, value: float | None) -> str:
    _, unit, decimals = METRICS.get(name, (name, "", 4))
    return figure_cell(value, decimals, unit)


def ratio_cell(ratio: float, low: float, high: float) -> str:
    if not math.isfinite(high):
        return f"{ratio:.4f}, no interval yet"
    return f"{ratio:.4f} [{low:.4f}, {high:.4f}]"


def chip(kind: VerdictKind | None, otherwise: str = "") -> Markup:
    """The verdict in a word, with its sign and colour."""
    if kind is None:
        return tag("span", otherwise or "no verdict", class_="chip open")
    sign, tone = SYMBOLS[kind]
    return tag("span", tag("span", sign, aria_hidden="true"), " ", kind.value, class_=f"chip {tone}")


def html_table(head: Sequence[object], rows: Sequence[Sequence[object]], caption: str = "") -> Markup:
    """Scrolls sideways by itself where it is too wide, so that the page never does."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    title = tag("caption", caption) if caption else ""
    inside = tag("table", title, tag("thead", top), tag("tbody", *body))
    return tag("div", inside, class_="scroll", tabindex="0", role="group", aria_label=caption or "Table")
