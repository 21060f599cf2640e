"""A training whose Gaussians stay the same asks for no more memory after its first steps."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from splatmeter import process_memory
from splatmeter.backend import TrainStep
from splatmeter.ops import Pinhole, RasterSettings, Rates, Table, empty_table

pytest.importorskip("splatmeter._native", reason="memory of the engine was not checked: it is not built")

from splatmeter.backends.native import backend_of, native_engine, native_kernels
from splatmeter.backends.native.reuse import MOST_KEPT, ImagePool

WIDTH, HEIGHT = 320, 240
IMAGE_BYTES = 3 * WIDTH * HEIGHT * 4
CAMERAS = [
    Pinhole(np.eye(3), np.array([x, 0.0, 4.0]), 300, 300, 160, 120, WIDTH, HEIGHT) for x in (-0.3, 0.0, 0.3)
]


def some_table() -> Table:
    generator = np.random.default_rng(1)
    table = empty_table(3000)
    table.geometry[:, :3] = generator.normal(0, 0.8, (3000, 3))
    table.geometry[:, 3:6] = generator.normal(-3, 0.3, (3000, 3))
    table.geometry[:, 6:10] = generator.normal(size=(3000, 4))
    table.harmonics[:] = generator.normal(0, 0.2, (3000, 48))
    return table


class Training:
    def __init__(self) -> None:
        self.engine = native_engine(2)
        self.model = backend_of(self.engine).upload(some_table())
        self.photo = np.random.default_rng(2).integers(0, 255, (3, HEIGHT, WIDTH)).astype(np.uint8)

    def steps(self, count: int) -> None:
        rates = Rates(*[1e-6] * 6)
        for number in range(count):
            camera = CAMERAS[number % len(CAMERAS)]
            self.model.train_step(TrainStep(camera, self.photo, RasterSettings(), 0.2, rates)).read()

    @property
    def workspace_bytes(self) -> int:
        return self.engine.native.workspace_bytes


def test_two_hundred_steps_after_the_first_allocate_nothing_lasting() -> None:
    training = Training()
    training.steps(10)
    workspace, resident = training.workspace_bytes, process_memory.resident_bytes()
    training.steps(200)
    assert training.workspace_bytes == workspace
    assert process_memory.resident_bytes() - resident < IMAGE_BYTES


def test_no_step_allocates_an_image() -> None:
    training = Training()
    training.steps(10)
    gc.collect()
    tracemalloc.start()
    try:
        training.steps(3)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        training.steps(20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < IMAGE_BYTES / 10


MANY = """
import numpy as np
from splatmeter import process_memory
from splatmeter.backend import TrainStep
from splatmeter.backends.native import backend_of, native_engine
from splatmeter.ops import Pinhole, RasterSettings, Rates, empty_table

generator, count = np.random.default_rng(1), 60_000
table = empty_table(count)
table.geometry[:, :3] = generator.normal(0, 1.5, (count, 3))
table.geometry[:, 3:6], table.geometry[:, 6] = -3.3, 1
photo, rates = np.zeros((3, 480, 640), np.uint8), Rates(*[1e-6] * 6)
model = backend_of(native_engine({threads})).upload(table)
for number in range(12):  # every picture touches another number of tiles
    camera = Pinhole(np.eye(3), np.array([0.0, 0.0, 3.0 + 0.5 * number]), 500, 500, 320, 240, 640, 480)
    model.train_step(TrainStep(camera, photo, RasterSettings(), 0.2, rates)).read()
print(process_memory.peak_bytes())
"""


def peak_with(threads: int) -> int:
    words = [sys.executable, "-c", MANY.format(threads=threads)]
    return int(subprocess.run(words, check=True, capture_output=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from Linux")
def test_many_threads_take_little_more_memory_than_one() -> None:
    """Lists of 128 parts of the Gaussians once lay 2 MiB apart, and moved with every step."""
    one, many = (peak_with(threads) for threads in (1, 16))
    assert many - one < 50 * 2**20


def test_the_workspace_is_given_up_while_rows_move_and_comes_back() -> None:
    training = Training()
    training.steps(2)
    before = training.workspace_bytes
    training.model.prune(1e-9)
    assert training.workspace_bytes < before - 3000 * 100
    training.steps(3)
    assert training.workspace_bytes <= before


def test_a_tape_from_before_the_rows_moved_is_refused() -> None:
    kernels, table = native_kernels(2), some_table()
    _, tape = kernels.forward(table, CAMERAS[0], RasterSettings())
    rows = np.arange(table.count)
    kernels.rearrange(table, rows, np.zeros(len(rows), np.bool_))
    with pytest.raises(ValueError, match="stale"):
        kernels.backward(tape, np.zeros((3, HEIGHT, WIDTH), np.float32), None)


def test_an_image_somebody_holds_is_never_handed_out_again() -> None:
    pool = ImagePool()
    first = pool.empty((3, 4, 5))
    assert pool.empty((3, 4, 5)) is not first
    view = pool.empty((2, 2))[1:]
    view[:] = 7
    pool.empty((2, 2))[:] = 1
    assert (view == 7).all()
    address = first.ctypes.data
    del first
    assert pool.empty((3, 4, 5)).ctypes.data == address
    for side in range(2 * MOST_KEPT):
        assert pool.empty((side, side)).shape == (side, side)
