"""The README as a package index can show it. scikit-build-core calls this when it writes metadata.

An index shows one page and none of the files around it: relative pictures and links lead nowhere there. So
pictures go, links to files of the repository become the files' names, and commands install from the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
FOR_THE_REPOSITORY = ("Run the tests",)
"""Sections about a working copy."""
CLOSING = """
## Files that this page names

Paths such as `docs/lab.md` are files of the source archive; unpack it to read them.
"""

_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+[^`]+`+)")
_PICTURE = re.compile(
    r"^[ \t]*!\[[^\]]*\]\((?!https?:)[^)]*\)[ \t]*\n(?:\n?[ \t]*\*[^*\n][^*]*\*[ \t]*\n)?", re.MULTILINE
)
"""A line of its own, with the caption in italics that may follow it."""
_LINK = re.compile(r"(\(?)(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:)([^()\s]+)\)(?=(\)?))")
"""Its label and target, between the parentheses around it where it stands alone in them."""
_SECTION = r"^## {}\n.*?(?=^## |\Z)"
_FROM_HERE = re.compile(r"""pip install (?:(['"])\.(\[[\w,]+\])\1|\.(?![\w/]))""")
_EXTRA = re.compile(r"`\.(\[[\w,]+\])`")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    text = index_page(README.read_text("utf-8"), project["name"])
    return {"readme": {"content-type": "text/markdown", "text": text}}


def index_page(readme: str, name: str) -> str:
    for title in FOR_THE_REPOSITORY:
        readme = re.sub(_SECTION.format(re.escape(title)), "", readme, flags=re.MULTILINE | re.DOTALL)
    readme = _outside(_FENCE, readme, lambda part: _PICTURE.sub("", part))
    readme = _outside(_FENCE, readme, _without_relative_links)
    readme = _EXTRA.sub(rf"`{name}\1`", _FROM_HERE.sub(lambda found: _install(found, name), readme))
    return re.sub(r"\n{3,}", "\n\n", readme).rstrip() + "\n" + CLOSING


def _outside(what: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Changes everything but what the pattern, which has one group, finds."""
    parts = what.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def _without_relative_links(text: str) -> str:
    """Code has brackets and parentheses of its own; a label may hold code."""
    kept: list[str] = []

    def put_away(found: re.Match[str]) -> str:
        kept.append(found.group(0))
        return f"\0{len(kept) - 1}\0"

    hidden = _LINK.sub(_named, _CODE.sub(put_away, text))
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found.group(1))], hidden)


def _named(found: re.Match[str]) -> str:
    before, label, target, after = found.groups()
    target = target.partition("#")[0]
    if not target:  # a heading of this page: indexes give them no names
        return before + label
    if target.startswith(label.rstrip("/")):
        return f"{before}`{target}`"
    return f"({label}: `{target}`" if before and after else f"{before}{label} (`{target}`)"


def _install(found: re.Match[str], name: str) -> str:
    quote, extras = found.group(1) or "", found.group(2) or ""
    return f"pip install {quote}{name}{extras}{quote}"
