"""Markdown as people keep logs in it: headings, nested bullets, tables, paragraphs, with line numbers.

Only what logs need; anything else is a paragraph, and nothing is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$")
_RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
_SEPARATOR = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MARKS = re.compile(
    r"[\u2190-\u21ff]?[\u23e9-\u23fa\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]+"
)
_EMPHASIS = re.compile(r"(\*{1,3}|`+|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w))")


@dataclass(frozen=True, slots=True)
class Bullet:
    """`label` is what stands before the first colon, without emphasis; empty if there is none."""

    label: str
    text: str
    raw: str
    line: int
    children: tuple[Bullet, ...] = ()


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


@dataclass(slots=True)
class _Draft:
    level: int
    raw_title: str
    line: int
    bullets: list[tuple[int, int, str]] = field(default_factory=list)  # indentation, line, text
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
    drafts = [_Draft(0, "", 0)]
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
    if heading := _HEADING.match(line):
        drafts.append(_Draft(len(heading[1]), heading[2], number))
    elif not line.strip() or _RULE.match(line):
        current.paragraphs.append((number, ""))
    elif line.lstrip().startswith("|"):
        current.rows.append((number, line))
    elif bullet := _BULLET.match(line):
        current.bullets.append((len(bullet[1].expandtabs(4)), number, bullet[2].strip()))
    elif current.bullets and line.startswith(" ") and current.bullets[-1][1] >= number - 1:
        indent, first, start = current.bullets[-1]  # a wrapped bullet goes on
        current.bullets[-1] = (indent, first, f"{start} {line.strip()}")
    else:
        current.paragraphs.append((number, line.strip()))


def _finish(draft: _Draft) -> Section:
    return Section(
        draft.level,
        plain(draft.raw_title),
        draft.raw_title,
        draft.line,
        _nest(draft.bullets),
        _tables(draft.rows),
        tuple((line, plain(text)) for line, text in draft.paragraphs if text),
    )


def _nest(flat: list[tuple[int, int, str]]) -> tuple[Bullet, ...]:
    bullets: list[Bullet] = []
    position = 0
    while position < len(flat):
        indent, line, raw = flat[position]
        end = position + 1
        while end < len(flat) and flat[end][0] > indent:
            end += 1
        label, text = _labelled(raw)
        bullets.append(Bullet(label, text, raw, line, _nest(flat[position + 1 : end])))
        position = end
    return tuple(bullets)


def _labelled(raw: str) -> tuple[str, str]:
    text = plain(raw)
    head, colon, rest = text.partition(":")
    if colon and len(head) <= 60 and (not rest or rest.startswith(" ")):
        return head.strip(), rest.strip()
    return "", text


def _tables(rows: list[tuple[int, str]]) -> tuple[Table, ...]:
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
        header = _cells(group[0][1])
        body = [(number, _cells(line)) for number, line in group[2:]]
        padded = tuple((*cells, *("",) * (len(header) - len(cells)))[: len(header)] for _, cells in body)
        tables.append(Table(header, padded, tuple(number for number, _ in body)))
    return tuple(tables)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return tuple(plain(cell) for cell in re.split(r"(?<!\\)\|", inner))
