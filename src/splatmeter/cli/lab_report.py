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
from splatmeter.lab.report.write import KeptModel, best_model, kept_models, write_report
from splatmeter.units import bytes_text


def report(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    path: Path = chosen.file or lab.root / "report.html"
    path = path / "report.html" if path.is_dir() else path
    sources = [_given(lab, words) for words in chosen.renders]
    if chosen.page is not None and not chosen.page.is_file():
        raise MissingFile(f"{chosen.page} does not exist; `splatmeter export MODEL -o PAGE.html` makes it.")
    if chosen.render:
        _render(lab, chosen.views, page=chosen.page is None)
    finished = None if chosen.page is None else (chosen.page, chosen.page_note)
    size = write_report(lab, path, sources, chosen.views, finished)
    print(f"{path} ({bytes_text(size)})")
    return 0


def _given(lab: Lab, words: str) -> Source:
    """'fused=output/fused' -> the renders below that folder."""
    name, equals, folder = words.partition("=")
    if not equals or not name or not folder:
        raise UsageError(f"--renders {words!r} is not PHASE=FOLDER.")
    lab.phases.get(name)
    found = pictures.find_renders(name, Path(folder).expanduser())
    if found is None:
        raise MissingFile(
            f"{folder} holds no renders beside their photos;"
            " `splatmeter eval -m RUN --write-renders` makes them."
        )
    return found


def _render(lab: Lab, views: int, page: bool) -> None:
    """Each kept model by our own `eval`, the best as a page by `export`, in processes of their own.

    One that fails is named and left out.
    """
    models = kept_models(lab)
    if not models:
        print("no run kept its model, so there is nothing to render; `lab run --keep-models` keeps them")
    for model in models:
        if pictures.find_renders(model.phase, model.target):
            continue
        _child(_arguments(lab, model, views), f"{model.phase} could not be rendered")
    best = best_model(lab) if page else None
    if best is not None and not best.page.is_file():
        words = ["export", str(best.path), "-o", str(best.page), "-s", _scene(lab, best)]
        words += ["--title", best.phase]
        _child(words, f"{best.phase} could not be made a page")


def _child(words: list[str], complaint: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "splatmeter", *words], stdin=subprocess.DEVNULL, capture_output=True
    )
    if answer.returncode:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
        print(f"{complaint}: {clean(lines[-1] if lines else answer.returncode)}")


def _scene(lab: Lab, model: KeptModel) -> str:
    scene = Path(lab.protocol().of_scene(model.scene).scene).expanduser()
    return str(scene if scene.is_absolute() else lab.root / scene)


def _arguments(lab: Lab, model: KeptModel, views: int) -> list[str]:
    protocol = lab.protocol().of_scene(model.scene)
    words = ["eval", "-m", str(model.path), "--write-renders"]
    words += ["-s", _scene(lab, model), "-r", str(protocol.resolution)]
    words += ["-i", protocol.images] if protocol.images else []
    train = "0" if protocol.eval else str(max(1, views))
    return [*words, "--output", str(model.target), "--lpips", "none", "--train-views", train]
