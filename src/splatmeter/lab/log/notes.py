"""The person's part of a generated log: blocks between marks that survive regeneration."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

OVERVIEW = "document/overview"
MEASUREMENT = "document/measurement"
_OPEN = re.compile(r"<!-- notes: (?P<key>\S+) -->[ \t]*\n?")
_CLOSE = re.compile(r"\n?[ \t]*<!-- /notes -->")
_NEXT_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


def key_of_phase(name: str) -> str:
    return f"phase/{name}"


def write_block(key: str, text: str) -> str:
    # A double hyphen would end the comment; quote() leaves hyphens alone.
    mark = quote(key, safe="/").replace("-", "%2D")
    body = text.strip("\n")
    return (
        f"<!-- notes: {mark} -->\n{body}\n<!-- /notes -->"
        if body
        else f"<!-- notes: {mark} -->\n<!-- /notes -->"
    )


def read_notes(text: str) -> dict[str, str]:
    """Every block by its key, empty ones too. Without its end mark one ends at the next block or heading."""
    text = text.replace("\r\n", "\n")
    notes: dict[str, str] = {}
    opened = list(_OPEN.finditer(text))
    for number, mark in enumerate(opened):
        limit = opened[number + 1].start() if number + 1 < len(opened) else len(text)
        body = text[mark.end() : limit]
        closed = _CLOSE.search(body)
        heading = _NEXT_HEADING.search(body)
        if closed:
            body = body[: closed.start()]
        elif heading:
            body = body[: heading.start()]
        key = unquote(mark["key"])
        body = body.strip("\n")
        if key in notes and body and notes[key]:
            body = f"{notes[key]}\n\n{body}"
        notes[key] = body or notes.get(key, "")
    return notes


def without_marks(text: str) -> str:
    """Text from elsewhere must not be able to open or close a block."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")
