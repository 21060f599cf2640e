"""The one effect: gathers, draws and writes the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from splatmeter.errors import OutputError
from splatmeter.lab.atomic import write_text
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report import pictures
from splatmeter.lab.report.gather import report
from splatmeter.lab.report.page import page
from splatmeter.lab.report.pictures import Source

VIEWS = 3


def write_report(lab: Lab, path: Path, sources: Sequence[Source] = (), views: int = VIEWS) -> int:
    """Returns the size in bytes. Renders given here win over those found in the run folders."""
    found = {source.phase: source for source in (*kept_renders(lab), *sources)}
    chosen = [found[name] for name in lab.phases.names() if name in found]
    chosen += [source for name, source in found.items() if name not in lab.phases.names()]
    text = page(report(lab, path.parent, pictures.read(chosen, views)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"cannot make the folder {path.parent}: {problem.strerror}; choose another"
        ) from None
    write_text(path, text)
    return path.stat().st_size


def kept_renders(lab: Lab) -> list[Source]:
    """Of each phase the newest counted run whose output was kept with renders in it, or what
    `lab report --render` made of it.
    """
    found: list[Source] = []
    for name in lab.phases.names():
        rows = Index(lab).rows(
            "SELECT run FROM runs WHERE phase = ? AND counted = 1 ORDER BY session DESC, block, place",
            (name,),
        )
        for run in (row["run"] for row in rows):
            source = pictures.find(name, rendered_folder(lab, run), run)
            source = source or pictures.find(name, lab.sessions / run / "output", run)
            if source:
                found.append(source)
                break
    return found


def rendered_folder(lab: Lab, run: str) -> Path:
    """Beside the evidence, never inside it."""
    return lab.root / "renders" / run.replace("/", "_")
