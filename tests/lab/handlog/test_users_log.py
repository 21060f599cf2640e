"""The document that started this project, where it lies beside the repository: everything it contradicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.samples.finding import Finding

SHARED = Path(__file__).parents[4] / "shared" / "log" / "training-speed-tracking.md"


def findings(text: str, kind: str) -> list[Finding]:
    return [finding for finding in audit_log(parse_log(text)) if finding.kind == kind]


@pytest.fixture
def real() -> str:
    if not SHARED.exists():
        pytest.skip("../shared is absent: the audit of the user's own log is not checked")
    return SHARED.read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("wrong percentage", ("51%", "-48.8 %", "51.2 %")),
        ("leaked test views", ("checkpoint of Baseline", "all 20 test images", "3000 (96.8 %)")),
        ("mixed image counts", ("141 train + 20 test = 161", "23 GT images", "20 vs 185", "185 − 24 = 161")),
        ("unexpected split", ("⌈161 / 8⌉ = 21, not 20",)),
        ("split changed", ("Phase 2d-eval2", "Phase 1", "141 train images against 161")),
        ("too small for single runs", ("+0.54 %", "±3.9 %")),
        ("identical metrics", ("0.035384", "6 decimals", "0.0558, 0.0559")),
        ("baseline from a candidate", ("Phase 2d-eval2", "~26.0 dB from 26.01")),
        ("goal already met", ("below 16 GB", "15.62 GB")),
        ("spill below the limit", ("15.62 GB", "16.00 GB")),
        ("current figure is outdated", ("8.0 GB", "4.7 GB")),
        ("equal to nothing", ("identical to baseline", "Baseline has no metrics")),
        ("not the full run", ("Full 30K Run", "23000 iterations")),
        ("memory by count", ("only 1 image pair", "20 vs 185")),
        ("quality of another run", ("30000 instead of 3100", "-r2 instead of -r4")),
        ("quality judged too early", ("measured at 3100", "10 %", "other 900 iterations")),
        ("success without quality", ("Phase 2d", "no metrics")),
        ("memory below the floor", ("1.87 GB", "1.28 GB", "1.71 GB", "2594×1681", "7.4 GB")),
    ],
)
def test_the_user_s_log_is_found_out(real: str, kind: str, said: tuple[str, ...]) -> None:
    found = findings(real, kind)
    assert found, kind
    for words in said:
        assert words in found[0].sentence


def test_the_user_s_right_numbers_are_not_accused(real: str) -> None:
    assert len(findings(real, "wrong percentage")) == 1
    assert findings(real, "wrong difference") == []
    assert findings(real, "table contradicts section") == []


def test_all_four_small_differences_of_the_user_s_log_are_doubted(real: str) -> None:
    assert len(findings(real, "too small for single runs")) == 4


def test_the_user_s_log_with_its_percentage_corrected_is_not_accused_of_it(real: str) -> None:
    assert findings(real.replace("51%", "49%"), "wrong percentage") == []


def test_the_user_s_log_with_another_wrong_percentage_is(real: str) -> None:
    (finding,) = findings(real.replace("51%", "49%").replace("| +3.3% |", "| +4.3% |"), "wrong percentage")
    assert "+3.3 %" in finding.sentence


def test_the_user_s_log_with_a_consistent_split_has_no_leak(real: str) -> None:
    assert findings(real.replace("No --eval", "With --eval"), "leaked test views") == []


def test_the_user_s_log_is_read_whole(real: str) -> None:
    log = parse_log(real)
    assert [phase.name for phase in log.phases] == [
        "Baseline",
        "Phase 1",
        "Phase 2d",
        "Phase 2d-eval2",
        "pynvml GPU Monitoring Optimization",
        "Aggressive Pruning Test",
        "Phase 3",
    ]
    assert all(row.phase for row in log.table)
    statuses = [phase.status for phase in log.phases]
    assert statuses == ["", "", "success", "verified", "no speed-up", "questionable", "on hold"]
    pruned = log.phases[5]
    assert pruned.quantity("gaussians").value == 1_811_372  # type: ignore[union-attr]
    assert (pruned.resolution, pruned.start.step, pruned.last_step) == (2, 7000, 30000)  # type: ignore[union-attr]
    assert len(log.phases[1].code_changes) == 2 and log.tolerance == 0.005
