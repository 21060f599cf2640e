"""Which phase a claimed change is counted from."""

from __future__ import annotations

import re

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.mentions import Role
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said


def references_of(
    log: HandLog, said: Said, position: int, subject: HandPhase | None
) -> tuple[tuple[str, ...], bool]:
    """The phase named behind the claim, else the one named before it in its clause or in the heading."""
    text, here = said.passage.words, said.mentions[position].quantity
    limit = next(
        (m.quantity.start for m in said.mentions[position + 1 :] if m.role is Role.CHANGE), len(text)
    )
    after = word_lists.head(
        text[here.end : min(limit, here.end + 80)], re.compile(r"[;)]|" + word_lists.SENTENCE_END.pattern)
    )
    clause = word_lists.tail(
        text[max(0, here.start - 60) : here.start], re.compile(r"[;,(]\s?|" + word_lists.SENTENCE_END.pattern)
    )
    if here.unit == "x" and (next_to := log.called.within(after[:30])) and next_to[0][0] <= 5:
        return (next_to[0][2],), False  # '1.29x start'
    for near in (after, clause, said.heading):
        word = word_lists.REFERENCE.search(near)
        while word:
            behind = near[word.end() : word.end() + 45]
            named = [
                n
                for at, _, n in log.called.within(behind)
                if at < 25 and (subject is None or n != subject.name)
            ]
            if named:
                return (named[0],), False
            if word_lists.PREVIOUS.search(behind[:30]):
                return (), True
            if word_lists.FIRST.search(behind[:30]) and log.baseline:
                return (log.baseline.name,), False
            if (meant := _meant(log, behind, subject)) is not None:
                return (meant,), False
            word = word_lists.REFERENCE.search(near, word.end())
    if word_lists.PREVIOUS.search(said.heading):
        return (), True
    return (
        ((log.baseline.name,), False)
        if word_lists.FIRST.search(said.heading) and log.baseline
        else ((), False)
    )


def of_the_parentheses(
    log: HandLog, said: Said, position: int, subject: HandPhase | None
) -> tuple[tuple[str, ...], bool]:
    """'(+0.24 it/s from Phase 1, +2.2 %)', '(-345 MB, -18.9 % from Phase 1)': one reference for all."""
    text, here = said.passage.words, said.mentions[position].quantity
    opened, closed = text.rfind("(", 0, here.start), text.find(")", here.end)
    if opened < 0 or closed < 0 or ")" in text[opened : here.start]:
        return (), False
    for other, mention in enumerate(said.mentions):
        if other != position and opened < mention.quantity.start < closed and mention.role is Role.CHANGE:
            found = references_of(log, said, other, subject)
            if found[0] or found[1]:
                return found
    return (), False


def _meant(log: HandLog, words_said: str, subject: HandPhase | None) -> str | None:
    """'with the new rasteriser' is the paragraph that begins 'Then came the new rasteriser'."""
    spoken = set(re.findall(r"[a-zäöüß]{5,}", word_lists.head(words_said, word_lists.CLAUSE_END).lower())) - {
        "before",
        "without",
        "first",
    }
    earlier = log.before(subject) if subject else log.phases
    fitting = [
        p.name for p in earlier if spoken and spoken <= set(re.findall(r"[a-zäöüß]{5,}", p.title.lower()))
    ]
    return fitting[0] if len(fitting) == 1 else None
