"""Every change that a log claims: how much, of which figure, against which phase."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.mentions import Mention, Role, key_of_words, memory_key
from splatmeter.lab.handlog.quantities import Quantity
from splatmeter.lab.handlog.references import of_the_parentheses, references_of
from splatmeter.lab.handlog.subjects import named_before, sentence_start
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said

NEAR = 60
"""Characters between a figure and what is said about it."""
_NO_CHANGE = re.compile(
    r"^\s*\)?\s*(?:usage|used|utili[sz]|interval|confidence|ci\b|toleran|percentile|quantile|opacity|opaque|"
    r"margin|"
    r"of (?!before|it\b|that|the (?:baseline|previous|original|start)|baseline|what)|der (?:zeit|schritte|"
    r"karte)|des |auslastung|lossless)",
    re.IGNORECASE,
)
_OF_BEFORE = re.compile(r"^\s*(?:of|von|des)\s", re.IGNORECASE)
_INTERVAL = re.compile(r"^\s*\[\s*([+\-−]?\d[\d.]*)\s*%?\s*[,;]\s*([+\-−]?\d[\d.]*)")
_FROM = re.compile(r"^\s*\(?(?:down |up )?(?:from|instead of|statt|von)\s*[~≈]?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    quantity: Quantity
    key: str
    phase: HandPhase | None
    """Whose figure changed."""
    before: Quantity | None
    """The figure before, if it stands beside the claim."""
    after: Quantity | None
    references: tuple[str, ...]
    """The phases it is counted from; empty if it names none."""
    previous: bool
    """It names 'the one before'."""
    direction: int
    """+1 more, -1 less, 0 unsaid."""
    remaining: bool
    """'80 % of before'."""
    line: int
    in_table: bool
    interval: tuple[float, float] | None = None


def claimed_changes(log: HandLog) -> Iterator[Claim]:
    for phase in log.phases:
        for said in phase.said:
            yield from _claims(log, phase, said)
    for said in log.loose:
        yield from _claims(log, None, said)


def _claims(log: HandLog, phase: HandPhase | None, said: Said) -> Iterator[Claim]:
    text = said.passage.words
    for position, mention in enumerate(said.mentions):
        if mention.role is not Role.CHANGE or _is_no_change(text, mention.quantity):
            continue
        pair = _pair(text, said.mentions, position) or _apart(text, said.mentions, position)
        value = pair[1] if pair else _attached(text, said.mentions, position)
        key = _key(text, said, mention, value)
        subject = phase or _subject(log, text, mention.quantity.start)
        references, previous = references_of(log, said, position, subject)
        span = _span(log, said, position) if phase is None else None
        if span is not None and not pair:
            references, subject = (span[0],), log.phase(span[1])
        if not references and not previous:
            references, previous = of_the_parentheses(log, said, position, subject)
        if key or pair:
            yield _claim(text, said, mention, key, subject, pair, value, references, previous)


def _claim(
    text: str,
    said: Said,
    mention: Mention,
    key: str,
    subject: HandPhase | None,
    pair: tuple[Mention, Mention] | None,
    value: Mention | None,
    references: tuple[str, ...],
    previous: bool,
) -> Claim:
    found = _INTERVAL.match(text[mention.quantity.end :])
    bounds = [float(found[i].replace("−", "-")) for i in (1, 2)] if found else []
    return Claim(
        quantity=mention.quantity,
        key=key or "figure",
        phase=subject,
        before=pair[0].quantity if pair else None,
        after=value.quantity if value is not None and (value.key == key or pair) else None,
        references=references,
        previous=previous,
        direction=_direction(text, mention.quantity, key),
        remaining=bool(_OF_BEFORE.match(text[mention.quantity.end :])),
        line=mention.line,
        in_table=bool(said.heading),
        interval=(min(bounds), max(bounds)) if bounds else None,
    )


def _is_no_change(text: str, quantity: Quantity) -> bool:
    before = word_lists.tail(text[max(0, quantity.start - NEAR) : quantity.start], word_lists.CLAUSE_END)
    inside = text[max(0, quantity.start - 30) : quantity.start]
    return (
        quantity.text.startswith("±")
        or bool(_NO_CHANGE.match(text[quantity.end : quantity.end + 40]))
        or bool(word_lists.NOT_MEASURED.search(before))
        or bool(re.search(r"±\s*$|[\d]\s*[-–]\s*$", inside))
        or ("[" in inside and "]" not in inside[inside.rfind("[") :])
        or bool(
            re.search(
                r"\bevery\b|\balle\b|\bper\b(?! s(?:ec|tep)| it)|\banother\b|\bweitere\b|\belsewhere\b",
                before + text[quantity.end : quantity.end + 24],
                re.IGNORECASE,
            )
        )
    )


def _same_sentence(between: str) -> bool:
    return not word_lists.SENTENCE_END.search(between) or bool(re.fullmatch(r"\s*[–—]\s*", between))


def _pair(text: str, found: tuple[Mention, ...], position: int) -> tuple[Mention, Mention] | None:
    """'from 15.62 GB to 8.0 GB (49 %)', '49 % less (15.62 → 8.0 GB)'."""
    here = found[position].quantity
    earlier = position - 1
    while earlier > 0 and found[earlier].role is Role.CHANGE:
        earlier -= 1
    if (turned := _turned(text, found, position)) is not None:
        return turned
    for first, gap in ((earlier - 1, None), (position + 1, here.end)):
        if first < 0 or first + 1 >= len(found):
            continue
        before, after = found[first], found[first + 1]
        if (
            not word_lists.ARROW.match(text[before.quantity.end : after.quantity.start])
            or before.key != after.key
        ):
            continue
        if before.quantity.unit != after.quantity.unit or before.quantity.unit in ("%", "x"):
            continue
        between = text[after.quantity.end : here.start] if gap is None else text[gap : before.quantity.start]
        if here.unit not in ("%", "x", after.quantity.unit) or (
            gap is None and _of_another(between, after.key)
        ):
            continue
        if len(between) < NEAR and _same_sentence(between) and _near_enough(between, gap is not None):
            return before, after
    return None


def _turned(text: str, found: tuple[Mention, ...], position: int) -> tuple[Mention, Mention] | None:
    """'down to 6.8 GB from 12.0 GB, 43 % saved'."""
    if position < 2:
        return None
    after, before = found[position - 2], found[position - 1]
    if before.role is not Role.BEFORE or after.role is not Role.VALUE or after.key != before.key:
        return None
    between = text[after.quantity.end : before.quantity.start]
    near = text[before.quantity.end : found[position].quantity.start]
    same = after.quantity.unit == before.quantity.unit and len(near) < NEAR and _same_sentence(near)
    return (before, after) if same and _FROM.match(between) else None


def _apart(text: str, found: tuple[Mention, ...], position: int) -> tuple[Mention, Mention] | None:
    """'falls from 7.11 it/s at step 3090 to 2.04 it/s at step 3110, 3.5-fold'."""
    here = found[position].quantity
    for after in reversed(found[:position]):
        if after.role is Role.VALUE and after.key and len(text[after.quantity.end : here.start]) < NEAR:
            for before in found[:position]:
                between = text[before.quantity.end : after.quantity.start]
                same = before.key == after.key and before.quantity.unit == after.quantity.unit
                same = same and here.unit in ("%", "x", after.quantity.unit)
                same = same and not _of_another(text[after.quantity.end : here.start], after.key)
                if (
                    before.role is Role.BEFORE
                    and same
                    and 0 < len(between) < 80
                    and _same_sentence(between + text[after.quantity.end : here.start])
                ):
                    return before, after
            return None
    return None


def _near_enough(between: str, follows: bool) -> bool:
    if follows:
        return bool(re.search(r"^[^,;]*\b(?:from|von)\s+$|[(:,]\s*(?:from |von )?$", between))
    return True


def _of_another(between: str, key: str) -> bool:
    """'…, memory is down 43 %': the words before the claim turn to something else."""
    clause = word_lists.tail(between, word_lists.CLAUSE_END) if word_lists.CLAUSE_END.search(between) else ""
    spoken = key_of_words(clause)
    return bool(spoken) and spoken != key and not (spoken.endswith("peak") and key.endswith("peak"))


def _attached(text: str, found: tuple[Mention, ...], position: int) -> Mention | None:
    """The figure beside a change: the nearest before it in its sentence, or 'by 0.22 dB to 30.75 dB'."""
    here = found[position].quantity
    if position + 1 < len(found) and re.match(
        r"^\s*(?:to|auf)\s+[~≈]?\s*$", text[here.end : found[position + 1].quantity.start]
    ):
        following = found[position + 1]
        if following.quantity.unit == here.unit or here.unit in ("%", "x"):
            return following
    for mention in reversed(found[:position]):
        between = text[mention.quantity.end : here.start]
        if len(between) > NEAR or not _same_sentence(between) or _of_another(between, mention.key):
            return None
        if (
            mention.role is Role.VALUE
            and mention.key != "iterations"
            and (here.unit in ("%", "x") or mention.quantity.unit in (here.unit, ""))
        ):
            return mention
    return None


def _key(text: str, said: Said, mention: Mention, value: Mention | None) -> str:
    """What changed: by the words behind the number, by the figure beside it, by the words before it."""
    if mention.quantity.unit not in ("%", "x"):
        return mention.key
    start, end = mention.quantity.start, mention.quantity.end
    after = word_lists.head(text[end : end + 45], word_lists.CLAUSE_END)
    reference = word_lists.REFERENCE.search(after)
    after = after[: reference.start()] if reference else after
    spoken = key_of_words(re.sub(r"\btime\b(?! )", "", after))
    if value is not None and (
        not spoken or {spoken, value.key} <= {"speed", "time"} or spoken == "reported peak"
    ):
        return value.key
    if spoken:
        return spoken
    before = word_lists.tail(text[max(0, start - 80) : start], word_lists.SENTENCE_END)
    found = key_of_words(word_lists.tail(before, word_lists.CLAUSE_END)) or key_of_words(before)
    if found.endswith("peak"):
        found = memory_key(before, after, said.passage.context)
    return found or ("speed" if said.heading and said.heading != "restated" else "")


def _direction(text: str, quantity: Quantity, key: str) -> int:
    if quantity.signed:
        return 1 if quantity.value > 0 else -1
    after = word_lists.head(text[quantity.end : quantity.end + 30], word_lists.CLAUSE_END)
    before = word_lists.tail(text[max(0, quantity.start - 45) : quantity.start], word_lists.CLAUSE_END)
    for near in (after, before):
        signs = {sign for sign, pattern in _signs(key) if pattern.search(near)}
        if len(signs) == 1:
            return signs.pop()
    return 0


def _signs(key: str) -> list[tuple[int, re.Pattern[str]]]:
    quick = -1 if key == "time" else 1
    good = -1 if key.endswith(("lpips", "l1", "loss")) else 1
    signs = [(1, word_lists.UP), (1, word_lists.MORE), (-1, word_lists.DOWN)]
    if key in ("speed", "time"):
        return [*signs, (quick, word_lists.FASTER), (-quick, word_lists.SLOWER)]
    return (
        [*signs, (good, word_lists.BETTER), (-good, word_lists.WORSE)]
        if " " in key and "peak" not in key
        else signs
    )


def _span(log: HandLog, said: Said, position: int) -> tuple[str, str] | None:
    """'total 0.1 -> 0.6: …', 'R1 to R5 is …' speak of two phases to their end."""
    text, here = said.passage.words, said.mentions[position].quantity.start
    start = sentence_start(text, here)
    for part in (text[:80], text[start:here]):
        for first, second in pairwise(log.called.within(part)):
            if word_lists.ARROW.match(part[first[1] : second[0]]):
                return first[2], second[2]
    return _span_of_figures(log, said, position)


def _span_of_figures(log: HandLog, said: Said, position: int) -> tuple[str, str] | None:
    """'From 62 to 104 it/s …, memory is down 43 %': the two phases whose figures begin the sentence."""
    text, here = said.passage.words, said.mentions[position].quantity
    for before, after in pairwise(said.mentions[:position]):
        between = text[before.quantity.end : after.quantity.start]
        if not word_lists.ARROW.match(between) or word_lists.SENTENCE_END.search(
            text[after.quantity.end : here.start]
        ):
            continue
        owners = [
            [p.name for p in log.phases if (f := p.figures.get(m.key)) and _equal(f.quantity, m.quantity)]
            for m in (before, after)
        ]
        if before.key == after.key and len(owners[0]) == len(owners[1]) == 1 and owners[0] != owners[1]:
            return owners[0][0], owners[1][0]
    return None


def _equal(a: Quantity, b: Quantity) -> bool:
    return a.unit == b.unit and math.isclose(a.value, b.value, rel_tol=1e-9)


def _subject(log: HandLog, text: str, position: int) -> HandPhase | None:
    """The phase that a sentence outside of all entries speaks of."""
    spoken = named_before(log, text, position, compared=False)
    return log.phase(spoken[0]) if spoken and len(set(spoken)) == 1 else None
