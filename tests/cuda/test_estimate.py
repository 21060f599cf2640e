"""The estimate's page is what its script gives, and rests on what is known of the kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "native" / "cuda"))

import estimate

from splatmeter.backends.cuda.speed import Limits, kernel_times
from splatmeter.backends.cuda.work_model import PAIR_INSTRUCTIONS, SUBTILES, Counts, work_of


def test_the_page_is_what_the_model_gives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estimate.PAGE.read_text("utf-8") == estimate.page()
    monkeypatch.setattr(sys, "argv", ["estimate.py", "--check"])
    assert estimate.main() == 0
    monkeypatch.setattr(estimate, "BANDWIDTH_REACHED", 0.7)
    assert estimate.main() == 1
    assert "run python native/cuda/estimate.py" in capsys.readouterr().err


def test_instructions_a_pair_are_those_of_the_kept_report() -> None:
    for kernel, (count, most) in estimate.counted().items():
        always, a_subtile = PAIR_INSTRUCTIONS[kernel]
        assert always + a_subtile * SUBTILES == pytest.approx(count, rel=0.02)
        assert count <= most
    assert set(estimate.counted()) == {"blend_forward", "blend_backward"}


@pytest.mark.slow
def test_instructions_a_pair_are_those_of_the_compiler() -> None:
    from make_images import CompilerMissing, compiled, compiler
    from pair_instructions import DisassemblerMissing, a_pair, instructions_of

    try:
        kernels = instructions_of(compiled(compiler(), "sm_120"))
    except (CompilerMissing, DisassemblerMissing) as problem:
        pytest.skip(str(problem))
    for kernel, (always, a_subtile) in PAIR_INSTRUCTIONS.items():
        assert always + a_subtile * SUBTILES == pytest.approx(a_pair(*kernels[kernel]), rel=0.02)


def test_shares_are_work_over_time_and_limit() -> None:
    counts = Counts(1000, 500, 500, 2000, 160, 100)
    times = kernel_times({"update": 0.5, "scan_top": 0.1, "blend_forward": 2.0}, counts, Limits(10, 1.0, 100))
    assert [kernel.name for kernel in times] == ["blend_forward", "update", "scan_top"]
    forward, update, top = times
    works = work_of(counts)
    assert update.bandwidth_share == pytest.approx(works["update"].bytes / (0.5e-3 * 100e9))
    assert forward.issue_share == pytest.approx(works["blend_forward"].instructions / (2e-3 * 40e9))
    assert top.bandwidth_share is None and top.issue_share is None
    silent = kernel_times({"update": 0.5}, counts, Limits(0, 0.0, 0.0))  # a driver that tells nothing
    assert silent[0].bandwidth_share is None


def test_more_of_anything_is_more_work() -> None:
    few, many = (work_of(Counts(n, n / 2, n / 2, 2 * n, 320, 200)) for n in (1e5, 2e5))
    assert few.keys() == many.keys()
    assert all(many[name].bytes >= few[name].bytes > 0 for name in few)
    assert many["blend_backward"].instructions == pytest.approx(2 * few["blend_backward"].instructions)


def test_growth_takes_no_more_of_the_steps_between_than_the_design_says() -> None:
    assert all(0 < estimate.growth_share(c) <= estimate.MOST_OF_GROWTH for c in estimate.SCENES.values())
