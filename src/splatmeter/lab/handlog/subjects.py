"""Which phase a sentence speaks of."""

from __future__ import annotations

import re

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.values import HandLog

_COMPARED = re.compile(rf"(?:{word_lists.REFERENCE.pattern})\s*(?:the\s|der\s|dem\s|den\s)?$", re.IGNORECASE)


def sentence_start(text: str, position: int) -> int:
    return max((found.end() for found in word_lists.SENTENCE_END.finditer(text[:position])), default=0)


def named_before(log: HandLog, text: str, position: int, compared: bool = True) -> list[str]:
    """Names in a sentence up to a position; without `compared` not those behind 'than'."""
    start = sentence_start(text, position)
    part = text[start:position]
    found = [(at, name) for at, _, name in log.called.within(part)]
    if log.baseline is not None:
        spans = [(at, end) for at, end, _ in log.called.within(part)]
        for word in word_lists.FIRST.finditer(part):
            if not any(at <= word.start() < end for at, end in spans):
                found.append((word.start(), log.baseline.name))
    kept = [(at, name) for at, name in sorted(found) if compared or not _COMPARED.search(part[:at])]
    return [name for _, name in kept]
