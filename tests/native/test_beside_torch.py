"""torch brings its own OpenMP threads into the process; the engine's pool must not mind them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from splatmeter.backends.native import native_kernels
from splatmeter.ops import Pinhole, RasterSettings, empty_table

pytest.importorskip("splatmeter._native", reason="the native module is not built: nothing ran beside torch")
torch = pytest.importorskip("torch", reason="torch is not installed: the engine was not run beside it")


def rendered_and_differentiated() -> list[np.ndarray]:
    random = np.random.default_rng(5)
    table = empty_table(400, trainable=False)
    table.geometry[:, :3] = random.normal((0, 0, 5), 1, (400, 3))
    table.geometry[:, 3:6] = random.normal(-2.5, 0.5, (400, 3))
    table.geometry[:, 6:11] = random.normal(0, 1, (400, 5))
    table.harmonics[:] = random.normal(0, 0.3, table.harmonics.shape)
    camera = Pinhole(np.eye(3), np.zeros(3), 90, 90, 48, 30, 97, 61)
    photo = random.integers(0, 255, (3, 61, 97), dtype=np.uint8)
    backend = native_kernels(threads=3)
    found: list[np.ndarray] = []
    for _ in range(3):
        rendering, tape = backend.forward(table, camera, RasterSettings())
        _, light = backend.image_loss(rendering.color, photo, 0.2)
        gradients = backend.backward(tape, light)
        found += [rendering.color.copy(), gradients.geometry, gradients.harmonics]
    return found


def test_the_engine_gives_the_same_bits_while_torch_computes() -> None:
    alone = rendered_and_differentiated()
    stop, torch_failed = threading.Event(), []
    before = torch.get_num_threads()

    def multiply() -> None:
        try:
            a = torch.arange(200 * 200, dtype=torch.float32).reshape(200, 200) % 7
            expected = a @ a
            while not stop.is_set():
                if not torch.equal(a @ a, expected):
                    torch_failed.append("a product changed")
                    return
        except Exception as problem:
            torch_failed.append(str(problem))

    torch.set_num_threads(3)
    beside = threading.Thread(target=multiply)
    beside.start()
    try:
        together = rendered_and_differentiated()
    finally:
        stop.set()
        beside.join()
        torch.set_num_threads(before)
    assert not torch_failed
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(np.abs(array).max() > 0 for array in alone)
