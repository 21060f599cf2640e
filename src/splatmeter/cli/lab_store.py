"""`lab ls`, `lab show`, `lab export`, `lab sql`, `lab rebuild`: what was measured."""

from __future__ import annotations

import json
import sqlite3
from argparse import Namespace

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_text import clean, table
from splatmeter.errors import MissingFile
from splatmeter.lab.json_files import read_json, write_text
from splatmeter.lab.record import export as exports
from splatmeter.lab.record.index import Index, query
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult, result_from_text
from splatmeter.units import bytes_text


def ls(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    if chosen.runs:
        rows = Index(lab).rows(
            "SELECT run, status, counted, steps_per_second, gaussians_end, peak_total FROM runs ORDER BY run"
        )
        head = ["run", "status", "counts", "it/s", "Gaussians", "peak"]
        print(table(head, [_run_row(row) for row in rows]))
        return 0
    rows = Index(lab).rows(
        "SELECT s.session, s.kind, s.arms, s.blocks, s.ended, (SELECT count(DISTINCT r.block) FROM runs r"
        " WHERE r.session = s.session AND r.counted = 1) AS done FROM sessions s"
        " ORDER BY s.place_in_order, s.session"
    )
    cells = []
    for row in rows:
        arms = ", ".join(arm["label"] for arm in json.loads(row["arms"]))
        given_up = (lab.sessions / row["session"] / "ended.json").exists()
        open_state = "given up" if given_up else "unfinished (`lab resume`)"
        state = "ended" if row["ended"] else open_state
        cells.append([row["session"], row["kind"], arms, f"{row['done']}/{row['blocks']}", state])
    print(table(["session", "kind", "arms", "blocks", "state"], cells))
    return 0


def _run_row(r: sqlite3.Row) -> list[object]:
    rate = "-" if r["steps_per_second"] is None else f"{r['steps_per_second']:.3f}"
    peak = "-" if r["peak_total"] is None else bytes_text(r["peak_total"])
    return [r["run"], r["status"], "yes" if r["counted"] else "no", rate, r["gaussians_end"] or "-", peak]


def show(chosen: Namespace) -> int:
    """A run by its path, a session by its name, a phase by its file."""
    lab = Lab(lab_folder(chosen)).checked()
    runs = Index(lab).rows(
        "SELECT run, result FROM runs WHERE run = ? OR session = ? ORDER BY run", (chosen.name, chosen.name)
    )
    if runs:
        for row in runs:
            _show_run(lab, row["run"], result_from_text(row["result"]))
        return 0
    if chosen.name in lab.phases.names():
        print((lab.phases.folder / f"{chosen.name}.toml").read_text("utf-8"), end="")
        return 0
    plan = read_json(lab.sessions / chosen.name / "session.json") if "/" not in chosen.name else None
    if plan is None:
        raise MissingFile(
            f"{chosen.name!r} is no run, session or phase of this lab; see `splatmeter lab ls --runs`."
        )
    print(json.dumps(plan, ensure_ascii=False, indent=1))
    return 0


def _show_run(lab: Lab, run: str, result: RunResult) -> None:
    timing = result.timing
    rate = (
        f"{timing.steps_per_second:.4f} it/s over {timing.measured_steps:.0f} steps"
        if timing
        else "not timed"
    )
    print(f"{run}: {result.status} {clean(result.message)}".rstrip())
    print(f"  speed      {rate}")
    ends = f"{result.gaussians_start or 'unknown'} -> {result.gaussians_end or 'unknown'}"
    print(f"  Gaussians  {ends}, mean opacity {_number(result.mean_opacity)}")
    print(f"  loss       {_number(result.loss)} (last 100 steps {_number(result.loss_last_100)})")
    for peak in result.peaks:
        size = peak.process_bytes or peak.allocated_bytes
        shown = bytes_text(size) if size else "unknown"
        print(f"  peak       {peak.stage} {shown} ({peak.source})")
    for item in result.evaluations:
        figures = ", ".join(f"{name} {_number(value)}" for name, value in item.metrics.items())
        print(f"  {item.split:<10} step {item.step}: {figures} ({item.judged_by})")
    for name, seconds in sorted(result.passes.items(), key=lambda entry: -entry[1]):
        print(f"  pass       {clean(name)} {seconds:.3f} s")
    if result.monitor and result.monitor.share is not None:
        share, samples = result.monitor.share, result.monitor.samples
        print(f"  monitor    {100 * share:.3f} % of one core, {samples} samples")
    print(f"  evidence   {lab.sessions / run}")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"


def export(chosen: Namespace) -> int:
    index = Index(Lab(lab_folder(chosen)).checked())
    text = exports.runs_as_json(index) if chosen.format == "json" else exports.runs_as_csv(index)
    if chosen.out:
        write_text(chosen.out, text)
        print(chosen.out)
    else:
        print(text, end="")
    return 0


def sql(chosen: Namespace) -> int:
    names, rows = query(Lab(lab_folder(chosen)).checked(), chosen.query)
    print(
        table(names, [["" if cell is None else cell for cell in row] for row in rows])
        if names
        else "no columns"
    )
    return 0


def rebuild(chosen: Namespace) -> int:
    print(f"{Index(Lab(lab_folder(chosen)).checked()).rebuild()} runs read")
    return 0
