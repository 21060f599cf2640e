"""Whatever somebody calls a log gives a result, and soon."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splatmeter.lab.handlog import audit_log, parse_log, understanding

WORDS = [
    "# ", "## Phase 1", "- ", "1. ", "  - ", "| a | b | c |", "|---|---|---|", "Speed:",
    "11.4 it/s", "54,10", "0.02 s/it", "(+7 %", "from Phase 1)", "same as", "unverändert", "8.1 GB",
    "RTX 4090 24 GB", "PSNR", "26.01 dB", "→", "to", "2026-02-30", "31.04.2026", "in 4:52",
    "30k iterations", "parent: Phase 1", "fastest", "\n", "\n\n", "1.5x", "1e+99",
    "no quality loss", "99999999999999999", "1,811,372 Gaussians", "-", "±", "[", "]", "<!--",
    "```", "faster than",
]  # fmt: skip


def audited(text: str) -> None:
    log = parse_log(text)
    audit_log(log)
    assert understanding(log).sentence


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gives_a_result(text: str) -> None:
    audited(text)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=60), st.sampled_from([" ", "", " | "]))
def test_any_words_of_logs_give_a_result(words: list[str], between: str) -> None:
    audited(between.join(words))


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "piece",
    [
        "1 ",
        "a",
        "9",
        "1,",
        "1:",
        "(+1 % from ",
        "speed 1 it/s, ",
        "-> 1 ",
        ". ",
        "| 1 ",
        "**",
        "fewer ",
        "same 1 GB ",
        " ",
    ],
)
def test_a_line_of_a_megabyte_is_no_trap(piece: str) -> None:
    """Reading is linear in the text: a pattern that goes back and forth would not come back from here."""
    line = piece * (MEGABYTE // len(piece))
    audited(f"## Phase 1\n- Speed: 10 it/s\n{line}\n")


@pytest.mark.parametrize(
    "line", ["- Speed: 1 it/s (+1 %)", "## P\n- Speed: 1 it/s", "| a | 1 it/s | 2 GB |", "x 1 it/s\n"]
)
def test_many_lines_are_no_trap(line: str) -> None:
    audited("\n".join([line] * 1000))


def test_a_list_deeper_than_the_stack_is_read() -> None:
    audited("## P\n" + "\n".join(" " * depth + "- Speed: 1 it/s" for depth in range(1500)))
