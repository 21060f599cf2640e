"""Markdown as people keep logs in it: headings, nested bullets, tables, paragraphs, with line numbers.

Only what logs need; anything else is a paragraph, and nothing is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from splatmeter.lab.handlog.numerals import english, has_decimal_commas

LONGEST_LINE = 6000
"""Characters of a line that are read; nobody's bullet is longer."""
DEEPEST = 12
"""Levels of a list that are told apart: readers recurse."""
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"^(\s*)(?:[-*+•]|(\d{1,4})[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_QUOTE = re.compile(r"^\s{0,3}>\s?")
_ASSIGNED = re.compile(r"^[^=:.]{1,40}=\s?\S")
_RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
_SEPARATOR = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MARKS = re.compile(
    r"[\u2190-\u21ff]?[\u23e9-\u23fa\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]+"
)
_EMPHASIS = re.compile(r"(\*{1,3}|`+|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w))")


@dataclass(frozen=True, slots=True)
class Text:
    """Plain words that may stand on several lines of the file."""

    words: str
    breaks: tuple[tuple[int, int], ...]
    """Where each line begins in `words`, and its number."""

    def line_at(self, position: int) -> int:
        return [line for start, line in self.breaks if start <= position][-1]


@dataclass(frozen=True, slots=True)
class Bullet:
    """`label` is what stands before the first colon, without emphasis; empty if there is none."""

    label: str
    text: str
    raw: str
    line: int
    children: tuple[Bullet, ...] = ()
    whole: Text = Text("", ((0, 0),))
    """Label and text, with the lines they stand on."""
    ordinal: int | None = None
    """Its number, in a numbered list."""


@dataclass(frozen=True, slots=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    """Line number of each row."""


@dataclass(frozen=True, slots=True)
class Section:
    level: int
    title: str
    raw_title: str
    line: int
    bullets: tuple[Bullet, ...] = ()
    tables: tuple[Table, ...] = ()
    paragraphs: tuple[tuple[int, str], ...] = ()
    blocks: tuple[Text, ...] = ()
    """The same lines, joined to paragraphs."""


@dataclass(slots=True)
class _Item:
    indent: int
    ordinal: int | None
    pieces: list[tuple[int, str]]
    """Line and text of the bullet and of what it was wrapped to."""


@dataclass(slots=True)
class _Draft:
    level: int
    raw_title: str
    line: int
    decimal_commas: bool = False
    bullets: list[_Item] = field(default_factory=list)
    rows: list[tuple[int, str]] = field(default_factory=list)
    paragraphs: list[tuple[int, str]] = field(default_factory=list)


def plain(text: str) -> str:
    """Without emphasis, code marks and emoji; spaces collapsed."""
    return " ".join(_MARKS.sub(" ", _EMPHASIS.sub("", text.replace("\\|", "|"))).split())


def marks(text: str) -> str:
    """The emoji in a text, the way people write a status."""
    return "".join(found.group().strip("\ufe0f\u200d") for found in _MARKS.finditer(text))


def parse_sections(text: str) -> list[Section]:
    """All sections in order, nested ones after their parents; text before the first heading has level 0."""
    decimal_commas = has_decimal_commas(text)
    drafts = [_Draft(0, "", 0, decimal_commas)]
    fenced = False
    for number, line in enumerate(_without_comments(text).splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            _take(line, number, drafts)
    return [_finish(draft) for draft in drafts]


def _without_comments(text: str) -> str:
    """Comments become empty lines, so that line numbers stay; one that never ends is no comment."""
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[position:start], "\n" * text.count("\n", start, end)]
        position = end + 3
    return "".join([*parts, text[position:]])


def _take(line: str, number: int, drafts: list[_Draft]) -> None:
    current = drafts[-1]
    line = _QUOTE.sub("", line[:LONGEST_LINE])
    if heading := _HEADING.match(line):
        drafts.append(_Draft(len(heading[1]), heading[2], number, current.decimal_commas))
    elif not line.strip() or _RULE.match(line):
        current.paragraphs.append((number, ""))
    elif line.lstrip().startswith("|") or (" | " in line and not _BULLET.match(line)):
        current.rows.append((number, line))
    elif bullet := _BULLET.match(line):
        ordinal = int(bullet[2]) if bullet[2] else None
        item = _Item(len(bullet[1].expandtabs(4)), ordinal, [(number, bullet[3].strip())])
        current.bullets.append(item)
    elif current.bullets and line.startswith(" ") and current.bullets[-1].pieces[-1][0] == number - 1:
        current.bullets[-1].pieces.append((number, line.strip()))  # a wrapped bullet goes on
    else:
        current.paragraphs.append((number, line.strip()))


def _finish(draft: _Draft) -> Section:
    commas = draft.decimal_commas
    blocks: list[list[tuple[int, str]]] = [[]]
    for line, text in draft.paragraphs:
        if not text or (blocks[-1] and _begins_anew(blocks[-1][-1], line, text)):
            blocks.append([])
        if text:
            blocks[-1].append((line, text))
    return Section(
        draft.level,
        english(plain(draft.raw_title), commas),
        draft.raw_title,
        draft.line,
        _nest(draft.bullets, commas),
        _tables(draft.rows, commas),
        tuple((line, english(plain(text), commas)) for line, text in draft.paragraphs if text),
        tuple(_joined(block, commas) for block in blocks if block),
    )


def _begins_anew(last: tuple[int, str], line: int, text: str) -> bool:
    """'speed = 61' is a statement of its own, and so is the line behind it."""
    return last[0] != line - 1 or bool(_ASSIGNED.match(text) or _ASSIGNED.match(last[1]))


def _joined(pieces: list[tuple[int, str]], commas: bool) -> Text:
    words, breaks = "", []
    for line, raw in pieces:
        words = f"{words} " if words else ""
        breaks.append((len(words), line))
        words += english(plain(raw), commas)
    return Text(words, tuple(breaks))


def _nest(flat: list[_Item], commas: bool) -> tuple[Bullet, ...]:
    """Bullets with their children; below the deepest level all are siblings."""
    children: list[list[Bullet]] = [[] for _ in flat]
    roots: list[Bullet] = []
    parents: list[int] = []
    above: list[int] = []
    for position, item in enumerate(flat):
        while above and flat[above[-1]].indent >= item.indent:
            above.pop()
        parents.append(above[-1] if above else -1)
        if len(above) < DEEPEST:
            above.append(position)
    for position in range(len(flat) - 1, -1, -1):
        bullet = _bullet(flat[position], commas, tuple(reversed(children[position])))
        (children[parents[position]] if parents[position] >= 0 else roots).append(bullet)
    return tuple(reversed(roots))


def _bullet(item: _Item, commas: bool, children: tuple[Bullet, ...]) -> Bullet:
    whole = _joined(item.pieces, commas)
    label, text = _labelled(whole.words)
    raw = " ".join(text for _, text in item.pieces)
    return Bullet(label, text, raw, item.pieces[0][0], children, whole, item.ordinal)


def _labelled(text: str) -> tuple[str, str]:
    head, colon, rest = text.partition(":")
    if colon and len(head) <= 60 and (not rest or rest.startswith(" ")):
        return head.strip(), rest.strip()
    return "", text


def _tables(rows: list[tuple[int, str]], commas: bool) -> tuple[Table, ...]:
    groups: list[list[tuple[int, str]]] = []
    for number, line in rows:
        if groups and groups[-1][-1][0] == number - 1:
            groups[-1].append((number, line))
        else:
            groups.append([(number, line)])
    tables: list[Table] = []
    for group in groups:
        if len(group) < 2 or not _SEPARATOR.match(group[1][1]):
            continue
        header = _cells(group[0][1], commas)
        body = [(number, _cells(line, commas)) for number, line in group[2:]]
        padded = tuple((*cells, *("",) * (len(header) - len(cells)))[: len(header)] for _, cells in body)
        tables.append(Table(header, padded, tuple(number for number, _ in body)))
    return tuple(tables)


def _cells(line: str, commas: bool) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return tuple(english(plain(cell), commas) for cell in re.split(r"(?<!\\)\|", inner))
