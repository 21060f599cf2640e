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
from splatmeter.train.config import TrainConfig
from splatmeter.train.forecast import Forecast, expected_gaussians
from splatmeter.train.memory_cap import MemoryCap
from splatmeter.train.prediction import predict

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
    assert all(bool(event.forecast_bytes) == (event.step >= 35) for event in reports)
    assert of(Evaluated, events)


def noted(forecast: Forecast, counts: dict[int, int]) -> Forecast:
    for step, count in counts.items():
        forecast.note(step, count)
    return forecast


def test_growth_that_slows_down_as_the_root_is_forecast_exactly() -> None:
    config = TrainConfig(source_path=Path("x"), iterations=7000)
    counts = {step: round(5000 * math.sqrt(step)) for step in range(600, 1500, 100)}
    forecast, end = noted(Forecast(config, 1200), counts), round(5000 * math.sqrt(7000))
    assert forecast.gaussians() == pytest.approx(end, rel=1e-3)
    assert forecast.peak_bytes(1399, 10**9, 10**8) == 0
    assert forecast.peak_bytes(1400, 10**9, 10**8) == round(1.05 * 10**9)  # the peak so far is more
    added = forecast.gaussians() - counts[1400]
    needed = 10**8 + 1200 * added + 650 * counts[1400]
    assert forecast.peak_bytes(1400, 10**8, 10**8) == round(1.05 * needed)


def test_nothing_is_told_during_a_burst_and_a_quick_fall_is_seen_after_it() -> None:
    config = TrainConfig(source_path=Path("x"), iterations=7000)
    burst = {1000: 40_000, 1100: 58_000, 1200: 78_000, 1300: 97_500, 1400: 118_000}
    forecast = noted(Forecast(config, 1200), burst)
    assert forecast.gaussians() == 0 and forecast.peak_bytes(1400, 10**9, 10**8) == 0
    falling = {s: round(300_000 * (1 - (1000 / s) ** 3)) for s in range(2000, 2700, 100)}
    assert falling[2600] < noted(Forecast(config, 1200), falling).gaussians() < 1.1 * 300_000


def test_a_pause_of_growth_after_a_reset_does_not_lower_the_forecast_at_once() -> None:
    config = TrainConfig(source_path=Path("x"), iterations=7000)
    forecast = noted(Forecast(config, 1200), {s: 100 * s for s in range(2400, 3100, 100)})
    before = forecast.gaussians()
    forecast.note(3100, 299_000)
    assert forecast.gaussians() >= before


def test_a_budget_is_never_exceeded_in_a_forecast() -> None:
    config = TrainConfig(source_path=Path("x"), iterations=7000)
    steps = {s: 100 * s for s in range(2400, 3100, 100)}
    assert noted(Forecast(config, 1200, 310_000), steps).gaussians() == 310_000


def test_a_forecast_knows_the_end_of_growth_and_waits_for_its_beginning() -> None:
    config = TrainConfig(source_path=Path("x"), iterations=1000)
    early = noted(Forecast(config, 1200), {600: 100, 700: 105, 800: 110})
    assert early.peak_bytes(800, 5000, 4000) == 0
    ended = TrainConfig(source_path=Path("x"), iterations=7000, densify_until_iter=1500)
    assert Forecast(ended, 1200).peak_bytes(1500, 5000, 4000) == 5250


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
    limit = 200 * 2**20
    script = (
        "import resource, sys; from splatmeter.cli.main import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024); sys.exit(code)"
    )
    options = ["--iterations", "1600", "--test-iterations", "800", "1600", "--memory", str(limit), "--quiet"]
    words = ["train", "-s", str(scene), "-m", str(tmp_path / "o"), "--eval", *options]
    ended = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in (tmp_path / "o" / "events.jsonl").read_text().splitlines()]
    assert any("is full" in event.get("message", "") for event in events)
    assert int(ended.stdout.split()[-1]) <= limit


def test_a_card_cannot_follow_a_limit_so_auto_takes_the_cpu() -> None:
    assert TrainConfig().only_on_cpu == ""
    assert TrainConfig(memory="4G").only_on_cpu == "--memory 4G"
    assert TrainConfig(memory="4G", exposure="affine").only_on_cpu == "--exposure affine and --memory 4G"
