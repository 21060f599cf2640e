"""Rules on an invented log, and on edited copies of it: a rule that knows only one file would fail here."""

from __future__ import annotations

import pytest

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.handlog.splits import held_out_count
from splatmeter.lab.samples.finding import Finding, Severity

INVENTED = """# Kernel diary

## Benchmark Configuration
- Dataset: data/kitchen
- Resolution: -r8
- Training: 2000 iterations from baseline checkpoint (iter 5000→7000)
- Test Evaluation: Iteration 6000 (with --eval flag: 244 train, 35 test images)

## Quality Metrics Baseline
**Keep these (±0.5% tolerance):**
- **PSNR:** ~31.0 dB
- **SSIM:** ~0.921
- **L1:** ~0.0203

## Results

### Baseline
- **Speed:** 20.00 it/s
- **Loss:** 0.0310
- **Peak VRAM (training):** 5.0 GB
- **Peak VRAM (eval):** ~9.0 GB (estimated)

### Fuse - one kernel instead of three ✅ SUCCESS
- **Speed:** 20.50 it/s (+0.50 it/s from Baseline, +2.5%)
- **Loss:** 0.0309
- **Peak VRAM (training):** 4.0 GB (-1000 MB from Baseline)
- **Peak VRAM (eval):** 6.00 GB (-3.0 GB from Baseline)
- Notes: memory went from 5.0 GB to 4.0 GB (20% reduction).

### Sort - radix
- **Speed:** 30.00 it/s (+9.50 it/s from Fuse, +46.3%)
- **Loss:** 0.0311
- **Peak VRAM (training):** 4.0 GB (same as Fuse)
- **Test Metrics (@ iter 6000):**
  - Test L1: 0.020311
  - Test PSNR: 31.02 dB
  - Test SSIM: 0.9211

### Big - half resolution
- **Speed:** 4.00 it/s
- **Loss:** 0.0200
- **Peak VRAM (reported):** 9.5 GB
- **Model Size:** 2,000,000 Gaussians
- Configuration:
  - Resolution: -r2

## Comparison Table

| Phase | Speed (it/s) | Change | Notes |
|---|---|---|---|
| Baseline | 20.00 | - | -r8, No --eval |
| Fuse | 20.50 | +2.5% | -r8, No --eval |
| Sort | 30.00 | +50.0% | -r8, With --eval |
| Big | 4.00 | - | -r2 |
"""


def findings(text: str, kind: str = "") -> list[Finding]:
    return [finding for finding in audit_log(parse_log(text)) if kind in ("", finding.kind)]


def edited(old: str, new: str) -> str:
    assert INVENTED.count(old) == 1, f"{old!r} occurs {INVENTED.count(old)} times"
    return INVENTED.replace(old, new)


def test_right_arithmetic_is_not_reported() -> None:
    for kind in ("wrong percentage", "wrong difference", "not the same", "table contradicts section"):
        assert findings(INVENTED, kind) == []


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("from 5.0 GB to 4.0 GB (25% reduction)", "-20.0 %"),
        ("from 5.0 to 4.0 GB (25% reduction)", "-20.0 %"),
        ("down 25% (5.0 GB → 4.0 GB)", "-20.0 %"),
        ("5.0 GB -> 4.0 GB, a 25% saving", "-20.0 %"),
        ("from 5.0 GB to 4.0 GB (80% reduction)", "what remained, not what went"),
        ("from 10.0 it/s to 12.5 it/s (+20%)", "+25.0 %"),
        ("from 10.0 it/s to 12.5 it/s (-25%)", "+25.0 %"),
    ],
)
def test_a_wrong_percentage_is_reported_with_the_right_one(claim: str, said: str) -> None:
    text = edited("from 5.0 GB to 4.0 GB (20% reduction)", claim)
    (finding,) = findings(text, "wrong percentage")
    assert said in finding.sentence and finding.severity is Severity.WRONG
    assert finding.where == f"line {1 + text[: text.index(claim)].count(chr(10))}"


@pytest.mark.parametrize(
    "claim",
    [
        "from 5.0 GB to 4.0 GB (20% reduction)",
        "from 5.0 GB to 4.0 GB (-20%)",
        "from 5.0 GB to 4.0 GB (80% of before)",
        "from 10.0 it/s to 12.5 it/s (+25%)",
        "from 5.0 GB to 4.0 GB; another 25% came elsewhere",
        "expected 5-10% and got 4.0 GB",
    ],
)
def test_a_right_or_unrelated_percentage_is_not_reported(claim: str) -> None:
    assert findings(edited("from 5.0 GB to 4.0 GB (20% reduction)", claim), "wrong percentage") == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("+0.50 it/s from Baseline, +2.5%", "+0.50 it/s from Baseline, +3.5%", "+2.5 %"),
        ("+0.50 it/s from Baseline, +2.5%", "+0.70 it/s from Baseline, +2.5%", "+0.5 it/s"),
        ("-1000 MB from Baseline", "-300 MB from Baseline", "-1.00 GB"),
        ("+9.50 it/s from Fuse, +46.3%", "+9.50 it/s from Fuse, +50%", "+46.3 %"),
    ],
)
def test_a_wrong_difference_beside_a_figure_is_reported(old: str, new: str, said: str) -> None:
    (finding,) = findings(edited(old, new), "wrong difference")
    assert said in finding.sentence


def test_a_difference_without_a_name_may_be_from_the_phase_before_or_the_baseline() -> None:
    for claim in ("(+46.3%)", "(+50.0%)"):
        assert findings(edited("(+9.50 it/s from Fuse, +46.3%)", claim), "wrong difference") == []
    assert findings(edited("(+9.50 it/s from Fuse, +46.3%)", "(+48.0%)"), "wrong difference")


def test_what_is_called_the_same_and_is_not_is_reported() -> None:
    (finding,) = findings(edited("4.0 GB (same as Fuse)", "4.4 GB (same as Fuse)"), "not the same")
    assert "+10.0 %" in finding.sentence


def test_the_table_is_checked_against_itself_and_the_sections() -> None:
    (finding,) = findings(edited("30.00 | +50.0% |", "30.00 | +55.0% |"), "wrong percentage")
    assert "+50.0 %" in finding.sentence
    (finding,) = findings(edited("| Fuse | 20.50 |", "| Fuse | 20.80 |"), "table contradicts section")
    assert "20.50 it/s" in finding.sentence


def test_a_baseline_checkpoint_without_held_out_views_leaks_them() -> None:
    (finding,) = findings(INVENTED, "leaked test views")
    assert "Sort" in finding.sentence and "all 35 test images" in finding.sentence
    assert "5000 (83.3 %)" in finding.sentence and "about 18 visits" in finding.sentence


def test_a_baseline_checkpoint_with_held_out_views_leaks_nothing() -> None:
    clean = INVENTED.replace("-r8, No --eval", "-r8, With --eval")
    assert findings(clean, "leaked test views") == [] and findings(clean, "split changed") == []


def test_a_start_of_unknown_ancestry_is_doubted() -> None:
    text = edited("from baseline checkpoint (iter 5000→7000)", "from a checkpoint (iter 5000→7000)")
    assert findings(text, "leaked test views") == []
    assert "does not say which images" in findings(text, "unknown ancestry")[0].sentence


def test_a_split_that_changes_between_compared_phases_is_reported() -> None:
    (finding,) = findings(INVENTED, "split changed")
    assert finding.sentence.startswith("Sort (with --eval) is compared with Baseline and Fuse (without)")
    assert "244 train images against 279" in finding.sentence


def test_every_eighth_image_is_counted_as_the_original_does() -> None:
    assert (held_out_count(161), held_out_count(185), held_out_count(279)) == (21, 24, 35)
    assert findings(INVENTED, "unexpected split") == []
    (finding,) = findings(edited("244 train, 35 test", "245 train, 34 test"), "unexpected split")
    assert "⌈279 / 8⌉ = 35, not 34" in finding.sentence


def test_another_stated_rule_of_the_split_is_respected() -> None:
    text = edited("flag: 244 train, 35 test images)", "flag, every 10th: 251 train, 28 test images)")
    assert findings(text, "unexpected split") == []


def test_counts_of_images_that_belong_to_one_split_are_not_reported() -> None:
    text = edited("(20% reduction).", "(20% reduction). All 279 images, of which 35 test images, were used.")
    assert findings(text, "mixed image counts") == []


def test_other_counts_of_images_are_reported_with_their_lines() -> None:
    text = edited("(20% reduction).", "(20% reduction). All 40 GT images; fewer test views (35 vs 311).")
    (finding,) = findings(text, "mixed image counts")
    assert "244 train + 35 test = 279" in finding.sentence
    assert "'40 GT images'" in finding.sentence and "35 vs 311" in finding.sentence


def test_small_differences_of_single_runs_are_doubted_and_large_ones_are_not() -> None:
    (finding,) = findings(INVENTED, "too small for single runs")
    assert finding.sentence.startswith("Fuse: 20.00 it/s → 20.50 it/s is +2.50 %")


def test_small_differences_of_repeated_runs_are_not_doubted() -> None:
    text = edited("(20% reduction).", "(20% reduction). Paired over 6 blocks.")
    assert findings(text, "too small for single runs") == []
    text = edited("(iter 5000→7000)", "(iter 5000→7000), mean of 6 runs")
    assert findings(text, "too small for single runs") == []


SECOND = """
### Again
- **Speed:** 30.10 it/s
- **Loss:** {loss}
- **Test Metrics (@ iter 6000):**
  - Test L1: {l1}
  - Test PSNR: 31.02 dB
  - Test SSIM: 0.9211

## Comparison Table
"""


@pytest.mark.parametrize(
    ("loss", "l1", "reported"),
    [("0.0312", "0.020311", True), ("0.0311", "0.020311", False), ("0.0312", "0.020312", False)],
)
def test_test_metrics_equal_to_the_last_digit_are_doubted_when_losses_differ(
    loss: str, l1: str, reported: bool
) -> None:
    text = edited("\n## Comparison Table\n", SECOND.format(loss=loss, l1=l1))
    assert bool(findings(text, "identical metrics")) is reported


def test_a_quality_baseline_taken_from_a_candidate_is_reported() -> None:
    (finding,) = findings(INVENTED, "baseline from a candidate")
    assert "Sort" in finding.sentence and "PSNR ~31.0 dB from 31.02" in finding.sentence


def test_a_quality_baseline_with_numbers_of_its_own_is_not_reported() -> None:
    assert findings(edited("~31.0 dB", "~33.0 dB"), "baseline from a candidate") == []


def test_a_quality_baseline_measured_on_the_baseline_is_not_reported() -> None:
    metrics = "- **Loss:** 0.0310\n- **Test Metrics:**\n  - Test PSNR: 31.03 dB\n  - Test SSIM: 0.9209\n"
    assert findings(edited("- **Loss:** 0.0310\n", metrics), "baseline from a candidate") == []


def test_a_believable_peak_is_not_reported() -> None:
    # 2,000,000 × 944 B = 1.89 GB and 244 photos of 1558×1039 as floats are 4.74 GB: 6.63 GB.
    assert findings(INVENTED, "memory below the floor") == []
    assert findings(edited("9.5 GB", "6.7 GB"), "memory below the floor") == []


def test_a_peak_below_gaussians_and_photos_is_reported_with_the_sum() -> None:
    (finding,) = findings(edited("9.5 GB", "6.1 GB"), "memory below the floor")
    assert "2,000,000 Gaussians × 708 B" in finding.sentence and "× 944 B in a step" in finding.sentence
    assert "1558×1039" in finding.sentence and "at least 6.63 GB" in finding.sentence


def test_a_peak_below_the_gaussians_alone_needs_no_known_photos() -> None:
    unknown = edited("data/kitchen", "data/my garden shed")
    assert findings(unknown.replace("9.5 GB", "1.5 GB"), "memory below the floor")
    assert findings(unknown.replace("9.5 GB", "3.5 GB"), "memory below the floor") == []


def test_less_memory_for_more_pixels_is_doubted() -> None:
    assert findings(INVENTED, "less memory for more pixels") == []
    (finding,) = findings(edited("9.5 GB", "3.5 GB"), "less memory for more pixels")
    assert "16 times the pixels" in finding.sentence


def test_a_difference_from_an_estimate_is_noted() -> None:
    (finding,) = findings(INVENTED, "difference from an estimate")
    assert finding.severity is Severity.NOTE and "~9.0 GB" in finding.sentence
