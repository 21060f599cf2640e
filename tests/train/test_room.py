"""Growth ends where memory does, before the system ends the process; photos go first, and it is said once."""

from __future__ import annotations

import dataclasses

import pytest
from running import Make, bits, of, run

from splatmeter.backend import Backend
from splatmeter.events import Densified, Finished, Started, Warned
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene.scene import load_scene
from splatmeter.train.assemble import predicted
from splatmeter.train.config import TrainConfig
from splatmeter.train.room import USABLE, Room

PLENTY = 2**40


def with_memory(backend: Backend, in_all: float) -> Backend:
    """A machine whose memory was plenty until the run began and is so much since, with the run's."""
    memory = dataclasses.replace(
        backend.memory, available=lambda: PLENTY, held=lambda: int(in_all - USABLE * PLENTY)
    )
    return dataclasses.replace(backend, memory=memory)


def room_on(backend: Backend, config: TrainConfig) -> Room:
    prediction = predicted(config, load_scene(config.scene_options()), backend)
    return Room(backend.memory, prediction, PhotoCache(0, 1, 1, backend.photo))


def with_room_for(gaussians: int, backend: Backend, config: TrainConfig) -> Backend:
    room = room_on(with_memory(backend, PLENTY), config)
    fit = room.gaussians()
    assert fit is not None
    return with_memory(backend, PLENTY - (fit - gaussians) * room.prediction.bytes_per_gaussian)


def test_gaussians_are_no_more_than_fit_and_the_run_comes_to_its_end(make: Make, backend: Backend) -> None:
    free = run(make("free"), with_memory(backend, PLENTY))
    start, grown = of(Started, free)[0].gaussians, max(event.gaussians for event in of(Densified, free))
    assert grown > start + 2
    room = start + (grown - start) // 2
    events = run(make("crowded"), with_room_for(room, backend, make("unused")))
    assert start < max(event.gaussians for event in of(Densified, events)) <= room
    assert of(Finished, events)[-1].reason == "completed"
    told = [str(event) for event in of(Warned, events) if "Memory is full" in str(event)]
    assert len(told) == 1 and "--blocks" in told[0]
    assert not any("Memory is full" in str(event) for event in of(Warned, free))


def test_where_there_is_room_no_bit_changes(make: Make, backend: Backend) -> None:
    configs = make("one"), make("two")
    run(configs[0], with_memory(backend, PLENTY))
    run(configs[1], backend)
    last = [config.model_path / "chkpnt40.safety.safetensors" for config in configs if config.model_path]
    assert bits(last[0]) == bits(last[1])


@pytest.mark.parametrize("of_the_host", [True, False])
def test_a_card_is_left_to_say_no_by_itself(make: Make, backend: Backend, of_the_host: bool) -> None:
    room = room_on(with_memory(backend, 0), make())
    room = dataclasses.replace(room, engine=dataclasses.replace(room.engine, of_the_host=of_the_host))
    assert room.budget(100, None) == (100 if of_the_host else None)
    assert (room.full(100) is not None) == of_the_host
    assert room.budget(100, 120) == (100 if of_the_host else 120)
