"""What a table of a log is: figures of one experiment, several beside each other, or a before and after."""

from __future__ import annotations

import re

from splatmeter.lab.handlog.markdown import Table
from splatmeter.lab.handlog.mentions import key_of_words
from splatmeter.lab.handlog.quantities import quantities

_WAS = re.compile(r"before|vorher|zuvor|old|alt|was|from|prev(?:ious)?|parent", re.IGNORECASE)
_IS = re.compile(r"after|nachher|danach|new|neu|now|jetzt|is|to|current", re.IGNORECASE)


def is_list_of_figures(table: Table) -> bool:
    """| Metric | Value |"""
    return len(table.header) == 2 and _named_figures(table)


def is_before_and_after(table: Table) -> bool:
    """| Metric | before | after |, with or without the change: a table of one experiment."""
    return is_turned(table) and sides(table) is not None


def sides(table: Table) -> tuple[int, int] | None:
    """The columns of what was and of what is."""
    was = [i for i, head in enumerate(table.header) if _WAS.fullmatch(head.strip())]
    now = [i for i, head in enumerate(table.header) if _IS.fullmatch(head.strip())]
    return (was[0], now[0]) if len(was) == len(now) == 1 else None


def is_turned(table: Table) -> bool:
    """Figures go down, experiments across."""
    return len(table.header) > 2 and _named_figures(table)


def _named_figures(table: Table) -> bool:
    named = [bool(key_of_words(row[0])) and not quantities(row[0]) for row in table.rows]
    return (
        bool(named)
        and 2 * sum(named) >= len(named)
        and 2 * sum(bool(key_of_words(h)) for h in table.header[1:]) <= len(table.header) - 1
    )


def is_change(head: str) -> bool:
    return bool(
        re.search(
            r"change|Δ|delta|diff|gain|speed-?up|änderung|\bvs\b|against|gegenüber|%|±|\brel",
            head,
            re.IGNORECASE,
        )
    )


def is_comparison(table: Table) -> bool:
    figures = [head for head in table.header if key_of_words(head) and not is_change(head)]
    return len(table.header) > 2 and bool(figures) and not is_turned(table)


def name_column(table: Table) -> int:
    for i in range(len(table.header)):
        cells = [row[i] for row in table.rows]
        if (
            cells
            and not key_of_words(table.header[i])
            and sum(bool(re.search("[A-Za-z]", cell)) for cell in cells) * 2 > len(cells)
        ):
            return i
    return 0
