"""What words say about figures without a number: unchanged, rose, the fastest, slower than another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.arithmetic import candidates, lines_text
from splatmeter.lab.handlog.mentions import Mention, Role, key_of_words
from splatmeter.lab.handlog.quantities import Quantity, change_percent
from splatmeter.lab.handlog.subjects import named_before
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said
from splatmeter.lab.samples.finding import Finding, Severity

CLOSE_ENOUGH = 0.3
"""Percent that people still call the same."""
_AS_NAMED = re.compile(r"^\s+(?:as|wie)\s(?:in\s)?[\w .-]{1,30}?\s?[:(]\s*$", re.IGNORECASE)
_LEADS_TO = re.compile(
    r"[\s:(=~≈–-]*(?:(?:at|bei|with|mit|zu|as before|zuvor|wie zuvor|wie bisher|still|noch)[\s:(~≈]*){0,2}",
    re.IGNORECASE,
)
_FASTEST = re.compile(
    r"\b(?:the |der |die |das |am )?(?:schnellsten|fastest|quickest|schnellste[rns]?)\b(?P<rest>[^.;]{0,40})",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"\b(?:without|among|with|under|at|that|which|ohne|mit|unter|bei|apart|except|after|außer|nach)\b",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?P<word>faster|slower|schneller|langsamer)\s+(?:than|as|als)\s+", re.IGNORECASE)


def not_unchanged(log: HandLog) -> list[Finding]:
    """'9.6 GB (same)', 'LPIPS unchanged (0.242)', 'unverändert: 8,4 GB'."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            if said.heading:
                continue
            for mention, spoken, at in _called_same(said):
                others = _compared(log, phase, said, mention, at)
                if others and not any(_same(other, mention.quantity) for _, other in others):
                    findings.append(_not_same(phase, mention, spoken, others[0]))
    return findings


def _called_same(said: Said) -> Iterator[tuple[Mention, str, int]]:
    """The figure that stands in the words 'unchanged' of its clause, if no other figure stands between."""
    text = said.passage.words
    for found in word_lists.SAME.finditer(text):
        if word_lists.NEGATED.search(text[max(0, found.start() - 14) : found.start()]):
            continue
        before = [m for m in said.mentions if m.quantity.end <= found.start()][-1:]
        after = [m for m in said.mentions if m.quantity.start >= found.end()][:1]
        chosen = [m for m in after if _said_ahead(text, found, m)]
        chosen = chosen or [m for m in before if _said_behind(text[m.quantity.end : found.start()])]
        for mention in chosen:
            if mention.role is Role.VALUE and mention.key:
                yield mention, found.group(), found.end()


def _said_ahead(text: str, found: re.Match[str], mention: Mention) -> bool:
    """'unchanged at 8.4 GB', 'same in LPIPS (0.242)', 'VRAM is the same, 5.9 GB'."""
    if mention.role is not Role.VALUE or not mention.key:
        return False
    between = text[found.end() : mention.quantity.start]
    spoken = word_lists.tail(text[max(0, found.start() - 40) : found.start()], word_lists.CLAUSE_END)
    if re.fullmatch(r"\s?[,:]\s", between) and key_of_words(spoken) == mention.key:
        return True
    about = re.fullmatch(r"\s(?:in |of |bei |an )?(?:the |der |dem )?([\w ]{2,24}?)\s?[(:]\s?", between)
    if _AS_NAMED.match(between) or (about and key_of_words(about[1]) == mention.key):
        return True
    return bool(_LEADS_TO.fullmatch(between))


def _said_behind(between: str) -> bool:
    """'9.6 GB (same)'."""
    pattern = r"[\s(,:=–-]*(?:(?:the|is|also|and|exactly|ist|bleibt)\s)?"
    return bool(re.fullmatch(pattern, between, re.IGNORECASE))


def _compared(
    log: HandLog, phase: HandPhase, said: Said, mention: Mention, at: int
) -> list[tuple[str, Quantity]]:
    named = [
        name
        for start, _, name in log.called.within(said.passage.words[at : at + 40])
        if start < 12 and name != phase.name
    ]
    if named:
        others = [log.phase(named[0])]
    else:
        behind = said.passage.words[at : at + 24]
        first = word_lists.FIRST.search(behind)
        others = [log.baseline] if first and log.baseline else candidates(log, phase, mention.key)[:2] or []
        if not first:
            others = [*others, *([log.baseline] if log.baseline else [])]
    figures = [
        (o.name, f.quantity) for o in others if o and o.name != phase.name and (f := o.figure(mention.key))
    ]
    return [
        (name, q) for name, q in figures if q.unit in (mention.quantity.unit, "") or not mention.quantity.unit
    ]


def _same(before: Quantity, after: Quantity) -> bool:
    if before.agrees(after):
        return True
    percent, _, _ = change_percent(before, after)
    return abs(percent) <= CLOSE_ENOUGH


def _not_same(phase: HandPhase, mention: Mention, spoken: str, other: tuple[str, Quantity]) -> Finding:
    percent, _, _ = change_percent(other[1], mention.quantity)
    sentence = (
        f"{phase.name}: {mention.key} {mention.quantity.text} is called '{spoken}', but {other[0]} has "
        f"{other[1].text} ({percent:+.1f} %)."
    )
    return Finding("not the same", sentence, Severity.WRONG, lines_text([mention.line]))


def wrong_directions(log: HandLog) -> list[Finding]:
    """'speed rose to 11.7 it/s' after 12.0; 'PSNR dropped to 27.3' after 27.1."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            for mention in said.mentions:
                if mention.role is not Role.VALUE or not mention.key or mention.key in ("time", "iterations"):
                    continue
                direction, spoken = _spoken_direction(said.passage.words, mention)
                others = [(o.name, o.figure(mention.key)) for o in candidates(log, phase, mention.key)]
                known = [
                    (name, f.quantity) for name, f in others if f and f.quantity.unit == mention.quantity.unit
                ]
                if direction and known and all(_opposes(direction, q, mention.quantity) for _, q in known):
                    name, before = known[0]
                    sentence = (
                        f"{phase.name}: {mention.key} is said to have changed ('{spoken}') to "
                        f"{mention.quantity.text}, "
                        f"but it was {before.text} in {name}: the other way."
                    )
                    findings.append(
                        Finding("wrong direction", sentence, Severity.WRONG, lines_text([mention.line]))
                    )
    return findings


def _spoken_direction(text: str, mention: Mention) -> tuple[int, str]:
    """By the verb that leads to the figure; 'from A to B' has its own rule."""
    before = word_lists.tail(
        text[max(0, mention.quantity.start - 50) : mention.quantity.start],
        re.compile(r"[;:()]|\d|" + word_lists.SENTENCE_END.pattern),
    )
    clause = word_lists.tail(before, word_lists.CLAUSE_END)
    if word_lists.NEGATED.search(before) or re.search(
        r"\bfrom\b|\bvon\b|\bthan\b|\bals\b", clause, re.IGNORECASE
    ):
        return 0, ""
    found = re.search(
        r"(?P<up>\bros(?:e|en)|\brises|\bincreas(?:es|ed)|\bclimb(?:s|ed)|\bgrew|\bgrows|\bsteigt|\bstieg|"
        r"\bwent up|\bimproves|\bimproved)|"
        r"(?P<down>\bfell|\bfalls|\bdrop(?:s|ped)|\bdecreas(?:es|ed)|\bsank|\bsinkt|\bfällt|\bfiel|\bwent "
        r"down|\bshr[iau]nks?|\breduced)|"
        r"(?P<fast>\bfaster|\bschneller)|(?P<slow>\bslower|\blangsamer)",
        before,
        re.IGNORECASE,
    )
    if not found or not re.search(r"\b(?:to|auf|at|bei|with|mit)\s+[~≈]?\s*$|[,:]\s*$", before):
        return 0, ""
    word = found.group()
    if found["fast"] or found["slow"]:
        return ((1 if found["fast"] else -1), word) if mention.key == "speed" else (0, "")
    if word.lower().startswith("improv"):
        less = mention.key.endswith(("peak", "lpips", "l1", "loss"))
        return (-1 if less else 1), word
    return (1 if found["up"] else -1), word


def _opposes(direction: int, before: Quantity, after: Quantity) -> bool:
    return after.high < before.low if direction > 0 else after.low > before.high


def wrong_ranks(log: HandLog) -> list[Finding]:
    """'fused-adam is the fastest of all', 'slower than fused-adam'."""
    findings: list[Finding] = []
    everything = [(None, said) for said in log.loose] + [
        (phase, said) for phase in log.phases for said in phase.said
    ]
    for phase, said in everything:
        text = said.passage.words
        for found in _FASTEST.finditer(text):
            behind = [name for at, _, name in log.called.within(found["rest"]) if at < 12]
            subject = log.phase(behind[0]) if behind else _who(log, phase, text, found.start())
            if subject and not _QUALIFIED.search(found["rest"]):
                so_far = re.search(r"so far|yet|bisher|bislang", found["rest"], re.IGNORECASE)
                findings += _not_fastest(
                    log, subject, bool(so_far), said.passage.line_at(found.start()), found.group().strip()
                )
        for found in _THAN.finditer(text):
            subject = _who(log, phase, text, found.start())
            named = log.called.within(text[found.end() : found.end() + 50])
            if (
                subject
                and named
                and named[0][0] < 8
                and not word_lists.NEGATED.search(text[max(0, found.start() - 20) : found.start()])
            ):
                findings += _not_than(
                    log, subject, named[0][2], found["word"], said.passage.line_at(found.start())
                )
    return findings


def _who(log: HandLog, phase: HandPhase | None, text: str, position: int) -> HandPhase | None:
    named = set(named_before(log, text, position))
    return log.phase(named.pop()) if len(named) == 1 else phase if not named else None


def _not_fastest(log: HandLog, subject: HandPhase, so_far: bool, line: int, spoken: str) -> list[Finding]:
    own = subject.figure("speed")
    others = log.before(subject) if so_far else log.phases
    rivals = [(o, f.quantity) for o in others if o.name != subject.name and (f := o.figure("speed"))]
    better = [(o, q) for o, q in rivals if own and q.low > own.quantity.high]
    if not own or not better:
        return []
    other, quantity = max(better, key=lambda pair: pair[1].value)
    sentence = (
        f"{subject.name} is called '{spoken}' with {own.quantity.text}, but {other.name} has {quantity.text}."
    )
    return [Finding("not the fastest", sentence, Severity.WRONG, lines_text([line]))]


def _not_than(log: HandLog, subject: HandPhase, name: str, word: str, line: int) -> list[Finding]:
    other = log.phase(name)
    own, theirs = subject.figure("speed"), other.figure("speed") if other else None
    if own is None or theirs is None or name == subject.name:
        return []
    direction = 1 if word.lower() in ("faster", "schneller") else -1
    if not _opposes(direction, theirs.quantity, own.quantity):
        return []
    sentence = (
        f"{subject.name} is called {word} than {name}, but has {own.quantity.text} against "
        f"{theirs.quantity.text}."
    )
    return [Finding("wrong direction", sentence, Severity.WRONG, lines_text([line]))]
