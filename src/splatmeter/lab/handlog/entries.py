"""Where one experiment begins and ends, in whatever style the log is kept.

A heading with labelled bullets or a small table, a row of a big table, an item of a list, a paragraph: the
first style that fits gives the entries, and whatever belongs to none is said outside of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from splatmeter.lab.handlog.dates import days_in
from splatmeter.lab.handlog.markdown import Bullet, Section, Table, Text
from splatmeter.lab.handlog.mentions import Passage, Role, mentions
from splatmeter.lab.handlog.names import match_name, phase_name
from splatmeter.lab.handlog.tables import (
    is_before_and_after,
    is_change,
    is_comparison,
    is_list_of_figures,
    is_turned,
    name_column,
    sides,
)
from splatmeter.lab.handlog.values import Said
from splatmeter.lab.handlog.word_lists import PER_SECOND, PER_STEP

MOST_ENTRIES = 400
"""More are data, not a log; comparing each with each would take too long."""
_SUMMARY = re.compile(
    r"^\W*(?:altogether|overall|in total|totals?\b|summary|in summary|conclusion|fazit|insgesamt|"
    r"zusammenfass|todo|next|goal|setup|hardware|unterm strich|all in all|verdict|result|"
    r"ergebnis|bilanz|tl;?dr)",
    re.IGNORECASE,
)
_SETTINGS = re.compile(
    r"config|setup|environment|quality.*baseline|measurement|hardware|remark|comment|notes?$|legend|aufbau|"
    r"umgebung|results?$|summary|fazit|\bworth it|\bverdict|wrap|bottom line|ergebnis|bilanz|"
    r"takeaway|lessons|where (?:we|things) (?:are|stand)|closing|tl;?dr",
    re.IGNORECASE,
)
_LEADING = re.compile(r"^(?:\W*(?:\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{2,4})\W*)?")
_SHORT_NAME = re.compile(r"^([A-Za-z]{1,4}[-.]?\d{1,3}[a-z]?|#\d{1,6})\b(?=\s)")
_NUMBERED = re.compile(r"^([A-Za-zÄÖÜäöü]{2,14}\s?\d{1,3}[a-z]?)\b(?=\s|$)")
_SECOND_WORD = re.compile(r"^[A-Za-zÄÖÜäöü]{4,14}\s([A-Za-z]{1,3}\d{1,3}[a-z]?)\b")
_WEEKDAY = re.compile(r"^(mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)\w{0,8}\b", re.IGNORECASE)
_WEEKDAYS = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag",
)  # fmt: skip
_VERSION = re.compile(r"^(v?\d+(?:\.\d+)+)\s+(.+)$")


@dataclass(slots=True)
class Entry:
    name: str
    title: str
    line: int
    said: list[Said]
    aliases: list[str] = field(default_factory=list)
    section: Section | None = None


@dataclass(slots=True)
class Entries:
    found: list[Entry]
    loose: list[Said]


def say(text: Text, context: str = "", heading: str = "") -> Said:
    passage = Passage(text, context)
    return Said(passage, tuple(mentions(passage)), heading)


def one_line(words: str, line: int) -> Text:
    return Text(words, ((0, line),))


def bullets_said(bullets: Sequence[Bullet], context: str = "") -> Iterator[Said]:
    """Depth first; what stands under 'Audit' is what a machine said about the log, not the log."""
    for bullet in bullets:
        if bullet.label.lower() == "audit":
            continue
        yield say(bullet.whole, context)
        yield from bullets_said(bullet.children, f"{context} {bullet.label or bullet.text[:60]}".strip())


def of_section(section: Section) -> Entry:
    """A heading, and all that stands below it except tables that compare."""
    said = [say(one_line(section.title, section.line)), *bullets_said(section.bullets)]
    said += [say(block) for block in section.blocks]
    for table in section.tables:
        if is_list_of_figures(table):
            said += list(_figures_said(table))
        elif is_before_and_after(table):
            said += list(_changed_said(table))
    return Entry(
        phase_name(section.title), section.title, section.line, said, _aliases(section.title), section
    )


def _changed_said(table: Table) -> Iterator[Said]:
    """'it/s: 25.0 → 34.2 (+36.8 %)'."""
    was, now = sides(table) or (1, 2)
    change = next((i for i, head in enumerate(table.header) if i not in (was, now) and is_change(head)), None)
    for row, line in zip(table.rows, table.lines, strict=True):
        claimed = f" ({row[change]})" if change is not None and row[change] else ""
        yield say(
            one_line(
                f"{row[0]}: {_measured(row[0], row[was])} → {_measured(row[0], row[now])}{claimed}", line
            )
        )


def _measured(name: str, cell: str) -> str:
    """A speed gets the unit of its row, so that both sides have one."""
    unit = re.search(f"{PER_SECOND}|{PER_STEP}", name, re.IGNORECASE)
    return f"{cell} {unit.group()}" if unit and re.fullmatch(r"[\d.,]+", cell.strip()) else cell


def _figures_said(table: Table) -> Iterator[Said]:
    for row, line in zip(table.rows, table.lines, strict=True):
        yield say(one_line(f"{row[0]}: {row[1]}", line))


def turned_said(table: Table) -> Iterator[Said]:
    """'it/s: 25.0 → 34.2 (+36.8 %)', and each figure with the heading of its column."""
    change = [i for i, head in enumerate(table.header) if is_change(head)]
    columns = [i for i in range(1, len(table.header)) if i not in change]
    for row, line in zip(table.rows, table.lines, strict=True):
        if len(columns) == 2 and change:
            before, after = row[columns[0]], row[columns[1]]
            yield say(one_line(f"{row[0]}: {before} → {after} ({row[change[0]]})", line))
        for i in columns:
            yield say(one_line(f"{table.header[i]}, {row[0]}: {row[i]}", line), heading="restated")


def columns_as_entries(table: Table) -> list[Entry]:
    change = {i for i, head in enumerate(table.header) if is_change(head)}
    entries: list[Entry] = []
    for i in range(1, len(table.header)):
        if i not in change and table.header[i]:
            rows = zip(table.rows, table.lines, strict=True)
            said = [say(one_line(f"{row[0]}: {row[i]}", line)) for row, line in rows]
            entries.append(
                Entry(table.header[i], table.header[i], table.lines[0] if table.lines else 0, said)
            )
    return entries


def rows_of(table: Table) -> list[Entry]:
    """One entry a row, each cell said with its heading."""
    at = name_column(table)
    entries: list[Entry] = []
    for row, line in zip(table.rows[:MOST_ENTRIES], table.lines, strict=False):
        said: list[Said] = []
        for head, cell in zip(table.header, row, strict=True):
            if cell and (head != table.header[at] or cell != row[at]):
                said.append(say(one_line(f"{head}: {cell}", line), heading=head if is_change(head) else ""))
        number = row[0] if at and row[0].isdigit() else ""
        aliases = [f"{word} {number}" for word in ("run", "phase", "step", "row", "#") if number]
        entries.append(Entry(row[at], row[at], line, said, [*aliases, *_aliases(row[at])]))
    return entries


def of_list(section: Section) -> list[Entry]:
    """Items with figures of their own; none unless there are two."""
    entries = [_of_item(bullet) for bullet in section.bullets[:MOST_ENTRIES]]
    return [e for e in entries if measures(e.said)] if sum(measures(e.said) for e in entries) > 1 else []


def _of_item(bullet: Bullet) -> Entry:
    said = list(bullets_said([bullet]))
    words = bullet.whole.words
    rest = _undated(words)
    head = (
        re.split(r":\s|\.\s|\s\(|\s[–—]\s|,\s", rest, maxsplit=1)[0][:60].strip(" .") or f"item {bullet.line}"
    )
    aliases = _aliases(head)
    if bullet.ordinal is not None:
        aliases += [
            f"{word} {bullet.ordinal}"
            for word in ("step", "phase", "schritt", "punkt", "item", "nr.", "#", "no.", "eintrag", "run")
        ]
    return Entry(head, words[:80], bullet.line, said, aliases)


def _undated(words: str) -> str:
    """What stands behind the day that an entry begins with."""
    days = [day for day in days_in(words) if day.start < 3]
    return words[days[0].start + len(days[0].text) :].lstrip(" –—-:,()") if days else words


def _aliases(title: str) -> list[str]:
    """'0.6 quantised SH' is also '0.6'; 'Phase A: tile culling' also 'tile culling'."""
    found = _VERSION.match(title)
    short = _SHORT_NAME.match(title)
    weekday = _WEEKDAY.match(title)
    numbered = _NUMBERED.match(title)
    second = _SECOND_WORD.match(title)
    parts = re.split(r"\s+[-–—]\s+|:\s|\s\(", title)
    extra = [part.strip(" )") for part in parts[1:2] if 3 < len(part) < 40 and not days_in(part)]
    days = [day for day in _WEEKDAYS if weekday and day.startswith(weekday[1].lower())]
    return [
        *([found[1], found[2]] if found else []),
        *([short[1]] if short else []),
        *([numbered[1]] if numbered else []),
        *([second[1]] if second else []),
        *days,
        *extra,
    ]


def of_paragraphs(sections: Sequence[Section]) -> list[Entry]:
    """A block of lines is one entry, also where each of its lines is a statement of its own."""
    entries: list[Entry] = []
    for section in sections:
        for blocks in _together(section.blocks):
            said, first = [say(block) for block in blocks], blocks[0]
            if measures(said) and not _SUMMARY.match(first.words):
                opening = re.split(r"[.!?:,]\s", _undated(first.words), maxsplit=1)[0]
                name = " ".join(re.split(r"\s\(", opening, maxsplit=1)[0].split()[:7])[:60]
                entries.append(Entry(name, opening, first.breaks[0][1], said, _aliases(opening)))
    return entries[:MOST_ENTRIES] if len(entries) > 1 else []


def _together(blocks: Sequence[Text]) -> list[list[Text]]:
    """Blocks that no empty line keeps apart."""
    groups: list[list[Text]] = []
    for block in blocks:
        if groups and groups[-1][-1].breaks[-1][1] + 1 == block.breaks[0][1]:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def measures(said: Sequence[Said]) -> bool:
    """A speed, or two results of different kinds."""
    keys = {m.key for item in said for m in item.mentions if m.role is Role.VALUE and m.key}
    return "speed" in keys or len(keys) > 1


def find_entries(sections: Sequence[Section], labelled: Sequence[Section]) -> Entries:
    """`labelled` are the sections that are experiments by their labels."""
    own = [s for s in sections if s in labelled or (s.level > 1 and any(map(_of_one, s.tables)))]
    tables = [table for section in sections for table in section.tables if is_comparison(table)]
    entries = [of_section(section) for section in own]
    used = {id(section) for section in own}
    if len(own) < 2 and not labelled:
        entries, used = _without_labels(sections, tables)
    loose = [said for section in sections if id(section) not in used for said in _outside(section, entries)]
    return Entries(entries[:MOST_ENTRIES], loose)


def _of_one(table: Table) -> bool:
    return is_list_of_figures(table) or is_before_and_after(table)


def _without_labels(sections: Sequence[Section], tables: Sequence[Table]) -> tuple[list[Entry], set[int]]:
    rows = [entry for table in tables for entry in rows_of(table)]
    listed = [
        entry for section in sections if not _SETTINGS.search(section.title) for entry in of_list(section)
    ]
    if sum(measures(entry.said) for entry in rows) > 1 and _figures(listed) <= _figures(rows):
        return rows, set()
    if listed:
        return listed, set()
    headed = [
        s
        for s in sections
        if s.level > 1 and not _SETTINGS.search(s.title) and not s.tables and measures(of_section(s).said)
    ]
    if len(headed) > 1:
        return [of_section(section) for section in headed], {id(section) for section in headed}
    turned = [table for section in sections for table in section.tables if is_turned(table)]
    if turned and not is_before_and_after(turned[0]):
        return columns_as_entries(turned[0]), set()
    return of_paragraphs(sections), set()


def _figures(entries: Sequence[Entry]) -> int:
    """How many results they give: a list that tells more than the table beside it is the log itself."""
    return sum(len([m for m in said.values() if m.key]) for entry in entries for said in entry.said)


def _outside(section: Section, entries: Sequence[Entry]) -> Iterator[Said]:
    """What of a section no entry has taken."""
    taken = {said.passage.line_at(0) for entry in entries for said in entry.said}
    names, titles = [e.name for e in entries], [e.title for e in entries]
    if section.title:
        yield say(one_line(section.title, section.line))
    for item in (*bullets_said(section.bullets), *(say(block) for block in section.blocks)):
        if item.passage.line_at(0) not in taken:
            yield item
    for table in section.tables:
        if is_turned(table):
            yield from turned_said(table)
        elif is_comparison(table):
            for row in rows_of(table):
                if row.line not in taken and (name := match_name(row.name, names, titles)):
                    home = next(entry for entry in entries if entry.name == name)
                    home.said += [Said(s.passage, s.mentions, s.heading or "row") for s in row.said]
