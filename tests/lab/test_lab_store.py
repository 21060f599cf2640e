"""The store: folders are the evidence, the index follows them, and a kill loses at most the block under
way.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from kill_at_random import kill_repeatedly
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.errors import InputError, OutputError
from splatmeter.lab.environment import ALLOWED_VARIABLES, collect, masked, variables
from splatmeter.lab.json_files import finite, read_json, write_json, write_text
from splatmeter.lab.record import export
from splatmeter.lab.record.index import Index, query, synced_once
from splatmeter.lab.record.lab import Lab, locked
from splatmeter.lab.record.result import RunResult, result_from
from splatmeter.lab.record.run_folder import end_orphan


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = make_lab(tmp_path)
    add(made, "candidate")
    carried_out(made, "ab", ["baseline", "candidate"], trainer(0.01), blocks=4, prime=False)
    return made


def rows(lab: Lab) -> list[tuple[object, ...]]:
    return [tuple(row) for row in Index(lab).rows("SELECT * FROM runs ORDER BY run")]


def test_the_index_is_rebuilt_from_the_folders(lab: Lab) -> None:
    before = rows(lab)
    assert len(before) == 8
    assert Index(lab).rebuild() == 8 and rows(lab) == before
    lab.index_file.unlink()
    assert rows(lab) == before


def test_a_command_looks_through_the_folders_once_and_the_next_one_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    sync = Index.sync
    monkeypatch.setattr(Index, "sync", lambda self: looked.append(1) or sync(self))
    with synced_once():
        assert len(rows(lab)) == len(rows(lab)) == 8 and len(looked) == 1
    shutil.rmtree(next(lab.sessions.glob("*/blocks/002.1")))
    with synced_once():
        assert len(rows(lab)) == 6 and len(looked) == 2
    rows(lab)
    rows(lab)
    assert len(looked) == 4  # outside, whoever asks sees what has just been measured


def test_a_damaged_index_is_made_anew(lab: Lab) -> None:
    before = rows(lab)
    for suffix in ("-wal", "-shm"):
        Path(f"{lab.index_file}{suffix}").unlink(missing_ok=True)
    lab.index_file.write_bytes(b"this is no database" * 100)
    assert rows(lab) == before


def test_the_index_follows_folders_that_go_away(lab: Lab) -> None:
    victim = next(lab.sessions.glob("*/blocks/002.1"))
    assert len(rows(lab)) == 8
    shutil.rmtree(victim)
    assert len(rows(lab)) == 6
    assert Index(lab).rows("SELECT count(*) FROM evaluations")[0][0] == 6 * 4


def test_unfinished_results_and_blocks_do_not_count(lab: Lab) -> None:
    block = next(lab.sessions.glob("*/blocks/001.1"))
    (block / "block.json").unlink()
    next(block.glob("*/result.json")).write_text('{"cut off": ')
    counted = Index(lab).rows("SELECT count(*) FROM runs WHERE counted = 1")[0][0]
    assert counted == 6


def test_sql_reads_and_the_database_refuses_the_rest(lab: Lab) -> None:
    names, found = query(lab, "SELECT phase, count(*) AS n FROM runs GROUP BY phase ORDER BY phase")
    assert names == ["phase", "n"] and found == [("baseline", 4), ("candidate", 4)]
    refused = (
        "DELETE FROM runs", "DROP TABLE runs", "INSERT INTO passes VALUES (1, 2, 3)",
        "PRAGMA query_only = OFF",
        "ATTACH 'x.db' AS x", "SELECT load_extension('x')", "VACUUM INTO 'copy.db'",
        "SELECT 1; DELETE FROM runs", "nonsense",
    )  # fmt: skip
    for text in refused:
        with pytest.raises(InputError, match="refused"):
            query(lab, text)
    assert len(rows(lab)) == 8


def test_exports_hold_every_run(lab: Lab) -> None:
    assert len(json.loads(export.runs_as_json(Index(lab)))["runs"]) == 8
    table = list(csv.DictReader(io.StringIO(export.runs_as_csv(Index(lab)))))
    assert len(table) == 8 and float(table[0]["test_psnr_100"]) == 26.0
    assert export.spreadsheet_cell("=1+1") == "'=1+1"


def test_two_processes_index_at_once(lab: Lab) -> None:
    lab.index_file.unlink(missing_ok=True)
    code = (
        "import sys; from pathlib import Path; from splatmeter.lab.record.lab import Lab;"
        "from splatmeter.lab.record.index import Index; i = Index(Lab(Path(sys.argv[1])));"
        "[i.rebuild() for _ in range(10)]"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, str(lab.root)]) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert len(rows(lab)) == 8
    with sqlite3.connect(lab.index_file) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    index.close()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL needs POSIX: kills are not tested here")
def test_two_dozen_kills_at_random_lose_at_most_the_block_under_way(tmp_path: Path) -> None:
    """500 are done by hand: python tests/lab/kill_at_random.py FOLDER 500."""
    assert kill_repeatedly(tmp_path / "lab", kills=24, seed=1) >= 4


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"value": float("nan"), "path": tmp_path})
    assert read_json(path) == {"value": None, "path": str(tmp_path)}

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_text(path, "new")
    assert read_json(path) is not None and list(tmp_path.iterdir()) == [path]


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    refused = pytest.raises(OutputError, match="the thing is in use")
    with locked(lock, "the thing"), refused, locked(lock, "the thing"):
        pass
    with locked(tmp_path / "x.lock", "the thing"):
        pass


def test_only_the_process_we_started_is_ever_ended(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = subprocess.Popen(words, start_new_session=True)
    try:
        write_json(tmp_path / "process.json", {"pid": ours.pid, "arguments": ["something", "else"]})
        assert not end_orphan(tmp_path, tmp_path / "work") and ours.poll() is None
        write_json(tmp_path / "process.json", {"pid": os.getpid(), "arguments": words})
        assert not end_orphan(tmp_path, tmp_path / "work")
        write_json(tmp_path / "process.json", {"pid": ours.pid, "arguments": words})
        assert end_orphan(tmp_path, tmp_path / "work")
    finally:
        ours.kill()
        ours.wait()
    assert not end_orphan(tmp_path, tmp_path / "work")


def test_the_environment_tells_the_machine_and_no_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    found = collect(tmp_path, {"HF_TOKEN": "hunter2", "OMP_NUM_THREADS": "1"})
    assert "hunter2" not in json.dumps(found)
    assert found["facts"]["variables"]["OMP_NUM_THREADS"] == "1"
    assert found["facts"]["cpu"]["logical"] >= 1 and found["facts"]["versions"]["python"]
    assert set(variables({})) <= set(ALLOWED_VARIABLES)
    assert masked(["train.py", "--api-key", "x", "--token=y", "--lr", "1"]) == [
        "train.py", "--api-key", "(not recorded)", "--token=(not recorded)", "--lr", "1",
    ]  # fmt: skip


def test_a_result_reads_as_it_was_written_and_an_unknown_key_does_no_harm(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(), blocks=4, prime=False)
    for path in lab.sessions.glob("*/blocks/*/*/result.json"):
        record = json.loads(path.read_text("utf-8"))
        result = result_from(record | {"of a later version": 1})
        assert json.loads(json.dumps(finite(result.to_record()))) == record
        assert result.finished and result.timing and result.identity.arm in ("baseline", "candidate")
    assert result_from({}) == RunResult()
