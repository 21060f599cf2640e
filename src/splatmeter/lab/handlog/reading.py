"""From sections and bullets to the values of a `HandLog`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from splatmeter.lab.handlog.dates import days_in
from splatmeter.lab.handlog.entries import MOST_ENTRIES, Entry, find_entries
from splatmeter.lab.handlog.figures import figures_of, key_of_label, read_figure, resolution_of, start_of
from splatmeter.lab.handlog.markdown import Bullet, Section, Table, marks, parse_sections
from splatmeter.lab.handlog.mentions import Mention, key_of_words
from splatmeter.lab.handlog.named_cards import cards_in
from splatmeter.lab.handlog.names import Names, match_name
from splatmeter.lab.handlog.quantities import first_quantity
from splatmeter.lab.handlog.values import (
    METRICS,
    HandConfiguration,
    HandFigure,
    HandLog,
    HandPhase,
    Said,
    Start,
    TableRow,
)
from splatmeter.lab.handlog.word_lists import PARENT

_STATUS = (
    ("on hold", r"\bon hold\b"),
    ("planned", r"\bplanned\b|\bpending\b|\bto ?do\b"),
    ("questionable", r"\bquestionable\b|\bsuspect\b|\bdoubtful\b"),
    ("quality lost", r"\bquality lost\b"),
    ("no speed-up", r"\bno speed-?\s?up\b"),
    ("undecided", r"\bundecided\b"),
    ("slower", r"\bslower\b"),
    ("failed", r"\bfail(ed|ure)\b"),
    ("verified", r"\bverified\b"),
    ("faster", r"\bfaster\b"),
    ("success", r"\bsuccess\b"),
    ("recorded", r"\brecorded\b"),
)
_WITHOUT_EVAL = re.compile(r"\b(?:no|without|w/o|not)\s+(?:the\s+)?--eval\b|\bno held-out\b", re.IGNORECASE)
_WITH_EVAL = re.compile(r"--eval\b", re.IGNORECASE)
_REPEATED = re.compile(
    r"±(?! ?[\d.]+ ?% ?toleran)|\b(?:\d+|two|three|four|five|several|repeated) (?:runs|repeats|repetitions|"
    r"blocks|seeds)\b|"
    r"\bn ?= ?\d+|\bconfidence interval|% interval|\bmedians? (?:of|over)\b|\bmeans? (?:of|over)\b|"
    r"\baverages? (?:of|over)\b|"
    r"\b(?:mittel|median|mittelwert)\w* (?:aus|von|über)\b|\b\w+ (?:läufen?|wiederholungen)\b",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"(\d{1,9})\s*train\w*\W{1,5}(?:and\s+)?(\d{1,9})\s*(?:test|held[- ]out)", re.IGNORECASE)
_STEPS = re.compile(r"(\d{1,9})\s*(?:→|->|to)\s*(\d{1,9})")


def parse_log(text: str) -> HandLog:
    """Reads what it can and leaves the rest; an empty log is a log without phases."""
    sections = parse_sections(text)
    labelled = [section for section in sections if _is_phase(section)][:MOST_ENTRIES]
    entries = find_entries(sections, labelled)
    names = _unique([entry.name for entry in entries.found])
    titles = [entry.title for entry in entries.found]
    rows = [row for table in _comparison_tables(sections) for row in _rows(table, names, titles)]
    called = Names([(name, entry.aliases) for name, entry in zip(names, entries.found, strict=True)])
    phases = tuple(
        _told(entry, name, names, [row for row in rows if row.phase == name], called)
        for entry, name in zip(entries.found, names, strict=True)
    )
    quality = next(
        (s for s in sections if re.search(r"quality.*baseline|baseline.*quality", s.title, re.I)), None
    )
    said = [*entries.loose, *(item for phase in phases for item in phase.said)]
    return HandLog(
        next((section.title for section in sections if section.level == 1), ""),
        tuple(sections),
        _configuration(sections, names, entries.loose),
        _quality_figures(quality),
        _tolerance(quality),
        phases,
        tuple(rows),
        tuple(_prose(sections)),
        tuple(entries.loose),
        tuple(card for item in said for card in cards_in(item.passage.words, item.passage.line_at(0))),
        _iterations(entries.loose),
        called,
    )


def _told(
    entry: Entry, name: str, names: Sequence[str], rows: Sequence[TableRow], called: Names
) -> HandPhase:
    """A phase by its labels, as far as it has them, and by everything that its entry says."""
    section = entry.section or Section(3, entry.title, entry.title, entry.line)
    phase = _phase(section, name, names, rows)
    figures = dict(phase.figures)
    for item in entry.said:
        if item.heading:
            continue
        for mention in item.values():
            if mention.key and mention.key != "iterations":
                figures.setdefault(mention.key, _figure(item, mention))
    words = [item.passage.words for item in entry.said]
    days = [day.day for text in words for day in days_in(text) if day.day]
    return replace(
        phase,
        figures=figures,
        repeated=phase.repeated or any(_REPEATED.search(text) for text in words),
        marks=phase.marks,
        aliases=tuple(entry.aliases),
        said=tuple(entry.said),
        day=days[0] if days else None,
        parents=tuple(dict.fromkeys(parent for text in words for parent in parents_in(text, called, name))),
    )


def parents_in(text: str, called: Names, name: str) -> list[str]:
    """The phases that a text says this one builds on."""
    found: list[str] = []
    for word in PARENT.finditer(text):
        near = called.within(text[word.end() : word.end() + 30])
        if near and near[0][0] <= 6 and near[0][2] != name:
            found.append(near[0][2])
    return found


def _figure(item: Said, mention: Mention) -> HandFigure:
    rest = item.passage.words[mention.quantity.end : mention.quantity.end + 40]
    estimated = mention.quantity.approximate or bool(
        re.match(r"\s*\(?(?:estimate|geschätzt)", rest, re.IGNORECASE)
    )
    return HandFigure(mention.quantity, mention.line, item.passage.words, estimated=estimated)


def _iterations(loose: Sequence[Said]) -> int | None:
    """If the log gives one number of iterations for every run."""
    found = {
        int(m.quantity.value)
        for item in loose
        for m in item.mentions
        if m.key == "iterations" and m.quantity.value >= 50
    }
    return found.pop() if len(found) == 1 else None


def split_counts(text: str) -> tuple[int, int] | None:
    """(141, 20) from '141 train, 20 test images'."""
    found = _SPLIT.search(text)
    return (int(found[1]), int(found[2])) if found else None


def _is_phase(section: Section) -> bool:
    keys = {key_of_label(bullet.label) or key_of_words(bullet.label) for bullet in section.bullets}
    status = any(bullet.label.lower() in ("status", "verdict") for bullet in section.bullets)
    return section.level >= 2 and ("speed" in keys or status)


def _phase(section: Section, name: str, names: Sequence[str], rows: Sequence[TableRow]) -> HandPhase:
    settings = [b for b in section.bullets if b.label.lower().startswith("config")]
    configuration = [text for b in settings for text in _texts(b)]
    said = " · ".join([section.title, *configuration, *(" ".join(row.cells.values()) for row in rows)])
    everything = " · ".join(text for bullet in section.bullets for text in _texts(bullet))
    steps = re.search(
        r"(?:ran to|until|up to)\s+(?:iter\w*|step)\s*(\d{1,9})", " · ".join(configuration), re.I
    )
    return HandPhase(
        name=name,
        title=section.title,
        line=section.line,
        marks=marks(section.raw_title),
        status=_status(section),
        figures=figures_of(section.bullets, names),
        evaluated_step=_evaluated_step(section.bullets),
        held_out=_held_out(said),
        resolution=resolution_of(said),
        start=_start(settings, names),
        last_step=int(steps[1]) if steps else None,
        repeated=bool(_REPEATED.search(everything)),
        date=next((b.text for b in section.bullets if b.label.lower() == "date"), ""),
        configuration=tuple(configuration),
        code_changes=_listed(section.bullets, "changes"),
        notes=_listed(section.bullets, "note"),
        section=section,
    )


def _status(section: Section) -> str:
    spoken = [b.text for b in section.bullets if b.label.lower() in ("status", "verdict")]
    for text in (*spoken, section.title):
        for status, pattern in _STATUS:
            if re.search(pattern, text, re.IGNORECASE):
                return status
    return ""


def _held_out(said: str) -> bool | None:
    if _WITHOUT_EVAL.search(said):
        return False
    return True if _WITH_EVAL.search(said) or split_counts(said) else None


def _start(bullets: Sequence[Bullet], names: Sequence[str]) -> Start | None:
    for bullet in bullets:
        for line, text in _lines(bullet):
            if (start := start_of(text, line, names)) is not None:
                return start
    return None


def _evaluated_step(bullets: Sequence[Bullet]) -> int | None:
    for bullet in bullets:
        if "metrics" in bullet.label.lower():
            found = re.search(r"(?:iter\w*|step)\s*(\d{1,9})", bullet.label, re.IGNORECASE)
            if found:
                return int(found[1])
    return None


def _configuration(
    sections: Sequence[Section], names: Sequence[str], loose: Sequence[Said]
) -> HandConfiguration:
    section = next((s for s in sections if "configuration" in s.title.lower()), None)
    spoken = " · ".join(item.passage.words for item in loose)[:100_000]
    if section is None:
        return HandConfiguration(repeated=bool(_REPEATED.search(spoken)))
    said = {bullet.label: bullet.text for bullet in section.bullets if bullet.label}
    everything = " · ".join(text for bullet in section.bullets for text in _texts(bullet))
    scene = next((text for label, text in said.items() if label.lower() in ("dataset", "scene")), "")
    training = " ".join(text for label, text in said.items() if label.lower().startswith("train"))
    steps = _STEPS.search(training)
    evaluated = re.search(
        r"(?:iter\w*|step)\s*(\d+(?:, \d+)*)",
        " ".join(t for k, t in said.items() if "eval" in k.lower()),
        re.I,
    )
    counts = split_counts(everything) or (None, None)
    return HandConfiguration(
        scene=scene,
        resolution=resolution_of(everything),
        first_step=int(steps[1]) if steps else None,
        last_step=int(steps[2]) if steps else None,
        evaluated_step=int(evaluated[1].split(", ")[0]) if evaluated else None,
        last_evaluated_step=int(evaluated[1].split(", ")[-1]) if evaluated else None,
        start=_start(section.bullets, names),
        train_images=counts[0],
        test_images=counts[1],
        repeated=bool(_REPEATED.search(spoken)),
        bullets=said,
    )


def _quality_figures(section: Section | None) -> dict[str, HandFigure]:
    figures: dict[str, HandFigure] = {}
    for bullet in section.bullets if section else ():
        metric = next((name for name in METRICS if re.search(rf"\b{name}\b", bullet.label, re.I)), None)
        figure = read_figure(bullet, ()) if metric else None
        if metric and figure:
            figures.setdefault(metric, figure)
    return figures


def _tolerance(section: Section | None) -> float | None:
    texts = [text for _, text in section.paragraphs] + [b.text for b in section.bullets] if section else []
    for text in texts:
        if "toleran" in text.lower() and (percent := first_quantity(text, "%")):
            return percent.value / 100.0
    return None


def _comparison_tables(sections: Sequence[Section]) -> list[Table]:
    tables = [table for section in sections for table in section.tables]
    return [table for table in tables if any("speed" in cell.lower() for cell in table.header)]


def _rows(table: Table, names: Sequence[str], titles: Sequence[str]) -> list[TableRow]:
    return [
        TableRow(line, row[0], dict(zip(table.header, row, strict=True)), match_name(row[0], names, titles))
        for row, line in zip(table.rows, table.lines, strict=True)
    ]


def _listed(bullets: Sequence[Bullet], word: str) -> tuple[str, ...]:
    """Raw texts of the bullets whose label has the word, with their children."""
    found = [bullet for bullet in bullets if word in bullet.label.lower()]
    texts: list[str] = []
    for bullet in found:
        own = re.sub(r"^\W*[^:]*:\W*?(?=\s|$)", "", bullet.raw, count=1).strip()
        texts += [text for text in (own, *(child.raw for child in bullet.children)) if text]
    return tuple(texts)


def _texts(bullet: Bullet) -> Iterator[str]:
    for _, text in _lines(bullet):
        yield text


def _lines(bullet: Bullet) -> Iterator[tuple[int, str]]:
    yield bullet.line, f"{bullet.label}: {bullet.text}" if bullet.label else bullet.text
    for child in bullet.children:
        yield from _lines(child)


def _prose(sections: Sequence[Section]) -> Iterator[tuple[int, str]]:
    for section in sections:
        if section.title:
            yield section.line, section.title
        yield from section.paragraphs
        for bullet in section.bullets:
            yield from _lines(bullet)


def _unique(names: Sequence[str]) -> list[str]:
    """Two sections of one name are two phases."""
    seen: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
