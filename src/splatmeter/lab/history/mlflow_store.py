"""The history as runs of MLflow: an experiment for each track, a run for each arm of each session.

A run is known by its point, so exporting again adds only what is new. What changed since is replaced, and
what no longer counts is withdrawn; MLflow keeps both in its bin. The last tag that a run gets is the digest
of its content: one in whose middle an export was killed has none, and is made again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.errors import MissingExtra, OutputError
from splatmeter.lab.history.history_text import INSIDE, MARKS
from splatmeter.lab.history.tracks import Against, Conditions, History, Point, Track
from splatmeter.lab.order_of_time import seconds_of
from splatmeter.lab.record.lab import Lab, begun_sessions, locked

POINT, DIGEST, SESSION, TRACK = (f"splatmeter.{name}" for name in ("point", "digest", "session", "track"))
DATABASE = "mlflow.db"
LONGEST_TEXT = 250
"""The longest parameter that older servers take."""
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


@dataclass(frozen=True, slots=True)
class Exported:
    address: str
    added: int = 0
    replaced: int = 0
    withdrawn: int = 0
    kept: int = 0

    @property
    def sentence(self) -> str:
        words = [f"{self.added} added", f"{self.kept} were there already"]
        words += [f"{self.replaced} replaced"] if self.replaced else []
        words += [f"{self.withdrawn} withdrawn (their evidence no longer counts)"] if self.withdrawn else []
        return f"{self.address}: {', '.join(words)}"


def export(lab: Lab, history: History, target: str) -> Exported:
    """`target` is a folder, which gets a database, or any address that MLflow knows."""
    address, artifacts = _address(target)
    client, failures = _client(address)
    with locked(lab.root / ".mlflow.lock", "the export to MLflow", wait=True):
        try:
            return _Store(client, artifacts).taken(history, _sessions(lab), address)
        except failures as problem:
            raise OutputError(_cannot(address, problem)) from None


def _address(target: str) -> tuple[str, str | None]:
    """For a folder: the database in it, and where MLflow may put files (splatmeter gives it none)."""
    if "://" in target or target.startswith(("file:", "sqlite:", "databricks")):
        return target, None
    folder = Path(target).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"Cannot make the folder {folder}: {problem.strerror}; choose another.") from None
    return f"sqlite:///{(folder / DATABASE).as_posix()}", (folder / "artifacts").as_uri()


def _client(address: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """With the failures that may come of its use. MLflow reports to its makers unless told not to: nothing of
    a lab leaves the machine unasked.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise MissingExtra("`lab history --mlflow`", "mlflow") from None
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    failures = (MlflowException, SQLAlchemyError, OSError)
    try:
        return MlflowClient(address), failures
    except (*failures, ImportError) as problem:  # a database whose driver is not installed
        raise OutputError(_cannot(address, problem)) from None


def _cannot(address: str, problem: Exception) -> str:
    first = str(problem).strip().splitlines()[:1] or [type(problem).__name__]
    said = first[0][:300].rstrip(".")
    return f"MLflow cannot write to {address}: {said}. Check the address, or name a folder."


def _sessions(lab: Lab) -> set[str]:
    """All that this lab ever began: what others exported to the same place is not its own to change."""
    return {*begun_sessions(lab), *(path.name for path in lab.sessions.glob("*"))}


class _Store:
    def __init__(self, client: Any, artifacts: str | None) -> None:
        self._client, self._artifacts = client, artifacts
        self._experiments: dict[str, str] = {}
        self._runs: dict[str, list[Any]] = {}
        self._read()

    def _read(self) -> None:
        for experiment in _pages(self._client.search_experiments):
            if TRACK in experiment.tags:
                self._experiments[experiment.tags[TRACK]] = experiment.experiment_id
        for number in self._experiments.values():
            for run in _pages(lambda **page: self._client.search_runs([number], **page)):  # noqa: B023
                self._runs.setdefault(run.data.tags.get(POINT, ""), []).append(run)

    def taken(self, history: History, own: set[str], address: str) -> Exported:
        counts = {"added": 0, "replaced": 0, "withdrawn": 0, "kept": 0}
        wanted: set[str] = set()
        for track in history.tracks:
            for point in track.points:
                key = point_key(track.conditions, point)
                wanted.add(key)
                counts[self._put(history, track, point, key)] += 1
        for key, runs in self._runs.items():
            gone = [run for run in runs if run.data.tags.get(SESSION) in own] if key not in wanted else []
            for run in gone:
                self._client.delete_run(run.info.run_id)
            counts["withdrawn"] += len(gone)
        return Exported(address, **counts)

    def _put(self, history: History, track: Track, point: Point, key: str) -> str:
        content = _content(history, point)
        digest = hashlib.sha256(repr(content).encode("utf-8", "replace")).hexdigest()[:16]
        there = self._runs.get(key, [])
        same = [run for run in there if run.data.tags.get(DIGEST) == digest]
        for run in there:
            if run not in same[:1]:
                self._client.delete_run(run.info.run_id)
        if not same:
            self._write(self._experiment(history, track), point, key, content, digest)
        return "kept" if same else "replaced" if there else "added"

    def _experiment(self, history: History, track: Track) -> str:
        name = _track_key(track.conditions)
        if name not in self._experiments:
            scene = Path(track.conditions.scene).name
            title = f"splatmeter/{history.title}/{scene}/{track.conditions.protocol[:8]}-{name}"
            note = f"{track.describes}\n\n{INSIDE}\n\n{MARKS}"
            tags = {TRACK: name, "mlflow.note.content": note}
            made = self._client.create_experiment(title, artifact_location=self._artifacts, tags=tags)
            self._experiments[name] = made
        return self._experiments[name]

    def _write(self, experiment: str, point: Point, key: str, content: Content, digest: str) -> None:
        from mlflow.entities import Metric, Param, RunTag

        begun = int(1000 * seconds_of(point.created))
        name = f"{point.created[:16]} {point.variant.label}{point.arm.removeprefix(point.variant.phase)}"
        tags = {POINT: key, SESSION: point.session}
        run = self._client.create_run(experiment, start_time=begun, tags=tags, run_name=name)
        metrics = [Metric(name, value, begun, 0) for name, value in content.metrics]
        params = [Param(name, value) for name, value in content.params]
        more = [RunTag(name, value) for name, value in content.tags]
        self._client.log_batch(run.info.run_id, metrics, params, more)
        self._client.set_terminated(run.info.run_id, "FINISHED", begun)
        self._client.set_tag(run.info.run_id, DIGEST, digest)


@dataclass(frozen=True, slots=True)
class Content:
    metrics: tuple[tuple[str, float], ...]
    params: tuple[tuple[str, str], ...]
    tags: tuple[tuple[str, str], ...]


def _content(history: History, point: Point) -> Content:
    metrics = [(name, reading.value) for name, reading in point.readings.items()]
    metrics += _ratios("speed_ratio", point.against) + _ratios("first_arm_speed_ratio", point.against_first)
    variant = point.variant
    params = {
        "phase": variant.phase, "variant": variant.label, "definition": variant.definition,
        "code": variant.code, "session": point.session, "kind": point.kind, "arm": point.arm,
        "runs": str(len(point.runs)), "against": point.against.reference if point.against else "",
    }  # fmt: skip
    tags = {f"splatmeter.basis.{name}": reading.basis for name, reading in point.readings.items()}
    if point.against:
        tags["splatmeter.verdict"] = point.against.verdict.kind.value
        tags |= {f"splatmeter.change.{name}": change.value for name, change in point.against.changes.items()}
    if point.revision:
        tags["mlflow.source.git.commit"] = point.revision
        tags["splatmeter.changed_tree"] = "yes" if point.changed_tree else "no"
    known = {name: value for name, value in metrics if math.isfinite(value)}
    return Content(tuple(known.items()), _texts(params), _texts(tags))


def _texts(entries: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value[:LONGEST_TEXT]) for name, value in entries.items() if value)


def _ratios(name: str, against: Against | None) -> list[tuple[str, float]]:
    if against is None or not against.blocks:
        return []
    return [(name, against.ratio), (f"{name}_low", against.low), (f"{name}_high", against.high)]


def _track_key(conditions: Conditions) -> str:
    return hashlib.sha256(repr(conditions).encode("utf-8", "replace")).hexdigest()[:12]


def point_key(conditions: Conditions, point: Point) -> str:
    return f"{point.session}/{point.arm}/{_track_key(conditions)}"


def _pages(search: Any) -> list[Any]:
    """All of them, however many a server gives at once."""
    found: list[Any] = []
    page = search()
    while True:
        found += page
        if not getattr(page, "token", None):
            return found
        page = search(page_token=page.token)
