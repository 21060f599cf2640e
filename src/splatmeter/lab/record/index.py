"""The index: a SQLite database built from the run folders, rebuilt from them whenever one likes."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, OutputError
from splatmeter.lab.json_files import read_json
from splatmeter.lab.order_of_time import place_in_order
from splatmeter.lab.record.intact import objection
from splatmeter.lab.record.lab import Lab, locked, read_plan
from splatmeter.lab.record.result import RunResult, result_from, result_from_text
from splatmeter.lab.record.run_folder import EVENTS, complete

VERSION = 2
BUSY_MILLISECONDS = 20_000

TABLES = """
CREATE TABLE sessions (session TEXT PRIMARY KEY, kind TEXT, arms TEXT, created TEXT, ended TEXT,
    blocks INTEGER, protocol TEXT, machine TEXT, place_in_order REAL);
CREATE TABLE runs (run TEXT PRIMARY KEY, session TEXT, block INTEGER, attempt INTEGER, place INTEGER,
    arm TEXT, phase TEXT,
    counted INTEGER, status TEXT, seed INTEGER, seconds REAL, timed_steps INTEGER, steps_per_second REAL,
    gaussian_steps_per_second REAL, gaussians_start INTEGER, gaussians_end INTEGER, loss REAL,
    loss_last_100 REAL,
    mean_opacity REAL, peak_training INTEGER, peak_evaluation INTEGER, peak_total INTEGER,
    first_iteration_seconds REAL, model_sha256 TEXT, machine TEXT, revision TEXT, started TEXT, protocol TEXT,
    stamp TEXT, objection TEXT, result TEXT);
CREATE TABLE evaluations (run TEXT, step INTEGER, split TEXT, metric TEXT, value REAL, judged_by TEXT);
CREATE TABLE passes (run TEXT, name TEXT, seconds REAL);
CREATE INDEX runs_by_phase ON runs (phase, counted);
CREATE INDEX evaluations_by_run ON evaluations (run);
CREATE VIEW ordered_runs AS SELECT runs.*, sessions.place_in_order FROM runs JOIN sessions USING (session);
"""
TABLE_NAMES = ("sessions", "runs", "evaluations", "passes")


_SYNCED: ContextVar[set[Path] | None] = ContextVar("synced", default=None)


@contextlib.contextmanager
def synced_once() -> Iterator[None]:
    """Inside, each lab's folders are looked through for the first query only: a command sees one state of
    them, and a log over a hundred runs does not walk over them a hundred times.
    """
    if _SYNCED.get() is not None:  # whoever is outside has looked already
        yield
        return
    token = _SYNCED.set(set())
    try:
        yield
    finally:
        _SYNCED.reset(token)


class Index:
    """Safe for several processes at once: write-ahead log, one writer at a time, readers never wait."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; an index that is damaged or of another version is simply made anew."""
        connection = self._opened()
        try:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                _create(connection)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            connection.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connect(self.lab.index_file)
        except sqlite3.DatabaseError as problem:
            if isinstance(problem, sqlite3.OperationalError):
                raise OutputError(
                    f"Cannot open {self.lab.index_file}: {problem}; check the folder's rights."
                ) from None
        with locked(self.lab.root / ".index.lock", "the index"):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.lab.index_file}{suffix}").unlink(missing_ok=True)
        return _connect(self.lab.index_file)

    def sync(self) -> int:
        """Takes in what has appeared in the folders since the last time; returns the number of runs read."""
        with self._writing() as connection:
            known = dict(connection.execute("SELECT run, stamp FROM runs"))
            present: set[str] = set()
            read = 0
            for result_file in sorted(self.lab.sessions.glob("*/*/*/*/result.json")):
                run = result_file.parent.relative_to(self.lab.sessions).as_posix()
                present.add(run)
                stamp = _stamp(result_file)
                if known.get(run) != stamp:
                    read += _take_run(connection, self.lab, result_file, stamp)
            gone = [run for run in known if run not in present]
            for run in gone:
                _forget(connection, run)
            for plan in self.lab.sessions.glob("*/session.json"):
                _take_session(connection, plan)
        return read

    def rebuild(self) -> int:
        """Forgets everything and reads all folders again."""
        with self._writing() as connection:
            _create(connection)
        return self.sync()

    def rows(self, query: str, parameters: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        """A query of the lab's own, after taking in what is new."""
        taken = _SYNCED.get()
        taken = set() if taken is None else taken
        if self.lab.root not in taken:
            self.sync()
            taken.add(self.lab.root)
        with contextlib.closing(self._opened()) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(query, parameters).fetchall()


def _connect(path: Path) -> sqlite3.Connection:
    """Entering write-ahead mode does not wait for others by itself, so we do."""
    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            return _connect_once(path)
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _connect_once(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)
    try:
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # it can be rebuilt: no need to wait for the disk
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    made = "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY type DESC"
    for kind, name in connection.execute(made).fetchall():
        connection.execute(f'DROP {kind} "{name}"')
    for statement in filter(str.strip, TABLES.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _stamp(result_file: Path) -> str:
    """Changes when the result or its evidence does, or when its block becomes complete."""
    parts: list[str] = []
    for path in (result_file, result_file.parent / EVENTS):
        with contextlib.suppress(OSError):
            state = path.stat()
            parts.append(f"{state.st_mtime_ns} {state.st_size}")
    return f"{' '.join(parts)} {complete(result_file.parent.parent):d}"


def _forget(connection: sqlite3.Connection, run: str) -> None:
    for table in ("runs", "evaluations", "passes"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))


def _take_run(connection: sqlite3.Connection, lab: Lab, result_file: Path, stamp: str) -> int:
    record = read_json(result_file)
    run = result_file.parent.relative_to(lab.sessions).as_posix()
    _forget(connection, run)
    refused = objection(result_file.parent, record, lab.judged)
    if refused:
        session, *_, folder = run.split("/")
        row = {"run": run, "session": session, "counted": 0, "status": "damaged", "stamp": stamp}
        row |= {"arm": folder.partition("-")[2], "block": -1, "objection": refused, "result": "{}"}
    else:
        row = _row(run, record, stamp)
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", tuple(row.values()))
    result = RunResult() if refused else result_from(record)
    for item in result.evaluations:
        for metric, value in item.metrics.items():
            entry = (run, item.step, item.split, metric, value, item.judged_by)
            connection.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?)", entry)
    for name, seconds in result.passes.items():
        connection.execute("INSERT INTO passes VALUES (?, ?, ?)", (run, name, seconds))
    return 1


def _row(run: str, record: dict[str, Any], stamp: str) -> dict[str, Any]:
    """The columns that queries ask for, and the whole record as it lies in its file."""
    result = result_from(record)
    identity, timing = result.identity, result.timing
    peaks = {peak.stage: peak.process_bytes for peak in result.peaks}
    return {
        "run": run,
        **{key: getattr(identity, key) for key in _OF_ITS_IDENTITY},
        "counted": int(stamp.endswith("1") and result.finished),
        "status": result.status,
        "seconds": timing.seconds if timing else None,
        "timed_steps": timing.steps if timing else None,
        "steps_per_second": timing.steps_per_second if timing else None,
        "gaussian_steps_per_second": timing.gaussian_steps_per_second if timing else None,
        **{key: getattr(result, key) for key in _OF_ITS_RESULT},
        "peak_training": peaks.get("training"),
        "peak_evaluation": peaks.get("evaluation"),
        "peak_total": result.memory.total_peak_bytes,
        "model_sha256": result.model.sha256 if result.models else None,
        "stamp": stamp,
        "objection": "",
        "result": json.dumps(record, ensure_ascii=False),
    }


_OF_ITS_IDENTITY = (
    "session", "block", "attempt", "place", "arm", "phase", "seed",
    "machine", "revision", "started", "protocol",
)  # fmt: skip
_OF_ITS_RESULT = (
    "gaussians_start", "gaussians_end", "loss", "loss_last_100", "mean_opacity", "first_iteration_seconds",
)  # fmt: skip


def _take_session(connection: sqlite3.Connection, plan_file: Path) -> None:
    plan = read_plan(plan_file)
    if not isinstance(plan, dict):
        return
    ended = read_json(plan_file.parent / "ended.json") or {}
    ended = {} if ended.get("abandoned_for") else ended  # it never came to its end, and is never judged
    entry = (
        plan_file.parent.name, plan.get("kind"), json.dumps(plan.get("arms")), plan.get("created"),
        ended.get("time"), plan.get("blocks"), plan.get("fingerprint"), plan.get("machine"),
        place_in_order(plan),
    )  # fmt: skip
    connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry)


_PERMITTED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def query(lab: Lab, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Any SELECT; the database itself refuses the rest: opened read-only, and an authorizer that permits
    reading alone.
    """
    Index(lab).sync()
    with contextlib.closing(
        sqlite3.connect(f"{lab.index_file.resolve().as_uri()}?mode=ro", uri=True)
    ) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorize)
        try:
            cursor = connection.execute(text)
            names = [column[0] for column in cursor.description or ()]
            return names, cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as problem:
            tables = ", ".join(TABLE_NAMES)
            raise InputError(
                f"The query was refused: {problem}. `lab sql` only reads; tables: {tables}."
            ) from None


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _PERMITTED else sqlite3.SQLITE_DENY


def counted_results(lab: Lab, phase: str) -> list[RunResult]:
    """From the newest session that has this phase: runs of different days are not averaged together.

    Slices tell nothing of memory, so a session of whole runs is preferred to a newer one of slices.
    """
    rows = Index(lab).rows(
        "SELECT session, result FROM ordered_runs WHERE phase = ? AND counted = 1"
        " AND session NOT IN (SELECT session FROM sessions WHERE kind = 'quality')"
        " ORDER BY place_in_order, session, block, place",
        (phase,),
    )
    sessions: dict[str, list[RunResult]] = {}
    for row in rows:
        sessions.setdefault(row["session"], []).append(result_from_text(row["result"]))
    newest_first = list(sessions.values())[::-1]
    whole = [results for results in newest_first if any(result.peaks for result in results)]
    return (whole or newest_first or [[]])[0]
