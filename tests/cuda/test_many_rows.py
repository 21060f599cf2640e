"""Enough rows that the loops over blocks of rows take more than one turn."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import camera, random_table
from standin import Standin
from twins import CardTwin, NativeTwin

from splatmeter.ops import RasterSettings

SETTINGS = RasterSettings(sh_degree=0)


@pytest.mark.slow
def test_half_a_million_rows_are_drawn_alike(card: CardTwin, cpu: NativeTwin, schedule: Standin) -> None:
    """More than 256 blocks of 2048 rows; most of them beside the image."""
    schedule.option("checks", 0)
    count = 256 * 2048 + 5000
    table = random_table(count, seed=9)
    table.geometry[:, :3] += np.random.default_rng(0).normal(size=(count, 3)) * 100
    table.geometry[:, 3:6] -= 2
    view = camera(64, 48, seed=3)
    images = []
    for engine in (card, cpu):
        engine.put(table)
        images.append(engine.forward(view, SETTINGS))
    assert card.card.visible_count == cpu.engine.visible_count > 100
    assert np.abs(images[0][0] - images[1][0]).max() <= 2e-5
