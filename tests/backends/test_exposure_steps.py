"""Exposures of photos: one call a step against its parts, any number of threads, what moves, what stays."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from test_models import composed, fresh, order, rule, stored

from splatmeter.backend import Backend, Exposures, ExposureStep, Model, TrainStep
from splatmeter.backends import exposure_step
from splatmeter.ops import RasterSettings

native = pytest.importorskip("splatmeter.backends.native", reason="the native engine is not built")

PHOTOS = 5


def exposures() -> Exposures:
    shape = (PHOTOS, 3, 4)
    identity = np.broadcast_to(np.eye(3, 4), shape).copy()
    return Exposures(identity, np.zeros(shape), np.zeros(shape), np.zeros(PHOTOS))


def exposed(number: int, **changes: Any) -> TrainStep:
    step = ExposureStep(number % PHOTOS, 0.02 * 0.99**number, 0.01)
    return order(number, **({"exposure": step} | changes))


def kept(model: Model) -> dict[str, bytes]:
    found = model.exposures()
    assert found is not None
    return {name: array.tobytes() for name, array in dataclasses.asdict(found).items()}


def story(backend: Backend, model: Any) -> Any:
    """Steps with and without, steps that only observe, and growth between them."""
    model.expose(exposures())
    for number in range(1, 31):
        step = order(number) if number % 7 == 0 else exposed(number, learns=number % 13 != 0)
        model.train_step(step).read()
        if number == 17:
            model.grow(rule("3dgs"))
    return model


def test_a_step_in_one_call_is_its_parts_to_the_last_bit() -> None:
    backend = native.native_backend(2)
    whole, parts = story(backend, backend.upload(fresh())), story(backend, composed(backend, fresh()))
    assert stored(whole) == stored(parts)
    assert kept(whole) == kept(parts)


@pytest.mark.parametrize("threads", [1, 3])
def test_exposures_have_the_same_bits_for_any_number_of_threads(threads: int) -> None:
    one, other = (
        story(backend, backend.upload(fresh())) for backend in map(native.native_backend, (2, threads))
    )
    assert stored(one) == stored(other)
    assert kept(one) == kept(other)


def test_photos_that_were_seen_move_and_the_mean_stays_the_identity() -> None:
    backend = native.native_backend(2)
    found = story(backend, backend.upload(fresh())).exposures()
    np.testing.assert_allclose(found.transforms.mean(axis=0), np.eye(3, 4), atol=1e-13)
    assert (np.abs(found.transforms - np.eye(3, 4)).max(axis=(1, 2)) > 1e-3).all()
    seen = [n for n in range(1, 31) if n % 7 and n % 13]
    assert found.visits.tolist() == [sum(n % PHOTOS == photo for n in seen) for photo in range(PHOTOS)]


def test_steps_without_exposure_have_the_bits_they_always_had() -> None:
    backend = native.native_backend(2)
    plain, ready = backend.upload(fresh()), backend.upload(fresh())
    ready.expose(exposures())
    for number in range(1, 10):
        for model in (plain, ready):
            model.train_step(order(number))
    assert stored(plain) == stored(ready)
    assert kept(ready) == {name: array.tobytes() for name, array in dataclasses.asdict(exposures()).items()}
    assert plain.exposures() is None


def test_a_loss_that_is_no_number_changes_no_exposure() -> None:
    backend = native.native_backend(2)
    for model in (backend.upload(fresh()), composed(backend, fresh())):
        model.expose(exposures())
        model.train_step(exposed(1))
        before = kept(model)
        hole = RasterSettings(background=(math.nan, 0.0, 0.0))
        model.train_step(exposed(2, settings=hole))
        model.train_step(exposed(3))
        assert kept(model) == before


def test_what_is_read_is_a_copy() -> None:
    model = native.native_backend(1).upload(fresh())
    model.expose(exposures())
    found = model.exposures()
    assert found is not None
    found.transforms[:] = 7
    assert model.exposures().transforms.max() == 1


def test_an_unknown_photo_is_refused() -> None:
    model = native.native_backend(1).upload(fresh())
    model.expose(exposures())
    with pytest.raises(ValueError, match="no exposure of that photo"):
        model.train_step(order(1, exposure=ExposureStep(PHOTOS, 0.01, 0.0)))


def test_the_exposure_of_a_single_photo_stays_what_it_is() -> None:
    """It is the scene's own: nothing tells the two apart."""
    one = Exposures(np.eye(3, 4)[None].copy(), np.zeros((1, 3, 4)), np.zeros((1, 3, 4)), np.zeros(1))
    for _ in range(20):
        exposure_step.learn(one, ExposureStep(0, 0.05, 0.01), np.full((3, 4), 0.3))
    np.testing.assert_allclose(one.transforms[0], np.eye(3, 4), atol=1e-14)


def test_learning_finds_the_exposures_of_photos_of_known_colours() -> None:
    """Gain and white balance by the gradient of an L1 loss, up to what all photos share."""
    generator = np.random.default_rng(4)
    grey, tint = generator.uniform(0.1, 0.9, (1, 400)), generator.normal(0, 0.08, (3, 400))
    colors = np.concatenate([grey + tint, np.ones((1, 400))])  # [4, pixels]
    gains = generator.uniform(0.75, 1.3, (8, 1)) * generator.uniform(0.9, 1.1, (8, 3))
    gains /= gains.mean(axis=0)
    found = Exposures(np.broadcast_to(np.eye(3, 4), (8, 3, 4)).copy(), *np.zeros((2, 8, 3, 4)), np.zeros(8))
    for visit in range(60):
        for photo in range(8):
            seen = gains[photo, :, None] * colors[:3]
            off = np.sign(found.transforms[photo] @ colors - seen)  # [3, pixels]
            step = ExposureStep(photo, 0.025 * 0.05 ** (visit / 60), 0.01)
            exposure_step.learn(found, step, off @ colors.T / (3 * 400))
    shown = np.einsum("pcd,dn->pcn", found.transforms, colors)
    error = np.abs(shown - gains[:, :, None] * colors[:3]).mean()
    assert error < 0.004, error
