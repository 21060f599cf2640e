"""What every reader needs: trust in nothing that a file promises, and one sentence for what is wrong."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.ply import Model
from splatmeter.ops import RasterSettings, Table

FEW = 1_000_000
"""So many Gaussians (256 MB in memory) a compressed file may promise whatever its size."""

FAINTEST = 1e-6
"""Opacities of 0 and 1 have no logit; they are read as this far from it, which no pixel can show."""


def check_count(count: int, stored_bytes: int, path: Path) -> None:
    """Before a table is made. Streams of zeros shrink a thousandfold; a model needs some bytes a Gaussian."""
    if count > FEW + stored_bytes:
        raise InputError(
            f"{path} promises {count} Gaussians in {stored_bytes} bytes, which no real model does; "
            "it is damaged, or made to do damage."
        )


@contextmanager
def garbled(path: Path, form: str) -> Iterator[None]:
    """Whatever a damaged file makes parsers stumble over becomes one sentence."""
    try:
        with np.errstate(all="ignore"):  # what is no number is counted afterwards
            yield
    except (
        LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError, EOFError,
        SyntaxError, struct.error, zlib.error, zipfile.BadZipFile, OSError,
    ) as problem:  # fmt: skip
        reason = " ".join(str(problem).split())[:120] or type(problem).__name__
        raise InputError(
            f"{path} cannot be read as {form} ({reason}); it is cut off or damaged. Copy or export it again."
        ) from problem


def parsed_json(content: bytes) -> dict[str, Any]:
    found = json.loads(content.decode("utf-8"))
    if not isinstance(found, dict):
        raise ValueError("its JSON is not an object")
    return found


def logits(opacities: NDArray[np.floating], nearest: float = FAINTEST) -> NDArray[np.floating]:
    return gaussians.logit(np.clip(opacities, nearest, 1 - nearest))


def finished(
    table: Table,
    degree: int,
    form: str,
    told: RasterSettings | None = None,
    comments: tuple[str, ...] = (),
) -> Model:
    broken = int(table.count - np.count_nonzero(gaussians.finite_rows(table)))
    return Model(table, degree, False, comments, broken, told, form)
