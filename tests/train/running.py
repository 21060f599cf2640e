"""Whole runs on the tiny scene, and what to look at afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splatmeter.backend import Backend, Model, OptimizerState
from splatmeter.events import Event
from splatmeter.ops import Table
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.loop import train

Make = Callable[..., TrainConfig]


def run(config: TrainConfig, backend: Backend, **options: Any) -> list[Event]:
    return list(train(config, backend, **options))


class Around:
    """A model that hands everything on, but for what a subclass changes."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def with_models(backend: Backend, wrap: Callable[[Model], Any]) -> Backend:
    """The same backend; each model goes through `wrap` first."""

    def upload(table: Table, optimizer: OptimizerState = OptimizerState()) -> Any:  # noqa: B008
        return wrap(backend.upload(table, optimizer))

    return dataclasses.replace(backend, upload=upload)


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def bits(path: Path, *without: str) -> dict[str, Any]:
    arrays, state = container.read(path)
    for name in ("config", "clock_seconds", *without):
        state.pop(name)
    return {name: array.tobytes() for name, array in arrays.items()} | {"state": state}
