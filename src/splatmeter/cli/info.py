"""`splatmeter info`: what is in a model file, a checkpoint or a run folder."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from splatmeter.cli import arguments
from splatmeter.errors import MissingFile
from splatmeter.formats.registry import read_model
from splatmeter.gaussians.inspect import Description, describe
from splatmeter.models import opening
from splatmeter.models.run_settings import run_config
from splatmeter.train import checkpoint_names
from splatmeter.units import bytes_text, count_text, duration_text

DESCRIPTION = """Show what is in a model file, a checkpoint or a run folder.

Examples:
  splatmeter info point_cloud.ply
  splatmeter info garden.spz
  splatmeter info output/garden --json
  splatmeter info output/garden/chkpnt7000.safetensors"""


@dataclass(frozen=True)
class InfoArguments:
    path: Annotated[Path, tyro.conf.Positional]
    """Model file (PLY, SPZ, SOG, .splat, glTF), checkpoint (.safetensors) or run folder."""
    json: bool = False
    """Print as JSON."""


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(InfoArguments, "splatmeter info", words, DESCRIPTION)
    path = chosen.path
    if not path.exists():
        raise MissingFile(f"There is nothing at {path}.")
    record = inspect(path)
    print(json.dumps(_strict(record), indent=1) if chosen.json else "\n".join(text(record)))
    return 0


def inspect(path: Path) -> dict[str, Any]:
    if path.is_dir() and not (path / "point_cloud.ply").is_file():
        return _run_record(path)
    if path.suffix == checkpoint_names.SUFFIX:
        return _checkpoint_record(path)
    file = path / "point_cloud.ply" if path.is_dir() else path
    return {"kind": "model", "path": str(file), "file_bytes": file.stat().st_size} | dataclasses.asdict(
        describe(read_model(file))
    )


def _run_record(folder: Path) -> dict[str, Any]:
    saved, checkpoints = opening.saved_models(folder), checkpoint_names.saved(folder)
    config = run_config(folder)
    if not opening.is_run(folder) and not checkpoints:
        raise MissingFile(f"{folder} is neither a run folder nor a model.")
    record: dict[str, Any] = {
        "kind": "run",
        "path": str(folder),
        "models": list(saved),
        "checkpoints": list(checkpoints),
        "scene": str(config.source_path) if config else None,
        "iterations": _planned_steps(folder) or (config.iterations if config else None),
    }
    return record | ({"latest": inspect(saved[max(saved)])} if saved else {})


def _planned_steps(folder: Path) -> int | None:
    """How many steps the plan has, for a run that was given a time."""
    from splatmeter.train import plan

    path = folder / plan.NAME
    return plan.read(path).end if path.is_file() else None


def _checkpoint_record(path: Path) -> dict[str, Any]:
    """Reads all of it: that the file is whole is part of the answer."""
    from splatmeter.train import checkpoint_content

    found = checkpoint_content.read(path)
    arrays, state = found.arrays, found.record
    config, timing = state.get("config") or {}, state.get("timing")
    return {
        "kind": "checkpoint",
        "path": str(path),
        "file_bytes": path.stat().st_size,
        "gaussians": len(arrays.get("geometry", ())),
        "step": state.get("step"),
        "sh_degree": state.get("sh_degree"),
        "clock_seconds": state.get("clock_seconds"),
        "optimizer_steps": state.get("optimizer_steps"),
        "loss": state.get("loss_average"),
        "scene": config.get("source_path"),
        "iterations": timing["plan"]["entries"][-1]["end"] if timing else config.get("iterations"),
        "trained_on": len(state.get("trained_on", ())),
    }


# ---- telling ----------------------------------------------------------------------------------------------
def text(record: Mapping[str, Any]) -> list[str]:
    return {"model": _model_lines, "checkpoint": _checkpoint_lines, "run": _run_lines}[record["kind"]](record)


def _model_lines(record: Mapping[str, Any]) -> list[str]:
    found = Description(**{field.name: record[field.name] for field in dataclasses.fields(Description)})
    total = max(1, found.gaussians)
    box = " x ".join(f"{high - low:.4g}" for low, high in zip(found.lowest, found.highest, strict=True))
    lines = [
        f"{record['path']}: {found.form}, {found.gaussians} Gaussians, SH degree {found.sh_degree}, "
        f"{bytes_text(record['file_bytes'])} on disk, {bytes_text(found.memory_bytes)} in memory",
        f"3D filter    {'column filter_3D' if found.filtered else 'none in the file (plain or fused)'}",
        f"2D filter    {_drawn(found)}",
        f"place        centre {_vector(found.center)}, 95 % within {found.extent:.4g}, all within {box}",
        f"not finite   {found.nonfinite}",
        f"invisible    {found.invisible} ({found.invisible / total:.1%}): filtered opacity below 1/255",
        f"huge         {found.huge} ({found.huge / total:.1%}): longest axis above a tenth of the extent",
    ]
    spreads = {"opacity": found.opacities, "longest axis": found.scales, "stretch": found.anisotropy}
    if found.filtered:
        spreads["filter_3D"] = found.filter_3d
    if found.opacities:
        lines.append(f"{'percentile':<13}" + "".join(f"{name:>10}" for name in found.opacities))
        lines += [
            f"{name:<13}" + "".join(f"{value:>10.3g}" for value in row.values())
            for name, row in spreads.items()
        ]
    return lines + [f"comment      {comment}" for comment in found.comments]


def _checkpoint_lines(record: Mapping[str, Any]) -> list[str]:
    clock = record["clock_seconds"]
    return [
        f"{record['path']}: whole checkpoint of step {record['step']} of {record['iterations']}",
        f"{count_text(record['gaussians'])} Gaussians, SH degree {record['sh_degree']}, "
        f"{bytes_text(record['file_bytes'])}",
        f"scene {record['scene']}, trained on {record['trained_on']} images"
        + (f" for {duration_text(clock)}" if clock is not None else ""),
    ]


def _run_lines(record: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{record['path']}: run on {record['scene'] or 'an unknown scene'}, "
        f"{record['iterations'] or 'unknown'} iterations",
        f"models       {', '.join(map(str, record['models'])) or 'none'}",
        f"checkpoints  {', '.join(map(str, record['checkpoints'])) or 'none'}",
    ]
    return lines + (text(record["latest"]) if "latest" in record else [])


def _drawn(found: Description) -> str:
    if found.kernel_size is None:
        return "the file does not say; -k 0.1 where it is Mip-Splatting, else it is drawn as plain 3DGS"
    way = "opacities compensated (Mip-Splatting)" if found.compensate else "no compensation"
    return f"{found.kernel_size:g} square pixels, {way}"


def _vector(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
