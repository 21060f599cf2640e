"""results.json and per_view.json as the original's metrics script writes them.

Unlike the original, entries of other methods and iterations that are already in the files stay.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError
from splatmeter.evaluate.exposure_fit import NONE
from splatmeter.evaluate.protocol import Report
from splatmeter.files.atomic import write_text

NAMES = {"SSIM": "ssim", "PSNR": "psnr", "LPIPS": "lpips"}
"""Their name -> ours, in their order."""


def method_name(step: int, scale: int = 1, exposure: str = NONE) -> str:
    """'ours_30000'; lower resolutions and fitted exposures get an entry of their own."""
    name = f"ours_{step}" if scale == 1 else f"ours_{step}_scale_{scale}"
    return name if exposure == NONE else f"{name}_{exposure.replace('-', '_')}"


def check(folder: Path) -> None:
    """Before a long evaluation: InputError if its results could not be added to what is there."""
    for name in ("results.json", "per_view.json"):
        load(folder / name)


def load(path: Path) -> dict[str, Any]:
    """What is there already."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        raise InputError(
            f"{path} cannot be read as JSON ({problem}); move it away, then evaluate again."
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object; move it away, then evaluate again.")
    return found


def write(folder: Path, method: str, report: Report) -> None:
    """Views are named by their number, 00000.png, as the original names its files."""
    present = {theirs: ours for theirs, ours in NAMES.items() if ours in report.means}
    means = {theirs: _strict(report.means[ours]) for theirs, ours in present.items()}
    per_view = {
        theirs: {
            f"{number:05d}.png": _strict(row[ours]) for number, row in enumerate(report.per_view.values())
        }
        for theirs, ours in present.items()
    }
    _merge(folder / "results.json", method, means)
    _merge(folder / "per_view.json", method, per_view)


def _merge(path: Path, method: str, entry: Mapping[str, Any]) -> None:
    content = load(path) | {method: entry}
    write_text(path, json.dumps(content, indent=1))


def _strict(value: float) -> float | None:
    return value if math.isfinite(value) else None
