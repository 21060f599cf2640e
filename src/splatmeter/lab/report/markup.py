"""HTML and SVG that cannot be broken out of: whatever is not markup already is escaped on its way in."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, turns of the writing direction, halves of characters: they hide what stands there."""
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_EMPTY = {"meta", "input", "img", "br", "link"}
_RAW = {"script", "style"}

Attribute = str | float | bool | None


class Markup(str):
    """Text that is markup already; only this module and its callers' constants make it."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Anything as text, safe between tags and inside quoted attributes."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True))


def join(parts: Iterable[object], between: object = "") -> Markup:
    return Markup(text(between).join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: Attribute) -> Markup:
    """`class_` and `aria_label` become class and aria-label; None and False are left out, True is bare."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an element")
    if name in _RAW and not all(isinstance(child, Markup) for child in children):
        raise ValueError(f"<{name}> takes constants only")
    head = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    return Markup(f"<{head}>" if name in _EMPTY else f"<{head}>{join(children)}</{name}>")


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or name.startswith("on") or name == "style":
        raise ValueError(f"{name!r} is not an attribute of this page")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{number(value) if isinstance(value, float) else text(value)}"'


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough, and shorter."""
    return f"{value:.1f}".removesuffix(".0")
