"""--memory: one limit for Gaussians and photos, and what a run says about the memory it will need."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Make, of, run

from splatmeter.backend import Backend
from splatmeter.errors import CardUnavailable, NotEnoughMemory, UsageError
from splatmeter.events import Densified, Evaluated, Progress, Started, Warned
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene.scene import load_scene
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.memory_cap import MemoryCap
from splatmeter.train.memory_forecast import Forecast, Range, expected_gaussians
from splatmeter.train.memory_prediction import predict

PHOTO = 3 * 32 * 32


def limit_for(make: Make, backend: Backend, gaussians: int, **settings: Any) -> str:
    """The --memory with which exactly so many Gaussians fit and no photo is kept."""
    config = make(memory="1T", **settings)
    cap = predict(config, load_scene(config.scene_options()), backend.memory, 120).cap
    assert cap is not None
    return str(cap.besides + gaussians * cap.per_gaussian)


def test_gaussians_stop_at_the_limit_and_that_is_said_once(make: Make, backend: Backend) -> None:
    limit = limit_for(make, backend, 150)
    events = run(make(memory=limit, max_gaussians=None), backend)
    counts = [event.gaussians for event in of(Densified, events)]
    assert max(counts) == 150 and counts.count(150) > 1
    said = [event.message for event in of(Warned, events) if "is full" in event.message]
    assert len(said) == 1 and "150 Gaussians" in said[0]


def test_a_run_that_filled_its_limit_goes_on_where_it_was_stopped(make: Make, backend: Backend) -> None:
    """A checkpoint tells how many it holds: by its size alone there would be too many to fit."""
    settings: dict[str, Any] = {"memory": limit_for(make, backend, 150), "max_gaussians": None}
    steps = iter(range(1, 100))
    stopped = run(make(**settings), backend, interrupted=lambda: next(steps) == 32)
    assert stopped[-1].step == 32 and of(Densified, stopped)[-1].gaussians == 150
    assert run(make(resume=True, **settings), backend)[-1].step == 40


@pytest.mark.parametrize("shape", [[10**9, 16], [-1, 16], [3], "x", None])
def test_a_checkpoint_whose_header_promises_nonsense_tells_no_count(tmp_path: Path, shape: Any) -> None:
    header = json.dumps({"geometry": {"shape": shape}}).encode()
    path = tmp_path / "chkpnt7.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(640))
    assert container.rows_of(path, "geometry") is None
    assert container.rows_of(tmp_path / "none", "geometry") is None


def test_the_smaller_of_limit_and_budget_counts(make: Make, backend: Backend) -> None:
    events = run(make(memory=limit_for(make, backend, 150), max_gaussians=130), backend)
    assert max(event.gaussians for event in of(Densified, events)) == 130
    assert not any("is full" in event.message for event in of(Warned, events))


def test_a_limit_below_the_start_is_refused_with_the_number_needed(make: Make, backend: Backend) -> None:
    config = make(memory=limit_for(make, backend, 119))
    with pytest.raises(NotEnoughMemory, match=r"with 120 Gaussians, needs \d+\.\d MiB. Allow that much"):
        run(config, backend)
    assert config.model_path is not None and not config.model_path.exists()


@pytest.mark.parametrize("text", ["lots", "4X", "-1G", ""])
def test_what_is_no_size_is_told(make: Make, text: str) -> None:
    with pytest.raises(UsageError, match="--memory"):
        make(memory=text)


def test_a_card_has_no_such_limit(make: Make, backend: Backend) -> None:
    card = dataclasses.replace(backend.memory, of_the_host=False)
    config = make(memory="4G")
    with pytest.raises(CardUnavailable, match="use --max-gaussians, or --device cpu"):
        predict(config, load_scene(config.scene_options()), card, 120)


def test_photos_take_what_gaussians_leave_and_give_way() -> None:
    cap = MemoryCap(limit=10_000, besides=1000, per_gaussian=10)
    assert cap.most_gaussians == 900
    assert [cap.photo_bytes(n) for n in (100, 400, 450, 900)] == [7000, 1000, 0, 0]


def test_a_cache_that_gets_less_lets_photos_go(make: Make) -> None:
    views = load_scene(make().scene_options()).train
    with PhotoCache(4 * PHOTO) as photos:
        for view in views:
            photos.load(view.photo)
        assert photos.kept_bytes == 4 * PHOTO
        photos.limit(2 * PHOTO)
        assert photos.kept_bytes == 2 * PHOTO
        photos.limit(9 * PHOTO)
        for view in views:
            photos.load(view.photo)
        assert photos.kept_bytes == 6 * PHOTO


def test_a_limit_changes_no_bit_while_it_does_not_bind(make: Make, backend: Backend) -> None:
    counts = []
    for memory in (None, "8G"):
        events = run(make(f"run{memory}", memory=memory, max_gaussians=None), backend)
        counts.append([(e.loss, e.gaussians) for e in of(Progress, events)])
    assert counts[0] == counts[1]


def test_the_start_tells_a_range_and_later_steps_a_forecast(make: Make, backend: Backend) -> None:
    events = run(make(max_gaussians=None, test_iterations=(40,)), backend)
    (started,) = of(Started, events)
    assert 0 < started.memory["low"] <= started.memory["high"]
    reports = of(Progress, events)
    densified = of(Densified, events)[0].step
    assert {event.step for event in reports if event.forecast_bytes} == {
        event.step for event in reports if event.step >= 40 / 5 and event.step > densified
    }
    assert all(event.forecast_low_bytes <= event.forecast_bytes for event in reports)
    parts = reports[-1].memory_parts
    assert parts["photos"] == 6 * PHOTO and 0 < parts["buffers"] < parts["peak"]
    assert of(Evaluated, events)


def seven_thousand(**settings: Any) -> TrainConfig:
    return TrainConfig(source_path=Path("x"), iterations=7000, **settings)


def forecast_of(config: TrainConfig, counts: dict[int, int], budget: int | None = None) -> Forecast:
    """One whose memory is ten bytes a Gaussian, of which nine are certain."""
    forecast = Forecast(config, lambda gaussians: 10 * gaussians, 0.9, budget)
    for step, count in counts.items():
        forecast.note(step, count)
    return forecast


def told(forecast: Forecast) -> Range:
    found = forecast.gaussians()
    assert found is not None
    return found


def test_growth_that_slows_down_as_the_root_is_forecast_exactly() -> None:
    counts = {step: round(5000 * math.sqrt(step)) for step in range(1500, 2900, 100)}
    forecast = forecast_of(seven_thousand(), counts)
    assert told(forecast).high == pytest.approx(5000 * math.sqrt(6900), rel=1e-3)
    assert counts[2800] < told(forecast).low < told(forecast).high


def test_nothing_is_told_before_a_fifth_of_the_steps_nor_below_the_peak_so_far() -> None:
    forecast = forecast_of(seven_thousand(), {step: 50 * step for step in range(600, 1500, 100)})
    counts = told(forecast)
    assert forecast.peak_bytes(1399, 10**9, 70_000) is None
    assert forecast.peak_bytes(1400, 1000, 70_000) == (round(9 * counts.low), 10 * counts.high)
    assert forecast.peak_bytes(1400, 10**9, 70_000) == (10**9, 10**9)
    assert Forecast(seven_thousand(), int, 0.9).peak_bytes(1400, 10**9, 5) is None


def test_a_burst_gets_a_wide_range_and_a_quick_fall_after_it_narrows_it() -> None:
    """Counts of the built-in scene, which came to 495,000."""
    burst = {1000: 35_267, 1100: 52_671, 1200: 76_094, 1300: 105_828, 1400: 138_030}
    wide = told(forecast_of(seven_thousand(), burst))
    assert wide.low < 495_000 < wide.high and wide.high > 4 * wide.low
    later = {2100: 308_944, 2200: 323_488, 2300: 336_540, 2400: 348_091, 2500: 357_989, 2600: 367_597}
    narrow = told(forecast_of(seven_thousand(), later | {2700: 376_604, 2800: 384_454}))
    assert narrow.low < 495_000 < narrow.high < 1.3 * narrow.low


def test_a_burst_that_still_speeds_up_is_not_taken_for_a_straight_line() -> None:
    doubling = {step: 1000 * 2 ** (step // 100) for step in range(600, 1100, 100)}
    steady = {step: 512_000 * (step - 500) // 500 for step in range(600, 1100, 100)}
    assert doubling[1000] == 2 * steady[1000]
    high = told(forecast_of(seven_thousand(), doubling)).high
    assert high > doubling[1000] + 2 * 59 * (doubling[1000] - doubling[900])


def test_larger_photos_that_are_still_to_come_raise_the_upper_end() -> None:
    counts = {step: 100 * step for step in range(600, 1300, 100)}
    plain, coarse = (told(forecast_of(seven_thousand(progressive=p), counts)) for p in ("none", "2:1500"))
    assert coarse.high > plain.high and coarse.low == plain.low
    shown = {step: 100 * step for step in range(2600, 3300, 100)}
    plain, coarse = (told(forecast_of(seven_thousand(progressive=p), shown)) for p in ("none", "2:1500"))
    assert coarse == plain


def test_a_lower_threshold_raises_what_is_expected_at_the_start(make: Make) -> None:
    scene = load_scene(make().scene_options())
    configs = (seven_thousand(densify_grad_threshold=threshold) for threshold in (0.0002, 0.00012))
    usual, eager = (expected_gaussians(config, scene, 100) for config in configs)
    assert eager[0] > usual[0] and eager[1] > 1.5 * usual[1]


def test_a_pause_of_growth_after_a_reset_does_not_lower_the_forecast_at_once() -> None:
    forecast = forecast_of(seven_thousand(), {s: 100 * s for s in range(2400, 3100, 100)})
    before = told(forecast).high
    forecast.note(3100, 299_000)
    assert told(forecast).high >= before


def test_the_one_densification_that_a_reset_spoils_tells_nothing_once_the_next_is_there() -> None:
    """Counts of chair_400, which came to 174,364."""
    counts = {2500: 86_403, 2600: 90_272, 2700: 94_236, 2800: 98_126, 2900: 101_609, 3000: 105_062}
    forecast = forecast_of(seven_thousand(), counts)
    for step, count in {3100: 105_145, 3200: 108_075, 3300: 111_072, 3400: 114_079, 3500: 116_998}.items():
        forecast.note(step, count)
        assert 174_364 < told(forecast).high < 1.3 * 174_364


def test_a_budget_is_never_exceeded_in_a_forecast_and_mcmc_comes_to_it() -> None:
    steps = {s: 100 * s for s in range(2400, 3100, 100)}
    assert told(forecast_of(seven_thousand(), steps, 310_000)).high == 310_000
    relocating = seven_thousand(densification="mcmc", max_gaussians=310_000)
    assert told(forecast_of(relocating, {600: 105_000}, 310_000)) == (310_000, 310_000)
    assert told(forecast_of(relocating, {6800: 105_000}, 310_000)) == (110_250, 110_250)


def test_after_the_last_growth_only_what_a_count_needs_is_left_to_come() -> None:
    ended = forecast_of(seven_thousand(densify_until_iter=1500), {1400: 700})
    assert ended.peak_bytes(1400, 5000, 700) == (6300, 7000)
    assert ended.peak_bytes(1401, 5000, 700) == (5000, 7000)
    assert ended.peak_bytes(1401, 8000, 700) == (8000, 8000)


@pytest.mark.parametrize("counts", [{600: 0}, {600: 5, 700: 0}, {600: 5, 700: 5, 800: 5}, {600: 9, 700: 3}])
def test_sets_that_vanish_shrink_or_stand_still_have_a_forecast(counts: dict[int, int]) -> None:
    forecast = Forecast(seven_thousand(), int, 0.9)
    forecast.begin(0, 7)
    for step, count in counts.items():
        forecast.note(step, count)
        low, high = told(forecast)
        assert count <= low <= high


def test_a_resumed_run_does_not_take_half_an_interval_for_a_whole_one() -> None:
    resumed = Forecast(seven_thousand(), int, 0.9)
    resumed.begin(2790, 100_000)
    resumed.note(2800, 102_000)
    assert told(resumed).high < 102_000 + 5 * 2000 * 41


def test_budgets_bound_the_range(make: Make) -> None:
    scene = load_scene(make().scene_options())
    fixed = make(densification="none", max_gaussians=None)
    assert expected_gaussians(fixed, scene, 120) == (120, 120)
    assert max(expected_gaussians(make(max_gaussians=130, iterations=7000), scene, 120)) <= 130


@pytest.mark.slow
def test_the_limit_holds_for_the_memory_that_the_system_sees(tmp_path: Path) -> None:
    """Evaluation and saving included, with a limit that binds."""
    pytest.importorskip("splatmeter._native", reason="the native engine is not built: no memory was measured")
    from splatmeter.scene.demo import make_demo_scene

    scene = make_demo_scene(tmp_path / "garden", 0, quick=True)
    limit = 110 * 2**20
    script = "import sys; from splatmeter.cli.main import main; sys.exit(main(sys.argv[1:]))"
    options = ["--iterations", "1600", "--test-iterations", "800", "1600", "--memory", str(limit), "--quiet"]
    words = ["train", "-s", str(scene), "-m", str(tmp_path / "o"), "--eval", *options]
    subprocess.run([sys.executable, "-c", script, *words], check=True)
    events = [json.loads(line) for line in (tmp_path / "o" / "events.jsonl").read_text().splitlines()]
    assert any("is full" in event.get("message", "") for event in events)
    # Stages reset the system's mark, so that the one of the whole process would tell of the last stage only.
    assert max(events[-1]["peak_memory_bytes"].values()) <= limit


def test_a_card_cannot_follow_a_limit_so_auto_takes_the_cpu() -> None:
    assert TrainConfig().only_on_cpu == ""
    assert TrainConfig(memory="4G").only_on_cpu == "--memory 4G"
    assert TrainConfig(memory="4G", exposure="affine").only_on_cpu == "--exposure affine and --memory 4G"
