"""Runs for other tools: JSON with everything, CSV with one row a run."""

from __future__ import annotations

import csv
import io
import json

from splatmeter.lab.record.index import Index

COLUMNS = (
    "run", "session", "block", "attempt", "place", "arm", "phase", "counted", "status", "seed", "seconds",
    "timed_steps",
    "steps_per_second", "gaussian_steps_per_second", "gaussians_start", "gaussians_end", "loss",
    "loss_last_100",
    "mean_opacity", "peak_training", "peak_evaluation", "peak_total", "first_iteration_seconds",
    "model_sha256",
    "machine", "revision", "started", "protocol",
)  # fmt: skip


def runs_as_json(index: Index) -> str:
    """The whole results, as they lie in the folders."""
    rows = index.rows("SELECT run, counted, result FROM runs ORDER BY run")
    runs = [{"run": row["run"], "counted": bool(row["counted"]), **json.loads(row["result"])} for row in rows]
    return json.dumps({"schema": 1, "runs": runs}, ensure_ascii=False, indent=1) + "\n"


def runs_as_csv(index: Index) -> str:
    """Metrics become columns such as test_psnr_3100; cells that a spreadsheet would run as a formula are
    quoted.
    """
    metrics: dict[str, dict[str, float]] = {}
    for row in index.rows("SELECT * FROM evaluations ORDER BY step, split DESC, metric"):
        metrics.setdefault(row["run"], {})[f"{row['split']}_{row['metric']}_{row['step']}"] = row["value"]
    names = list(dict.fromkeys(name for entry in metrics.values() for name in entry))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *names])
    for row in index.rows("SELECT * FROM runs ORDER BY run"):
        values = metrics.get(row["run"], {})
        cells = [spreadsheet_cell(row[name]) for name in COLUMNS]
        writer.writerow([*cells, *(values.get(name, "") for name in names)])
    return text.getvalue()


def spreadsheet_cell(item: object) -> object:
    """Unknown is empty; a text that a spreadsheet would run is kept from being one."""
    if item is None:
        return ""
    return f"'{item}" if isinstance(item, str) and item.startswith(tuple("=+-@\t\r")) else item
