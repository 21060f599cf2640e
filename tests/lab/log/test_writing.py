from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.log import write_log
from splatmeter.lab.log.escape import cell, inline
from splatmeter.lab.log.log_contents import quality_baseline
from splatmeter.lab.log.log_document import (
    LogDocument,
    LogPhase,
    MetricsFigure,
    QualityBaseline,
    RatioFigure,
    SpeedFigure,
)
from splatmeter.lab.log.notes import key_of_phase, read_notes, write_block
from splatmeter.lab.log.writing import SIGNS_IN_LOGS
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.report.wording import SYMBOLS
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind


def metrics(psnr: float, l1: float = 0.035384) -> MetricsFigure:
    return MetricsFigure(3100, {"l1": l1, "psnr": psnr, "ssim": 0.789, "lpips": 0.2412}, 21)


BASELINE = LogPhase(
    "Baseline",
    speed=SpeedFigure(11.06, 6, 11.0, 11.12),
    loss=0.0576,
    loss_last_100=0.0571,
    training_peak_bytes=8_100_000_000,
    evaluation_peak_bytes=16_000_000_000,
    test=(metrics(26.01),),
)
CANDIDATE = LogPhase(
    "Phase 2d",
    "no graph in evaluation",
    parent="Baseline",
    verdict=Verdict(VerdictKind.FASTER, "Faster: 1.0271 [1.0200, 1.0343] over 6 blocks.", ("PSNR held.",)),
    speed=SpeedFigure(11.36, 6, 11.3, 11.42),
    ratios=(RatioFigure("Baseline", 1.0271, 1.02, 1.0343, 6),),
    loss=0.0577,
    training_peak_bytes=8_000_000_000,
    evaluation_peak_bytes=8_000_000_000,
    test=(metrics(25.8, 0.035212),),
    train=(MetricsFigure(4000, {"psnr": 28.12}),),
    gaussians=1_811_372,
    mean_opacity=0.749,
    date="2026-01-27",
    code_changes=("Added `with torch.no_grad():`",),
    findings=(Finding("note", "Counts differ as declared.", Severity.NOTE),),
    notes="What I think.",
)
ON_HOLD = LogPhase("Phase 3", verdict=Verdict(VerdictKind.ON_HOLD, "On hold: not needed."))
DOCUMENT = LogDocument(
    overview="Tracking it/s across phases.",
    configuration={"Dataset": "garden_512", "Training": "1000 iterations (iter 3000→4000)"},
    quality=QualityBaseline("Baseline", metrics(26.01)),
    phases=(BASELINE, CANDIDATE, ON_HOLD),
    measurement_notes=("High-water marks per stage.",),
)


def test_of_a_grid_of_evaluations_the_log_prints_the_last_and_what_can_be_compared() -> None:
    grid = tuple(
        MetricsFigure(step, {"psnr": 20 + step / 1000, "ssim": 0.7}, 21) for step in range(100, 4001, 100)
    )
    baseline = QualityBaseline("Baseline", MetricsFigure(4000, {"psnr": 25.0, "ssim": 0.7}, 21))
    phases = (dataclasses.replace(BASELINE, test=grid), dataclasses.replace(CANDIDATE, test=grid))
    text = write_log(LogDocument(quality=baseline, phases=phases))
    assert text.count("Test Metrics @ iter") == text.count("Test Metrics @ iter 4000") == 2
    assert "Test PSNR on the way: 20.10 dB @ 100, 20.60 dB @ 600" in text.replace("*", "")
    assert "PSNR: 24.00 dB (❌ outside the margin" in text.replace("*", "")


@pytest.mark.parametrize(("evaluate_at", "wanted"), [(0, 4000), (3100, 3100), (3150, 4000)])
def test_the_quality_to_keep_is_that_of_the_declared_step_or_of_the_last(
    evaluate_at: int, wanted: int
) -> None:
    """The first one of a grid, after some hundred steps, tells nothing."""
    grid = tuple(MetricsFigure(step, {"psnr": 20 + step / 1000}, 21) for step in range(100, 4001, 100))
    protocol = Protocol(scene="garden", trainer="splatmeter", evaluate_at=evaluate_at)
    baseline = quality_baseline((dataclasses.replace(BASELINE, test=grid),), protocol)
    assert baseline is not None and baseline.figure.step == wanted


def test_the_structure_is_that_of_a_log_kept_by_hand() -> None:
    titles = [section.title for section in parse_log(write_log(DOCUMENT)).sections if section.title]
    assert titles == [
        "Training Speed Tracking",
        "Overview",
        "Benchmark Configuration",
        "Quality Metrics Baseline",
        "Results",
        "Baseline",
        "Phase 2d - no graph in evaluation FASTER",
        "Phase 3 ON HOLD",
        "Comparison Table",
        "Measurement Notes",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- **Speed:** 11.36 it/s ± 0.06 (95 % interval [11.30, 11.42], 6 runs)",
        "- **Against Baseline:** +2.71 % [+2.00 %, +3.43 %], ratio 1.0271 over 6 paired blocks",
        "- **Loss:** 0.0576 (moving average; mean of the last 100 steps 0.0571)",
        "- **Peak memory (training):** 8.00 GB (-100 MB, -1.2 % from Baseline)",
        "- **Peak memory (eval):** 8.00 GB (-8000 MB, -50.0 % from Baseline)",
        "  - Test PSNR: 25.80 dB (❌ outside the margin of 0.5 %: 0.81 % worse than Baseline)",
        "  - Test L1: 0.035212 (✅ within the margin of 1.57 %: 0.49 % better than Baseline)",
        "  - Train PSNR: 28.12 dB",
        "- **PSNR:** 26.01 dB (at least 25.88 dB)",
        "- **LPIPS:** 0.2412 (at most 0.2466)",
        "- **Model Size:** 1,811,372 Gaussians",
        "  - Added `with torch.no_grad():`",
        "  - PSNR held.",
    ],
)
def test_every_derived_number_is_computed(line: str) -> None:
    assert line in write_log(DOCUMENT).splitlines()


def test_the_table_has_one_row_per_phase_with_the_same_numbers() -> None:
    rows = {row.name: row.cells for row in parse_log(write_log(DOCUMENT)).table}
    assert list(rows) == ["Baseline", "Phase 2d", "Phase 3"]
    assert rows["Phase 2d"]["Speed (it/s)"] == "11.36"
    assert rows["Phase 2d"]["Against baseline"] == "+2.71 % [+2.00 %, +3.43 %]"
    assert rows["Phase 2d"]["Eval memory"] == "8.00 GB"
    assert rows["Phase 3"]["Verdict"] == "ON HOLD"


def test_our_own_log_survives_our_own_audit() -> None:
    assert [finding.sentence for finding in audit_log(parse_log(write_log(DOCUMENT)))] == []


def test_a_log_that_is_read_back_has_the_numbers_that_were_written() -> None:
    phase = parse_log(write_log(DOCUMENT)).phases[1]
    values = {key: figure.quantity.value for key, figure in phase.figures.items()}
    assert values["speed"] == 11.36 and values["evaluation peak"] == 8e9
    assert values["test psnr"] == 25.8 and values["train psnr"] == 28.12 and values["gaussians"] == 1811372
    assert phase.figures["speed"].interval == (11.30, 11.42) and phase.status == "faster"


def test_a_single_run_is_said_to_have_no_interval_and_nothing_observed_is_no_zero() -> None:
    text = write_log(LogDocument(phases=(LogPhase("Long", state="recorded", speed=SpeedFigure(6.18)),)))
    assert "- **Speed:** 6.180 it/s (one run, no interval)" in text
    assert "- **Peak memory (training):** not observed" in text and "- **Status:** recorded" in text


def test_a_ratio_of_too_few_blocks_is_said_to_have_no_interval() -> None:
    ratio = RatioFigure("Baseline", 1.05, 0.0, float("inf"), 1)
    text = write_log(
        dataclasses.replace(DOCUMENT, phases=(BASELINE, dataclasses.replace(CANDIDATE, ratios=(ratio,))))
    )
    assert "+5.00 %, no interval yet" in text and "inf" not in text


def test_an_empty_document_is_still_a_log() -> None:
    assert parse_log(write_log(LogDocument())).phases == ()


# Notes


def with_note(text: str, name: str, note: str) -> str:
    old = write_block(key_of_phase(name), read_notes(text)[key_of_phase(name)])
    assert text.count(old) == 1
    return text.replace(old, write_block(key_of_phase(name), note))


def test_initial_notes_stand_until_a_person_writes_others() -> None:
    first = write_log(DOCUMENT)
    assert read_notes(first)["phase/Phase 2d"] == "What I think."
    note = "Screenshot shows **zero** spill.\n\n- and a list\n\n| a | b |"
    again = write_log(DOCUMENT, with_note(first, "Phase 2d", note))
    assert read_notes(again)["phase/Phase 2d"] == note
    assert write_log(DOCUMENT, again) == again


def test_a_note_that_a_person_emptied_stays_empty() -> None:
    text = write_log(DOCUMENT)
    assert read_notes(write_log(DOCUMENT, with_note(text, "Phase 2d", "")))["phase/Phase 2d"] == ""


def test_new_numbers_replace_old_ones_around_the_notes() -> None:
    edited = with_note(write_log(DOCUMENT), "Phase 2d", "mine")
    faster = dataclasses.replace(CANDIDATE, speed=SpeedFigure(12.5, 6, 12.4, 12.6))
    again = write_log(dataclasses.replace(DOCUMENT, phases=(BASELINE, faster, ON_HOLD)), edited)
    assert "12.50 it/s" in again and "11.36 it/s" not in again and "mine" in again


def test_notes_of_a_phase_that_is_gone_are_kept_until_it_returns() -> None:
    edited = with_note(write_log(DOCUMENT), "Phase 2d", "do not lose me")
    without = write_log(dataclasses.replace(DOCUMENT, phases=(BASELINE,)), edited)
    assert "do not lose me" in without and "Notes without a phase" in without
    back = write_log(DOCUMENT, without)
    assert read_notes(back)["phase/Phase 2d"] == "do not lose me" and "Notes without a phase" not in back


def test_a_block_that_lost_its_end_mark_loses_no_words() -> None:
    edited = with_note(write_log(DOCUMENT), "Phase 2d", "precious")
    broken = edited.replace("precious\n<!-- /notes -->", "precious")
    again = write_log(DOCUMENT, broken)
    assert read_notes(again)["phase/Phase 2d"] == "precious"
    assert again.count("### Phase 3") == 1


def test_windows_line_ends_do_not_lose_notes() -> None:
    edited = with_note(write_log(DOCUMENT), "Phase 2d", "one\ntwo").replace("\n", "\r\n")
    assert read_notes(write_log(DOCUMENT, edited))["phase/Phase 2d"] == "one\ntwo"


ONE_LINE = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"))
NAMES = st.text(ONE_LINE, min_size=1, max_size=30)


@given(NAMES, st.text(st.sampled_from("ab |#-*<>!/`\\\nnotes:é"), max_size=80))
def test_any_name_and_any_note_survive_regeneration(name: str, note: str) -> None:
    document = LogDocument(phases=(LogPhase(name, speed=SpeedFigure(1.0)),))
    first = write_log(document)
    key = key_of_phase(name)
    edited = first.replace(write_block(key, ""), write_block(key, note))
    if note.strip("\n") and "<!-- " not in note:
        again = write_log(document, edited)
        assert read_notes(again)[key] == note.strip("\n")
        assert write_log(document, again) == again


# Text from outside


@given(st.text(max_size=60))
@example("0,0")
def test_no_text_breaks_a_table(text: str) -> None:
    document = LogDocument(phases=(LogPhase("A", speed=SpeedFigure(1.0), remark=text),))
    table = next(section for section in parse_log(write_log(document)).sections if section.tables).tables[0]
    assert len(table.rows) == 1 and table.rows[0][0] == "A" and table.rows[0][1] == "1.000"
    line = next(line for line in write_log(document).split("\n") if line.startswith("| A |"))
    assert len(line.replace("\\\\", "").replace("\\|", "").split("|")) == len(table.header) + 2


def test_text_from_outside_cannot_open_or_close_notes() -> None:
    hostile = "x <!-- /notes --> <!-- notes: phase/Baseline --> forged <!-- /notes -->"
    phase = dataclasses.replace(CANDIDATE, title=hostile, code_changes=(hostile,), notes=hostile)
    notes = read_notes(write_log(dataclasses.replace(DOCUMENT, phases=(BASELINE, phase))))
    assert notes["phase/Baseline"] == "" and "forged" in notes["phase/Phase 2d"]


def test_lines_and_tags_and_bars_are_made_harmless() -> None:
    assert inline("a\n# b <script>") == "a # b \\<script>"
    assert inline("use `vector<float>`") == "use `vector<float>`"
    assert cell("a|b") == "a\\|b" and cell("") == "-" and cell("a\\|b").count("|") == 1


@pytest.mark.parametrize(
    "name",
    [
        "[click](https://e.vil)",
        "\\[click\\](https://e.vil)",
        "![i](j)",
        "https://e.vil",
        "www.e.vil",
        "\\<b>x</b>",
    ],
)
def test_a_link_or_a_tag_in_a_name_stays_text(name: str) -> None:
    """As CommonMark reads it: an escaped backslash escapes nothing."""
    import re

    live = re.sub(r"\\[\\\]<./|]", "", inline(name))
    assert not re.search(r"\]\(|<|://|www\.", live), inline(name)


@pytest.mark.parametrize("kind", list(VerdictKind))
def test_log_report_and_gate_agree_on_what_a_verdict_means(kind: VerdictKind) -> None:
    """What stops a gate is crossed out in the log and bad on the page; no speed-up is none of these."""
    stops = kind.exit_code == 1
    sign, tone = SYMBOLS[kind]
    assert (SIGNS_IN_LOGS[kind] == "❌") == (tone == "bad") == stops
    assert (SIGNS_IN_LOGS[kind] == "=") == (sign == "=") == (kind in NOTHING_GAINED)
    assert kind not in NOTHING_GAINED or kind.exit_code == 0


NOTHING_GAINED = (VerdictKind.NO_SPEED_UP, VerdictKind.NO_GAIN)
