"""Whole runs on the tiny scene, and what to look at afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from splatmeter.events import Event
from splatmeter.ops import Backend
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.loop import train

Make = Callable[..., TrainConfig]


def run(config: TrainConfig, backend: Backend, **options: Any) -> list[Event]:
    return list(train(config, backend, **options))


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def bits(path: Path, *without: str) -> dict[str, Any]:
    arrays, state = container.read(path)
    for name in ("config", "clock_seconds", *without):
        state.pop(name)
    return {name: array.tobytes() for name, array in arrays.items()} | {"state": state}
