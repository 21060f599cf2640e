"""The one effect: gathers, draws and writes the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from splatmeter.errors import OutputError
from splatmeter.lab.json_files import write_text
from splatmeter.lab.judgement.verdicts import Judgements
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult, last_metrics, result_from_text
from splatmeter.lab.report import pictures
from splatmeter.lab.report.page import page
from splatmeter.lab.report.pictures import Source
from splatmeter.lab.report.report_contents import address, report
from splatmeter.lab.report.report_document import ModelPage
from splatmeter.units import bytes_text

VIEWS = 3


def write_report(
    lab: Lab,
    path: Path,
    sources: Sequence[Source] = (),
    views: int = VIEWS,
    finished: tuple[Path, str] | None = None,
    known: Judgements | None = None,
) -> int:
    """Returns the size in bytes. Renders given here win over those found in the run folders; `finished` is a
    page of a model, and a note on it, to be linked instead of the best arm's.
    """
    found = {source.phase: source for source in (*kept_renders(lab), *sources)}
    chosen = [found[name] for name in lab.phases.names() if name in found]
    chosen += [source for name, source in found.items() if name not in lab.phases.names()]
    linked = _model_page(lab, path.parent) if finished is None else _finished_page(*finished, path.parent)
    text = page(report(lab, path.parent, pictures.read_pictures(chosen, views), linked, known))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"Cannot make the folder {path.parent}: {problem.strerror}; choose another."
        ) from None
    write_text(path, text)
    return path.stat().st_size


@dataclass(frozen=True, slots=True)
class KeptModel:
    """A model that a run left behind, and where its renders go: beside the evidence, never inside it."""

    phase: str
    run: str
    path: Path
    target: Path
    psnr: float = -math.inf
    """PSNR at its last evaluation; minus infinity where there is none."""
    scene: str = ""
    """Which one, where there are several; only models of one scene are shown beside each other."""

    @property
    def page(self) -> Path:
        return self.target / "model.html"


def kept_models(lab: Lab) -> list[KeptModel]:
    """For each phase the newest counted run whose model is still there, on the first scene."""
    found: list[KeptModel] = []
    first = next(iter(lab.protocol().scene_names), "")
    for name in lab.phases.names():
        for run, result in _counted(lab, name):
            path = Path(result.model.path)
            if path.is_file() and result.identity.scene == first:
                psnr = last_metrics(result.evaluations).get("psnr", -math.inf)
                found.append(KeptModel(name, run, path, _rendered(lab, run), psnr, first))
                break
    return found


def best_model(lab: Lab) -> KeptModel | None:
    """The model with the highest PSNR; if two are equal, that of the later phase."""
    found = kept_models(lab)
    return max(reversed(found), key=lambda model: model.psnr) if found else None


def _model_page(lab: Lab, folder: Path) -> ModelPage | None:
    """Only where `lab report --render` made it."""
    best = best_model(lab)
    if best is None or not best.page.is_file():
        return None
    size = bytes_text(best.page.stat().st_size)
    return ModelPage(best.phase, best.run, address(best.page.parent, folder) + best.page.name, size)


def _finished_page(page: Path, note: str, folder: Path) -> ModelPage:
    size = bytes_text(page.stat().st_size)
    return ModelPage("", "", address(page.absolute().parent, folder) + quote(page.name), size, note)


def kept_renders(lab: Lab) -> list[Source]:
    """For each phase the newest counted run with renders: its own, or those `lab report --render` made."""
    found: list[Source] = []
    for name in lab.phases.names():
        for run, _ in _counted(lab, name):
            source = pictures.find_renders(name, _rendered(lab, run), run)
            source = source or pictures.find_renders(name, lab.sessions / run / "output", run)
            if source:
                found.append(source)
                break
    return found


def _counted(lab: Lab, phase: str) -> list[tuple[str, RunResult]]:
    rows = Index(lab).rows(
        "SELECT run, result FROM ordered_runs WHERE phase = ? AND counted = 1"
        " ORDER BY place_in_order DESC, block, place",
        (phase,),
    )
    return [(row["run"], result_from_text(row["result"])) for row in rows]


def _rendered(lab: Lab, run: str) -> Path:
    return lab.root / "renders" / run.replace("/", "_")
