"""The few shapes all charts share: canvas, axes, marks, legends. Colours are classes, so themes apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from splatmeter.lab.report.markup import Markup, join, number, tag
from splatmeter.lab.report.report_document import run_anchor
from splatmeter.lab.report.scale import Scale

WIDE, NARROW = 900, 360
COLOURS = 8
CHARACTER = 6.6
"""Width of a usual character at 12 pixels, to know when a label must be shortened."""


@dataclass(frozen=True, slots=True)
class Box:
    """The part of a drawing inside the axes."""

    left: float
    top: float
    right: float
    bottom: float


def figure(
    draw: Callable[[int], Markup], caption: object, table: Markup, legend: Markup | None = None
) -> Markup:
    """A chart drawn twice, for a desk and for a hand; the style shows one. Its table lies behind it."""
    return tag(
        "figure",
        legend or "",
        tag("div", draw(WIDE), class_="wide"),
        tag("div", draw(NARROW), class_="narrow"),
        tag("figcaption", caption),
        tag("details", tag("summary", "Numbers as a table"), table),
    )


def canvas(width: float, height: float, label: str, *content: object) -> Markup:
    return tag(
        "svg",
        tag("title", label),
        *content,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=label,
        class_="chart",
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def rectangle(box: Box, class_: str, title: str = "") -> Markup:
    inside = tag("title", title) if title else ""
    size = {"width": max(0.0, box.right - box.left), "height": max(0.0, box.bottom - box.top)}
    return tag("rect", inside, x=float(box.left), y=float(box.top), **size, class_=class_)


def label(x: float, y: float, words: object, class_: str = "tick", anchor: str = "start") -> Markup:
    return tag("text", words, x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def shortened(words: str, width: float) -> str:
    fits = max(3, int(width / CHARACTER))
    return words if len(words) <= fits else words[: fits - 1] + "…"


def path(points: Iterable[tuple[float, float]], class_: str, title: str = "") -> Markup:
    places = [f"{number(x)} {number(y)}" for x, y in points]
    inside = tag("title", title) if title else ""
    return tag("path", inside, d="M" + "L".join(places), class_=class_) if places else Markup("")


def bottom_axis(scale: Scale, box: Box, title: str) -> Markup:
    """Grid lines, tick labels and the unit below the box."""
    parts: list[Markup] = []
    for tick in scale.ticks:
        x = scale(tick)
        parts.append(line(x, box.top, x, box.bottom, "grid"))
        parts.append(label(x, box.bottom + 16, scale.label(tick), "tick", "middle"))
    parts.append(line(box.left, box.bottom, box.right, box.bottom, "axis"))
    if title:
        parts.append(label((box.left + box.right) / 2, box.bottom + 34, title, "unit", "middle"))
    return join(parts)


def left_axis(scale: Scale, box: Box, title: str) -> Markup:
    """Tick labels outside, the unit above the axis, where it is read without turning the head."""
    parts: list[Markup] = []
    for tick in scale.ticks:
        y = scale(tick)
        parts.append(line(box.left, y, box.right, y, "grid"))
        parts.append(label(box.left - 6, y + 4, scale.label(tick), "tick", "end"))
    parts.append(label(box.left, box.top - 10, title, "unit"))
    return join(parts)


def mark(x: float, y: float, order: int, class_: str = "mark", size: float = 5.0, title: str = "") -> Markup:
    """Circle, square, triangle, diamond …: shape tells the phase as well as colour does."""
    classes = f"{class_} {colour(order)}"
    inside = tag("title", title) if title else ""
    s = size
    shapes: tuple[tuple[tuple[float, float], ...], ...] = (
        (),
        ((-s, -s), (s, -s), (s, s), (-s, s)),
        ((0, -1.25 * s), (1.2 * s, s), (-1.2 * s, s)),
        ((0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)),
        ((0, 1.25 * s), (1.2 * s, -s), (-1.2 * s, -s)),
    )
    corners = shapes[order % len(shapes)]
    if not corners:
        return tag("circle", inside, cx=float(x), cy=float(y), r=float(s), class_=classes)
    places = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    return tag("polygon", inside, points=places, class_=classes)


def colour(order: int) -> str:
    return f"c{order % COLOURS}"


def dash(order: int) -> str:
    """Later phases reuse colours with another dash."""
    return f"d{order // COLOURS % 3}"


def to_run(run: str, content: Markup) -> Markup:
    """A link from a mark to the run's row on this page."""
    return tag("a", content, href=f"#{run_anchor(run)}")


def legend(entries: Sequence[tuple[int, str]], lines: bool = False) -> Markup:
    items: list[Markup] = []
    for order, name in entries:
        if lines:
            sample = path([(0.0, 8.0), (26.0, 8.0)], f"curve {colour(order)} {dash(order)}")
        else:
            sample = mark(13, 8, order)
        swatch = tag("svg", sample, viewBox="0 0 26 16", aria_hidden="true", class_="swatch")
        items.append(tag("li", swatch, name))
    return tag("ul", *items, class_="legend")


def swatches(entries: Sequence[tuple[str, str]]) -> Markup:
    """Legend of filled areas: (class, name)."""
    items = [
        tag(
            "li",
            tag(
                "svg",
                rectangle(Box(2, 2, 24, 14), class_),
                viewBox="0 0 26 16",
                aria_hidden="true",
                class_="swatch",
            ),
            name,
        )
        for class_, name in entries
    ]
    return tag("ul", *items, class_="legend")
