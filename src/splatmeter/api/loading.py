"""Models from files and folders."""

from __future__ import annotations

import warnings
from pathlib import Path

from splatmeter.api.lazy_engine import engine_of
from splatmeter.api.model import Model
from splatmeter.api.passed_options import folder_given, in_python
from splatmeter.models import drawing, opening
from splatmeter.train.config import TrainConfig


def load_model(
    path: str | Path,
    *,
    iteration: int = -1,
    kernel_size: float | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> Model:
    """Opens a model: a run's folder, a checkpoint, or a file (PLY, SPZ, SOG, .splat, glTF).

    Of a folder `iteration` says which of its saved models, by default the latest. `kernel_size` says how the
    model was drawn in training where the file does not (a warning tells); 0.1 is Mip-Splatting's. `device`
    is where it is rendered, as for `train`.

    >>> load_model("output/model")
    Model(1500 Gaussians, harmonics of degree 3, step 100)
    """
    file = folder_given(path, "path")
    engine = engine_of(threads, device)
    notes: list[str] = []
    with in_python():
        opened = opening.open_model(file, iteration, engine)
        config = opened.config or TrainConfig(sh_degree=opened.model.sh_degree)
        settings = drawing.raster_settings(opened, config, kernel_size, notes.append)
        table = opening.finite_table(opened, notes.append)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return Model._of(table, settings, engine, opened.step)
