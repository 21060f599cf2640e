from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.handlog.markdown import marks, parse_sections, plain
from splatmeter.lab.handlog.names import match_name, mentioned_name, phase_name
from splatmeter.lab.handlog.quantities import change_percent, first_quantity, quantities


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("11.36 it/s", 11.36, "it/s"),
        ("~16.0 GB (estimated)", 16e9, "B"),
        ("-300 MB", -300e6, "B"),
        ("512 MiB", 512 * 2**20, "B"),
        ("1,811,372 Gaussians", 1811372, ""),
        ("23K iterations", 23000, ""),
        ("+2.2%", 2.2, "%"),
        ("−7 %", -7, "%"),
        ("26.01 dB", 26.01, "dB"),
        ("16GB card", 16e9, "B"),
    ],
)
def test_numbers_are_read_with_their_units(text: str, value: float, unit: str) -> None:
    quantity = quantities(text)[0]
    assert (quantity.value, quantity.unit) == (pytest.approx(value), unit)


@pytest.mark.parametrize("text", ["-r4", "Phase2d", "Python 3.11.14", "rtx5000_fresh", "v2.sh", ""])
def test_parts_of_words_and_versions_are_not_numbers(text: str) -> None:
    assert quantities(text) == []


def test_a_number_stands_for_all_that_round_to_it() -> None:
    a, b, c = (first_quantity(text) for text in ("15.62 GB", "15.6 GB", "15.7 GB"))
    assert a and b and c and a.agrees(b) and not a.agrees(c)


def test_the_roundings_bound_a_percentage() -> None:
    before, after = quantities("15.62 GB 8.0 GB")
    middle, low, high = change_percent(before, after)
    assert middle == pytest.approx(-48.78, abs=0.01)
    assert low == pytest.approx(100 * (7.95 / 15.625 - 1))
    assert high == pytest.approx(100 * (8.05 / 15.615 - 1))


def test_emphasis_and_emoji_are_taken_off_and_emoji_kept_apart() -> None:
    assert plain("**Speed:** `11.06` ✅ *fine*") == "Speed: 11.06 fine"
    assert marks("Test ✅ and ⚠️") == "✅⚠"


def test_bullets_nest_by_indentation_and_know_their_lines() -> None:
    section = parse_sections("# T\n\n- **A:** 1\n  - B: 2\n    - deep\n- C: 3\n")[1]
    assert [bullet.label for bullet in section.bullets] == ["A", "C"]
    assert section.bullets[0].children[0].label == "B"
    assert section.bullets[0].children[0].children[0].text == "deep"
    assert section.bullets[1].line == 6


def test_a_wrapped_bullet_is_one_bullet() -> None:
    section = parse_sections("# T\n- Notes: first\n  second\n")[1]
    assert section.bullets[0].text == "first second"


def test_tables_keep_escaped_bars_and_short_rows() -> None:
    table = parse_sections("| A | B |\n|---|---|\n| x \\| y | **z** |\n| only |\n")[0].tables[0]
    assert table.rows == (("x | y", "z"), ("only", ""))


def test_code_fences_and_comments_hold_no_bullets() -> None:
    text = "# T\n```\n- Speed: 1 it/s\n```\n<!--\n- Speed: 2 it/s\n-->\n- Speed: 3 it/s\n"
    section = parse_sections(text)[1]
    assert [bullet.text for bullet in section.bullets] == ["3 it/s"]
    assert section.bullets[0].line == 8


def test_a_comment_that_never_ends_hides_nothing() -> None:
    assert parse_sections("# T\n<!-- open\n- Speed: 3 it/s\n")[1].bullets[0].text == "3 it/s"


def test_phases_are_named_by_what_stands_before_the_dash() -> None:
    assert phase_name("Phase 2d - no_grad fix SUCCESS!") == "Phase 2d"
    assert phase_name("pynvml monitoring NO SPEEDUP") == "pynvml monitoring"
    assert phase_name("Phase 2d-eval2 - With Flag") == "Phase 2d-eval2"


def test_short_names_in_tables_find_their_phase() -> None:
    names = ["Baseline", "Phase 2d", "Phase 2d-eval2", "pynvml monitoring", "Aggressive Pruning Test"]
    assert match_name("Aggressive Prune", names) == "Aggressive Pruning Test"
    assert match_name("pynvml", names) == "pynvml monitoring"
    assert match_name("Phase 2", names) == ""
    assert mentioned_name("from Phase 2d-eval2, -0.2%", names) == "Phase 2d-eval2"
    assert mentioned_name("from phase 2d!", names) == "Phase 2d"


def test_a_log_without_anything_is_a_log_without_phases() -> None:
    log = parse_log("")
    assert log.phases == () and audit_log(log) == []


def test_two_sections_of_one_name_are_two_phases() -> None:
    log = parse_log("### Try\n- Speed: 1 it/s\n### Try\n- Speed: 2 it/s\n")
    assert [phase.name for phase in log.phases] == ["Try", "Try (2)"]


def test_states_are_read_from_the_status_before_the_title() -> None:
    log = parse_log(
        "### A (Pending)\n- **Status:** On hold - later\n### B ❌ NO SPEEDUP\n- Speed: 1 it/s\n"
        "### C ✅ VERIFIED!\n- Speed: 1 it/s\n### D\n- Speed: 1 it/s\n"
    )
    assert [phase.status for phase in log.phases] == ["on hold", "no speed-up", "verified", ""]


@given(st.lists(st.sampled_from("-*|#: \n~%()→0123456789.,abBG/s+`<!>é✅\t\\"), max_size=200))
def test_no_text_is_an_error(characters: list[str]) -> None:
    audit_log(parse_log("".join(characters)))


PLAUSIBLE = """
### Baseline
### Phase 1 - x
- Speed: 0 it/s (+0%)
- **Speed:** 11 it/s (-1 it/s from Phase 1)
- Loss: 0
- Peak VRAM (training): 0 GB (same as Baseline)
- from 0 GB to 0 GB (0%)
- Test Metrics @ iter 3:
  - Test PSNR: 26.01
  - Test L1: 0.035384
## Benchmark Configuration
- Training: 0 iterations from baseline checkpoint (iter 0→0)
- 0 train, 0 test images --eval
| Phase | Speed | Change |
|---|---|---|
| Baseline | 0 | 5% |
| Phase 1 | 3 | -5% |
## Quality Baseline
- PSNR: 26
- L1: 0.0354
- Model Size: 0 Gaussians
- cameras (0 vs 999)
""".splitlines()


@given(st.lists(st.sampled_from(PLAUSIBLE), max_size=30))
def test_no_order_of_plausible_lines_is_an_error(lines: list[str]) -> None:
    audit_log(parse_log("\n".join(lines)))
