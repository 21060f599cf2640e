"""Finding the phase that somebody means: 'Aggressive Prune' is 'Aggressive Pruning Test - Full 30K Run'."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[A-Za-z0-9][\w.\-]*")
_SHORTEST_STEM = 4


def phase_name(title: str) -> str:
    """What stands before ' - ', ' – ', ': ' or a parenthesis, without a status in capitals at the end."""
    head = re.split(r"\s+[-–—]\s+|:\s|\s\(", title, maxsplit=1)[0]
    return re.sub(r"(\s+[A-Z]{2,}[!?.]*)+$", "", head).strip() or title.strip()


def match_name(mention: str, names: Sequence[str], titles: Sequence[str] = ()) -> str:
    """The name meant by a table cell or a few words; empty if none fits."""
    wanted = mention.strip().lower()
    if not wanted:
        return ""
    for name in names:
        if name.lower() == wanted:
            return name
    candidates = titles or names
    fitting = [name for name, title in zip(names, candidates, strict=True) if _covers(title, wanted)]
    return fitting[0] if fitting else ""


def mentioned_name(text: str, names: Sequence[str]) -> str:
    """The longest phase name that occurs in a text as whole words."""
    found = [
        name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE)
    ]
    return max(found, key=len, default="")


def _covers(title: str, wanted: str) -> bool:
    """Every word of the mention starts like some later word of the title."""
    words = [word.lower() for word in _WORD.findall(title)]
    position = 0
    for word in _WORD.findall(wanted):
        while position < len(words) and not _alike(word, words[position]):
            position += 1
        if position == len(words):
            return False
        position += 1
    return True


def _alike(a: str, b: str) -> bool:
    if a == b:
        return True
    if any(character.isdigit() for character in a + b):
        return False  # 'phase2' is not 'phase2d'
    stem = min(len(a), len(b), max(_SHORTEST_STEM, len(a) - 2))
    return len(a) >= _SHORTEST_STEM and len(b) >= _SHORTEST_STEM and a[:stem] == b[:stem]


class Names:
    """All words by which phases are called, found in one pass over a text."""

    def __init__(self, called: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._of: dict[str, str] = {}
        for name, aliases in called:
            self._of.setdefault(name.lower(), name)
            for alias in aliases:
                if len(alias) > 1:
                    self._of.setdefault(alias.lower(), name)
        words = sorted(filter(None, self._of), key=len, reverse=True)
        pattern = "|".join(re.escape(word) for word in words)
        self._pattern = (
            re.compile(rf"(?<![\w.-])(?:{pattern})(?![\w-]|\.\d)", re.IGNORECASE) if words else None
        )

    def within(self, text: str) -> list[tuple[int, int, str]]:
        """Start, end and name of each phase that a text speaks of, in order."""
        if self._pattern is None:
            return []
        return [(m.start(), m.end(), self._of[m.group().lower()]) for m in self._pattern.finditer(text)]
