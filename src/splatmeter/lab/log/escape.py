"""Text from outside, made harmless inside Markdown: it may not end a line, a cell, or a block of notes."""

from __future__ import annotations

import re

from splatmeter.lab.log.notes import without_marks

_CODE = re.compile(r"(`+[^`]*`+)")


def inline(text: str) -> str:
    """One line; tags are shown rather than obeyed, except inside code marks, where they are text anyway."""
    parts = _CODE.split(without_marks(" ".join(text.split())))
    return "".join(part if i % 2 else part.replace("<", "\\<") for i, part in enumerate(parts))


def cell(text: str) -> str:
    """As `inline`, and a bar is a character instead of a border."""
    return re.sub(r"(?<!\\)\|", r"\\|", inline(text)) or "-"
