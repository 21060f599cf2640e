"""Values and gradients on the card against the definition of right, as the CPU engine's are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from parity_scenes import SETTINGS, SPECIAL, camera, random_table, special
from twins import CardTwin

from splatmeter.ops import Pinhole, RasterSettings, Table

pytest.importorskip("torch", reason="torch is not installed: the card was not compared with the reference")
from agreement import assert_agrees

VIEW = camera(33, 17, seed=1)


class Drawing:
    """As much of a backend as agreement.look asks for."""

    def __init__(self, card: CardTwin) -> None:
        self.card = card

    def forward(self, table: Table, view: Pinhole, settings: RasterSettings) -> tuple[Any, None]:
        self.card.put(table)
        color, transmittance = self.card.forward(view, settings)
        return SimpleNamespace(color=color, transmittance=transmittance), None

    def backward(self, tape: None, weights: np.ndarray, extra: np.ndarray) -> Any:
        found = self.card.gradients(np.ascontiguousarray(weights, np.float32), extra)
        return SimpleNamespace(**vars(found), mean2d_absolute=found.absolute)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_agree_with_the_reference(card: CardTwin, name: str) -> None:
    assert_agrees(Drawing(card), random_table(), VIEW, SETTINGS[name])


@pytest.mark.parametrize("name", SPECIAL)
def test_awkward_gaussians_agree_with_the_reference(card: CardTwin, name: str) -> None:
    settings = RasterSettings(absolute_gradients=True, kernel_size=0.0 if name == "steep" else 0.1)
    assert_agrees(Drawing(card), special(name, VIEW), VIEW, settings)
