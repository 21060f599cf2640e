"""The parts that all benchmarks rest on: intervals, the quiet rule, result pages, workloads."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("splatmeter._native", reason="benchmarks were not checked: the engine is not built")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import disturb_exposure
import measuring
import turns
import workloads


def test_a_ratio_of_equal_arms_holds_one_inside_its_interval() -> None:
    ratio, low, high = measuring.interval([0.01, -0.01, 0.02, -0.02])
    assert ratio == pytest.approx(1) and low < 1 < high
    assert measuring.interval([0.5])[1:] == [0.0, math.inf]
    assert math.isnan(measuring.interval([])[0])


def test_rounds_with_foreign_load_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.2, 0.0, 0.06, 0.01])
    monkeypatch.setattr(measuring, "ANYWAY", False)
    monkeypatch.setattr(measuring, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(measuring.ForeignCpu, "share", lambda self: next(shares))
    met: dict[str, list[int]] = {"a": [], "b": []}
    arms = [measuring.Arm(name, met[name].append) for name in met]
    found = measuring.interleave(arms, rounds=2, views=3)
    assert (len(found.seconds), found.refused, found.noisy) == (2, 2, 0)
    assert met["a"] == met["b"] and sorted(set(met["a"])) == list(range(12))


def test_a_machine_that_is_never_quiet_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "ANYWAY", False)
    monkeypatch.setattr(measuring, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(measuring.ForeignCpu, "share", lambda self: 1.0)
    found = measuring.interleave([measuring.Arm("a", lambda _: None)], rounds=3, views=1)
    assert not found.seconds and found.refused == 12
    assert measuring.text(found.ratio("a", "a")) == "not measured"


def test_notes_of_people_survive_new_results_and_json_stays_strict(tmp_path: Path) -> None:
    measuring.write_results("x", {"ratio": [1.0, 0.0, math.inf]}, ["# first"], tmp_path)
    page = tmp_path / "x.md"
    page.write_text(page.read_text() + "\nsaid by a person\n")
    measuring.write_results("x", [1], ["# second"], tmp_path)
    assert "# second" in page.read_text() and "# first" not in page.read_text()
    assert page.read_text().count("said by a person") == 1
    assert json.loads((tmp_path / "x.json").read_text())["results"] == [1]
    assert measuring.finite({"a": (math.inf, 1)}) == {"a": [None, 1]}


@pytest.mark.parametrize("count", [50, 100, 250])
def test_a_garden_told_with_other_numbers_is_the_same_twice_and_covers_as_much(count: int) -> None:
    random = np.random.default_rng(0)
    arrays = {
        "means": random.normal(size=(100, 3)).astype(np.float32),
        "scales": np.full((100, 3), -2, np.float32),
        "ops": np.arange(100, dtype=np.float32),
    }
    told, again = (workloads.numbering(arrays, count) for _ in range(2))
    assert all((told[key] == again[key]).all() for key in arrays)
    assert len(np.unique(told["means"], axis=0)) == count
    volume = np.exp(told["scales"].sum(axis=1)).sum()
    assert volume == pytest.approx(100 * math.exp(-6), rel=1e-4)


def test_evaluations_carry_the_clock_of_their_step(tmp_path: Path) -> None:
    lines = [
        {"event": "progress", "step": 10, "clock_seconds": 1.5, "gaussians": 7},
        {
            "event": "evaluated",
            "step": 10,
            "split": "test",
            "metrics": {"psnr": 20.0},
            "per_view": {"a": {"psnr": 19.0}, "b": {"psnr": 21.0}},
        },
        {"event": "evaluated", "step": 10, "split": "train", "metrics": {"psnr": 30.0}, "per_view": {}},
    ]
    (tmp_path / "e").write_text("\n".join(map(json.dumps, lines)))
    expected = {"seconds": 1.5, "gaussians": 7, "worst": 19.0, "psnr": 20.0}
    assert turns.evaluations(tmp_path / "e") == {10: expected}


@pytest.mark.skipif(not workloads.GARDEN.exists(), reason="the garden scene is not on this machine")
def test_an_iteration_of_the_garden_workload_teaches_something() -> None:
    work = workloads.garden()
    assert len(work.arrays["means"]) % 8 == 0 and len(work.cameras) == len(work.photos) == 161
    work.cameras, work.photos = work.cameras[:1], work.photos[:1]
    ours = workloads.Ours(work, 2)
    before = ours.model.download(slice(None)).geometry[:, :11]
    ours.iterate(0)
    assert set(ours.passes()) >= set(workloads.YARDSTICK_PASSES.values())
    after = ours.model.download(slice(None)).geometry
    assert np.isfinite(after).all() and (after[:, :11] != before).any()


def test_disturbed_photos_have_gains_of_their_own_and_the_same_ones_again(tmp_path: Path) -> None:
    gains = [disturb_exposure.gains_of(f"{number}.png", 1) for number in range(200)]
    assert all((one == disturb_exposure.gains_of(f"{k}.png", 1)).all() for k, one in enumerate(gains))
    green = [one[1] for one in gains]
    assert 0.7 <= min(green) < 0.75 and 1.3 < max(green) <= 1.4
    grey = np.full((4, 5, 3), 150, np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    disturb_exposure.disturb(tmp_path / "grey.png", tmp_path / "other.png", np.array([0.5, 1.0, 2.0]))
    assert np.asarray(Image.open(tmp_path / "other.png"))[0, 0].tolist() == [75, 150, 255]
