"""Joins blocks into one model: each contributes the Gaussians whose centres lie in its own cell.

Cells fill space and do not overlap: every place is told by exactly one block, the one whose photos look at
it. Margins and stand-ins, which only helped the block, fall away. The 3D filter is computed anew, because it
is about all training cameras of the scene and not only those of a block.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter import __version__
from splatmeter.backend import Backend
from splatmeter.blocks.pieces import Piece, Pieces
from splatmeter.blocks.plan_folder import JOINED
from splatmeter.blocks.runs import model_at
from splatmeter.errors import InputError, OutputError
from splatmeter.files.atomic import write_text
from splatmeter.gaussians import gaussians, ply
from splatmeter.ops import GEOMETRY_WIDTH, HARMONICS_WIDTH, MEANS, Table, empty_table
from splatmeter.scene.scene import Scene, fingerprint
from splatmeter.train.config import TrainConfig
from splatmeter.train.losses import Losses
from splatmeter.train.output_folder import OutputFolder
from splatmeter.train.state import TrainingState, view_sampler

WORK = ".joining"


def join(pieces: Pieces, scene: Scene, config: TrainConfig, backend: Backend) -> dict[str, Any]:
    """Into config.model_path, laid out like any trained model's; returns what joined.json says. Written last,
    it tells that everything else is whole."""
    out = config.model_path
    assert out is not None
    if fingerprint(scene) != pieces.division["scene"]:
        raise InputError(
            f"{scene.source} is not the scene that was divided: photos, cameras, points or the split differ. "
            "Pass that scene, with the options of then."
        )
    (out / JOINED).unlink(missing_ok=True)
    config = dataclasses.replace(config, iterations=pieces.step)
    with OutputFolder(dataclasses.replace(config, overwrite=True, resume=False)) as output:
        output.config = config
        with _working_folder(out) as work:
            table, kept = _gathered(pieces, work)
            model = backend.upload(table)
            if config.uses_filter_3d:
                model.refresh_filter([view.camera for view in scene.train])
            output.describe(scene)
            state = TrainingState(
                model, Losses(config.lambda_dssim), view_sampler(scene, config), step=pieces.step
            )
            saved = [{"path": event.path, "sha256": event.sha256} for event in output.save_model(state)]
            record = _record(pieces, kept, table.count, saved)
            write_text(out / JOINED, json.dumps(record, indent=1))
    return record


def is_joined(pieces: Pieces, out: Path) -> bool:
    """Whether the model in this folder is of these very runs, and whole."""
    try:
        record = json.loads((out / JOINED).read_text("utf-8"))
        models = {row["block"]: row["model"] for row in record["blocks"]}
        there = model_at(out, int(record["step"])) is not None
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return there and models == {piece.name: stamp(piece) for piece in pieces.pieces}


def stamp(piece: Piece) -> list[int]:
    """Equal as long as nobody wrote another model."""
    found = piece.run.model.stat()
    return [piece.run.step, found.st_size, found.st_mtime_ns]


def _gathered(pieces: Pieces, work: Path) -> tuple[Table, list[tuple[int, int]]]:
    """One table, and for each block how many Gaussians it has and how many are kept. The table lies in files
    that are mapped: joining needs the memory of one block, not of all."""
    counts: list[tuple[int, int]] = []
    with (work / "geometry").open("wb") as geometry, (work / "harmonics").open("wb") as harmonics:
        for piece in pieces.pieces:
            own, there = _own(piece, pieces)
            own.geometry.tofile(geometry)
            own.harmonics.tofile(harmonics)
            counts.append((there, own.count))
    total = sum(kept for _, kept in counts)
    if not total:
        raise InputError("No block has a Gaussian in its own cell: there is nothing to join.")
    nothing = empty_table(0, trainable=False)
    rows = Table(
        _mapped(work / "geometry", total, GEOMETRY_WIDTH),
        _mapped(work / "harmonics", total, HARMONICS_WIDTH),
        nothing.geometry_moments,
        nothing.harmonics_first,
        nothing.harmonics_second,
    )
    return rows, counts


def _own(piece: Piece, pieces: Pieces) -> tuple[Table, int]:
    model = ply.read_model(piece.run.model)
    if model.sh_degree != piece.config.sh_degree:
        raise InputError(
            f"{piece.run.model} has harmonics of degree {model.sh_degree}, but its run was trained with "
            f"{piece.config.sh_degree}: the file was changed since. Train the block anew."
        )
    table = gaussians.only_finite(model.table)
    rows = pieces.grid.numbers_of(table.geometry[:, MEANS]) == piece.number  # [N]
    own = dataclasses.replace(table, geometry=table.geometry[rows], harmonics=table.harmonics[rows])
    return own, model.table.count


def _mapped(path: Path, rows: int, width: int) -> Any:
    return np.asarray(np.memmap(path, np.float32, "r+", shape=(rows, width)))


@contextmanager
def _working_folder(out: Path) -> Iterator[Path]:
    """What a killed join left behind is no use: the next one begins anew."""
    work = out / WORK
    shutil.rmtree(work, ignore_errors=True)
    try:
        work.mkdir(parents=True)
        yield work
    except OSError as problem:
        raise OutputError(
            f"Blocks cannot be joined in {out} ({problem.strerror or problem}). Make room, and start again."
        ) from problem
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _record(
    pieces: Pieces, counts: list[tuple[int, int]], total: int, saved: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "splatmeter": __version__,
        "division": dict(pieces.division),
        "step": pieces.step,
        "gaussians": total,
        "saved": saved,
        "blocks": [
            {
                "block": piece.name,
                "run": str(piece.run.folder.absolute()),
                "model": stamp(piece),
                "steps": piece.run.step,
                "gaussians": there,
                "kept": kept,
            }
            for piece, (there, kept) in zip(pieces.pieces, counts, strict=True)
        ],
    }
