"""`lab report`: the lab's findings as one HTML page."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_text import clean
from splatmeter.errors import MissingFile, UsageError
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report import pictures
from splatmeter.lab.report.pictures import Source
from splatmeter.lab.report.write import KeptModel, kept_models, write_report
from splatmeter.units import bytes_text


def report(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    path: Path = chosen.file or lab.root / "report.html"
    path = path / "report.html" if path.is_dir() else path
    sources = [_given(lab, words) for words in chosen.renders]
    if chosen.render:
        _render(lab, chosen.views)
    size = write_report(lab, path, sources, chosen.views)
    print(f"{path} ({bytes_text(size)})")
    return 0


def _given(lab: Lab, words: str) -> Source:
    """'fused=output/fused' -> the renders below that folder."""
    name, equals, folder = words.partition("=")
    if not equals or not name or not folder:
        raise UsageError(f"--renders {words!r} is not PHASE=FOLDER")
    lab.phases.get(name)
    found = pictures.find(name, Path(folder).expanduser())
    if found is None:
        raise MissingFile(
            f"{folder} holds no renders beside their photos;"
            " `splatmeter eval -m RUN --write-renders` makes them"
        )
    return found


def _render(lab: Lab, views: int) -> None:
    """Each kept model by our own `eval`, in a process of its own; one that fails is named and left out."""
    models = kept_models(lab)
    if not models:
        print("no run kept its model, so there is nothing to render; `lab run --keep-models` keeps them")
    for model in models:
        if pictures.find(model.phase, model.target):
            continue
        answer = subprocess.run(_arguments(lab, model, views), stdin=subprocess.DEVNULL, capture_output=True)
        if answer.returncode:
            lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
            print(f"{model.phase} could not be rendered: {clean(lines[-1] if lines else answer.returncode)}")


def _arguments(lab: Lab, model: KeptModel, views: int) -> list[str]:
    protocol = lab.protocol()
    scene = Path(protocol.scene).expanduser()
    words = [sys.executable, "-m", "splatmeter", "eval", "-m", str(model.path), "--write-renders"]
    words += ["-s", str(scene if scene.is_absolute() else lab.root / scene), "-r", str(protocol.resolution)]
    words += ["-i", protocol.images] if protocol.images else []
    train = "0" if protocol.eval else str(max(1, views))
    return [*words, "--output", str(model.target), "--lpips", "none", "--train-views", train]
