"""Times that contradict speeds: 1000 iterations at 10 it/s do not take 60 s."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.arithmetic import lines_text
from splatmeter.lab.handlog.mentions import Mention, Role, stands_alone
from splatmeter.lab.handlog.quantities import Quantity
from splatmeter.lab.handlog.subjects import named_before
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.units import duration_text

LEAST, MOST = 0.95, 1.3
"""Shares of iterations / speed: less is impossible, more is evaluation and saving, within reason."""
STRICT, EXACT, FEWEST_EXACT = 1.08, 0.02, 2
"""In a log of which at least so many other phases have exact times, more than this is no evaluation."""
_MORE_THAN_TRAINING = re.compile(
    r"\bincl|\binkl|\bwith eval|\bmit auswertung|\bend[- ]to[- ]end|\bwall|\btotal|\bgesamt|\bcompil|\bload",
    re.IGNORECASE,
)
_NOT_THE_RUN = re.compile(
    r"\beval|\bauswertung|\bcompil|\bbuild|\bload|\bsav|\bper (?:view|image)|\bcolmap|\bpreprocess|"
    r"\brender|\blpips|\bstartup|\bimport",
    re.IGNORECASE,
)


def times_against_speeds(log: HandLog) -> list[Finding]:
    """More is allowed where nobody knows what else was timed; where all other times of a log are those of
    their speeds, one that is not stands out.
    """
    found = list(_ratios(log))
    findings: list[Finding] = []
    for item in found:
        others = [other for other in found if other.phase.name != item.phase.name]
        strict = len(others) >= FEWEST_EXACT and all(other.exact for other in others)
        more = _MORE_THAN_TRAINING.search(item.said.passage.words)
        most = MOST * 2 if more else STRICT if strict else MOST
        if any(LEAST <= ratio <= most for ratio in item.ratios):
            continue
        time, speed = item.time.quantity, item.speed
        sentence = (
            f"{item.phase.name}: {item.count:,} iterations at {speed.text} take "
            f"{duration_text(item.count / speed.value)}, not {time.text}: that would be "
            f"{item.count / time.value:.4g} it/s."
        )
        severity = Severity.WRONG if item.ratios[0] < LEAST else Severity.DOUBT
        findings.append(Finding("time contradicts speed", sentence, severity, lines_text([item.time.line])))
    return findings


@dataclass(frozen=True, slots=True)
class _Timed:
    phase: HandPhase
    said: Said
    time: Mention
    count: int
    speed: Quantity
    ratios: tuple[float, ...]
    """The time that is written over the time that the speed gives, in each sense that it may have."""

    @property
    def exact(self) -> bool:
        return any(abs(ratio - 1) <= EXACT for ratio in self.ratios)


def _ratios(log: HandLog) -> Iterator[_Timed]:
    for phase, said, time, count in _timed(log):
        speed = _speed(phase, said, time)
        if speed is not None and speed.value > 0 and count > 0:
            ratios = tuple(t / (count / speed.value) for t in _seconds(time.quantity))
            yield _Timed(phase, said, time, count, speed, ratios)


def _timed(log: HandLog) -> Iterator[tuple[HandPhase, Said, Mention, int]]:
    """Times of runs whose number of iterations is known: from the same sentence, or for all runs."""
    homes = [(phase, said) for phase in log.phases for said in phase.said] + [
        (None, said) for said in log.loose
    ]
    for home, said in homes:
        text = said.passage.words
        for mention in said.mentions:
            if (
                mention.key != "time"
                or mention.role not in (Role.VALUE, Role.SETTING)
                or mention.quantity.value <= 0
            ):
                continue
            before, after = (
                text[max(0, mention.quantity.start - 70) : mention.quantity.start],
                text[mention.quantity.end : mention.quantity.end + 40],
            )
            sentence = word_lists.tail(before, word_lists.SENTENCE_END) + word_lists.head(
                after, word_lists.SENTENCE_END
            )
            if _NOT_THE_RUN.search(sentence) or word_lists.NOT_MEASURED.search(sentence):
                continue
            count = _count(said, mention)
            spoken = re.search(
                r"\brun\b|\btraining\b|\blauf(?:zeit)?\b|\btakes\b|\btook\b|\bwall\b|\bdauer|\btrain\b|^\W*time\b",
                sentence,
                re.IGNORECASE,
            )
            if (
                count is None
                and log.iterations
                and (spoken or stands_alone(text, mention.quantity))
                and home is not None
                and mention.quantity.half < 60
            ):
                count = log.iterations
            phase = home or _subject(log, text, mention.quantity.start)
            if phase is not None and count:
                yield phase, said, mention, count


def _subject(log: HandLog, text: str, position: int) -> HandPhase | None:
    named = named_before(log, text, position)
    return log.phase(named[-1]) if named else None


def _count(said: Said, time: Mention) -> int | None:
    """Iterations in the same sentence as the time."""
    text = said.passage.words
    for mention in said.mentions:
        if mention.key == "iterations" and mention.role is Role.SETTING and mention.quantity.value >= 50:
            a, b = sorted([mention.quantity, time.quantity], key=lambda q: q.start)
            between = text[a.end : b.start]
            if (
                len(between) < 50
                and not word_lists.SENTENCE_END.search(between)
                and not re.search(r"\d", between)
            ):
                return int(mention.quantity.value)
    return None


def _speed(phase: HandPhase, said: Said, time: Mention) -> Quantity | None:
    """The speed of the same sentence, else of the phase."""
    text = said.passage.words
    near = [
        m.quantity
        for m in said.values("speed")
        if not word_lists.SENTENCE_END.search(
            text[min(m.quantity.end, time.quantity.end) : max(m.quantity.start, time.quantity.start)]
        )
    ]
    figure = phase.figure("speed")
    return near[0] if near else figure.quantity if figure else None


def _seconds(time: Quantity) -> list[float]:
    """9:01 may be minutes and seconds or hours and minutes."""
    both = re.fullmatch(r"\d{1,3}:\d\d", time.text)
    values = [time.value, time.low, time.high]
    return [*values, *([60 * time.value] if both else [])]
