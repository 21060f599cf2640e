"""A word that is not known, and the known one it was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

SIMILAR = 0.6
"""Share of characters in common from which a word is worth suggesting."""


def unknown_option(words: Sequence[str], known: Collection[str]) -> str:
    """One sentence about the first option that is none, or nothing where all are known."""
    for word in words:
        name = word.partition("=")[0]
        if is_option(name) and name not in known:
            return f"There is no option {name[:60]}.{suggestion(name, known)}"
    return ""


def suggestion(word: str, known: Collection[str]) -> str:
    """' Did you mean ...?', with the shortest that begins so, else the most similar."""
    begun = sorted((name for name in known if len(word) > 3 and name.startswith(word)), key=len)
    nearest = begun or difflib.get_close_matches(word, sorted(known), 1, SIMILAR)
    return f" Did you mean {nearest[0]}?" if nearest else ""


def is_option(word: str) -> bool:
    """-5 and -.5 are numbers."""
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."
