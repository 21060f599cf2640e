"""Text from outside, made harmless inside Markdown: it may not end a line, a cell, or a block of notes."""

from __future__ import annotations

import re

from splatmeter.lab.log.notes import without_marks

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CODE = re.compile(r"(`+[^`]*`+)")


def inline(text: str) -> str:
    """One line; tags and links are shown rather than obeyed, except inside code marks, where they are text
    anyway.
    """
    parts = _CODE.split(without_marks(" ".join(_CONTROL.sub(" ", text).split())))
    return "".join(part if i % 2 else _shown(part) for i, part in enumerate(parts))


def _shown(text: str) -> str:
    """Addresses that a viewer would make links of by itself are broken by a backslash that nobody sees."""
    text = re.sub(r"\](?=[(\[:])", r"\\]", text.replace("\\", "\\\\").replace("<", "\\<"))
    return re.sub(r"\bwww\.", r"www\\.", text.replace("://", ":\\//"), flags=re.IGNORECASE)


def cell(text: str) -> str:
    """As `inline`, and a bar is a character instead of a border."""
    return inline(text).replace("|", "\\|") or "-"
