"""The memory that a number of Gaussians takes: what is told, and what the system saw of fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splatmeter.densify import prune
from splatmeter.events import Densified, Finished, Progress, Started, from_line
from splatmeter.ops import LOG_SCALES, OPACITY_LOGITS, Table, empty_table
from splatmeter.scene.scene import load_scene
from splatmeter.train.config import from_json
from splatmeter.train.memory_prediction import Prediction, predict

native = pytest.importorskip(
    "splatmeter.backends.native", reason="the native engine is not built: no memory was measured"
)
pytest.importorskip("splatmeter._native", reason="the native engine is not built: no memory was measured")
LINUX = sys.platform.startswith("linux")

MOVING = """
import sys
import numpy as np
from splatmeter import process_memory
from splatmeter.backend import GrowthRule
from splatmeter.backends.native import native_backend
from splatmeter.ops import ABSOLUTE_SUM, GRADIENT_SUM, LOG_SCALES, MEANS, ROTATIONS, VISITS, WIDTHS
from splatmeter.ops import empty_table

strategy, rows = sys.argv[1], int(sys.argv[2])
process_memory.give_large_arrays_back_at_once()
table, draw = empty_table(rows), np.random.default_rng(0)
for name in WIDTHS:
    getattr(table, name)[:] = 1e-3
table.geometry[:, MEANS] = draw.normal(size=(rows, 3))
table.geometry[:, ROTATIONS.start] = 1
table.geometry[:, LOG_SCALES] = draw.normal(-4, 0.5, size=(rows, 3))
table.geometry[:, VISITS] = 1
table.geometry[:, GRADIENT_SUM] = table.geometry[:, ABSOLUTE_SUM] = draw.random(rows)
model = native_backend(1).upload(table)
del table
before = process_memory.resident_bytes() - 736 * rows
process_memory.reset_peak()
rule = GrowthRule(strategy, 0, 600, 0.9, 0.01, 0.005, float("inf"), rows * 21 // 20)
change = model.grow(rule)
assert change.added > 0.04 * rows, change
print((process_memory.peak_bytes() - before) / model.count)
"""


def printed(script: str, *words: str) -> str:
    said = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout


@pytest.mark.skipif(not LINUX, reason="only Linux lets a process reset its high-water mark")
@pytest.mark.parametrize("strategy", ["gof", "cut", "mcmc"])
def test_moving_rows_takes_no_more_than_is_told_of_a_gaussian(strategy: str) -> None:
    taken = float(printed(MOVING, strategy, "150000"))
    assert 736 < taken <= native.BYTES_PER_GAUSSIAN


def test_what_a_count_takes_grows_with_it_and_is_never_below_the_start() -> None:
    told = Prediction(100, 5000, 100, 5000, 0, 10**9, 10, early_bytes=2000)
    assert [told.bytes_with(count) for count in (0, 100, 300, 301)] == [5000, 5000, 5000, 5010]
    assert [told.bytes_later(count) for count in (100, 301)] == [3000, 5010]


def test_opacities_are_reset_alike_in_blocks_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def reset(rows: int) -> Table:
        monkeypatch.setattr(prune, "BLOCK_ROWS", rows)
        table, draw = empty_table(23), np.random.default_rng(1)
        table.geometry[:, OPACITY_LOGITS] = draw.normal(0, 3, 23)
        table.geometry[:, LOG_SCALES] = draw.normal(-3, 1, (23, 3))
        table.geometry_moments[:] = 1
        prune.reset_opacities(table)
        return table

    whole, parts = reset(1000), reset(7)
    assert np.array_equal(whole.geometry, parts.geometry) and whole.geometry[:, OPACITY_LOGITS].max() < -4
    assert np.array_equal(whole.geometry_moments, parts.geometry_moments)


def test_a_limit_allows_as_many_gaussians_whatever_the_number_of_threads() -> None:
    """Else a run that goes on with other threads would be another one."""
    one, many = (native.native_backend(threads).memory for threads in (1, 8))
    assert one.predicted(1000, 1000, 1000) == many.predicted(1000, 1000, 1000)


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="only Linux lets a process reset its high-water mark")
@pytest.mark.parametrize(("strategy", "threads"), [("gof", 1), ("3dgs", 2), ("cut", 2), ("mcmc", 1)])
def test_a_run_needs_at_most_what_its_count_is_told_to_take(
    tmp_path: Path, strategy: str, threads: int
) -> None:
    """Evaluation and saving included; Gaussians that hardly learned are larger than any later ones."""
    from splatmeter.scene.demo import make_demo_scene

    scene = make_demo_scene(tmp_path / "garden", 0, quick=True)
    lengths = ["--iterations", "240", "--test-iterations", "240", "--densify-from-iter", "60"]
    growth = ["--densification-interval", "20", "--densify-grad-threshold", "0.00003"]
    growth += ["--densification", strategy, "--max-gaussians", "60000", "--threads", str(threads)]
    words = ["train", "-s", str(scene), "-m", str(tmp_path / "o"), "--eval", "--quiet", *lengths, *growth]
    printed("import sys; from splatmeter.cli.main import main; sys.exit(main(sys.argv[1:]))", *words)
    events = [from_line(line) for line in (tmp_path / "o" / "events.jsonl").read_text().splitlines()]
    started, finished = events[0], events[-1]
    assert isinstance(started, Started) and isinstance(finished, Finished)
    config = from_json(json.loads(json.dumps(started.config)))
    engine = native.native_backend(threads).memory
    told = predict(config, load_scene(config.scene_options()), engine, started.gaussians)
    most = max(event.gaussians for event in events if isinstance(event, Densified))
    peak = max(finished.peak_memory_bytes.values())
    assert most > 5 * started.gaussians or strategy == "mcmc"
    assert peak <= told.bytes_with(most) <= 1.25 * peak  # the process itself is most of so small a run
    assert all(event.forecast_low_bytes <= peak for event in events if isinstance(event, Progress))
