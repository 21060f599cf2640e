"""The history in files: CSV, MLflow, and the page."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import io
import os
import sys
from pathlib import Path

import pytest
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.cli.lab_history import Column, packed
from splatmeter.cli.main import main
from splatmeter.lab.history.csv_table import as_csv
from splatmeter.lab.history.history import history
from splatmeter.lab.history.tracks import Change, History
from splatmeter.lab.record.export import spreadsheet_cell
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.page import page
from splatmeter.lab.report.report_contents import report

MLFLOW = importlib.util.find_spec("mlflow") and importlib.util.find_spec("sqlalchemy")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    from splatmeter.lab import code_identity, environment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(code_identity, "_installed", lambda paths: "")
        patch.setattr(environment, "git_state", lambda directory: {"revision": "0123abcd" * 5})
        patch.delenv("PYTHONPATH", raising=False)
        made = make_lab(tmp_path_factory.mktemp("lab"), title="=1+1")
        add(made, "fast", "--speed", "120")
        for seed in (1, 2):
            ways = {"blocks": 4, "prime": False, "monitor": False}
            carried_out(made, "ab", ["baseline", "fast"], trainer(0.002, seed), **ways)
    return made


@pytest.fixture
def found(lab: Lab) -> History:
    return history(lab)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_arm_of_every_session_is_a_row(lab: Lab, found: History, tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    assert main(["lab", "--lab", str(lab.root), "history", "--csv", str(path)]) == 0
    read = rows(path.read_text("utf-8"))
    assert [row["arm"] for row in read] == ["baseline", "fast", "baseline", "fast"]
    for row, point in zip(read, found.points, strict=True):
        assert float(row["speed"]) == point.readings["speed"].value
        assert (row["session"], row["code"], row["runs"]) == (point.session, point.variant.code, "4")
    assert read[1]["speed_change"] == Change.BETTER.value and float(read[1]["speed_ratio"]) > 1.15
    assert read[0]["speed_change"] == read[0]["speed_ratio"] == read[0]["loss_change"] == ""
    assert read[3]["verdict"] == "verified" and read[1]["psnr_basis"] == read[3]["psnr_basis"] != ""
    assert main(["lab", "--lab", str(lab.root), "history", "--csv", str(tmp_path / "no" / "x.csv")]) == 73


def test_no_cell_becomes_a_formula(found: History) -> None:
    hostile = dataclasses.replace(found, subjects={"0123abcd" * 5: "=cmd|' /C calc'!A0"})
    assert rows(as_csv(hostile))[0]["revision_subject"].startswith("'=")
    assert [spreadsheet_cell(cell) for cell in ("", None, "+1", -1.5, "a=b")] == ["", "", "'+1", -1.5, "a=b"]


def test_tables_are_never_wider_than_the_terminal_and_lose_nothing() -> None:
    keys = [Column("session", ["1", ""]), Column("phase", ["a", "b"])]
    columns = [Column(f"figure {n}", ["1.0", "2.0"]) for n in range(9)]
    for width in (60, 80, 300):
        tables = packed(keys, columns, width)
        assert all(table[:2] == keys for table in tables)
        assert [column for table in tables for column in table[2:]] == columns
        assert all(sum(column.width + 3 for column in table) <= width for table in tables)
    assert len(packed(keys, columns, 300)) == 1 and len(packed(keys, columns, 5)) == 9


def test_a_missing_extra_gets_a_sentence(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert main(["lab", "--lab", str(lab.root), "history", "--mlflow", str(tmp_path)]) == 69
    assert "pip install 'splatmeter[mlflow]'" in capsys.readouterr().err


def test_the_page_has_the_history_and_nothing_hostile_in_it(lab: Lab, found: History) -> None:
    document = report(lab, lab.root)
    assert document.history is not None
    subject = "</title><script>alert(1)</script>"
    text = page(
        dataclasses.replace(document, history=dataclasses.replace(found, subjects={"0123abcd" * 5: subject}))
    )
    assert 'id="history"' in text and "<script>alert" not in text and "&lt;script&gt;alert" in text
    assert "Between two sessions nothing is judged" in text and "measured again" in text


mlflow = pytest.mark.skipif(
    not MLFLOW, reason="the extra mlflow is not installed: nothing was exported to it"
)
unwarned = pytest.mark.filterwarnings("ignore")


def stored(folder: Path) -> list[object]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    numbers = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(numbers))


@mlflow
@unwarned
def test_repeated_exports_to_mlflow_duplicate_nothing(
    lab: Lab, found: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    from splatmeter.lab.history.mlflow_store import DIGEST, POINT, export

    words = ["lab", "--lab", str(lab.root), "history", "--mlflow", str(tmp_path)]
    assert main(words) == 0 and "4 added" in capsys.readouterr().out
    assert main(words) == 0 and "0 added, 4 were there already" in capsys.readouterr().out
    runs = stored(tmp_path)
    assert len(runs) == 4 == len({run.data.tags[POINT] for run in runs})  # type: ignore[attr-defined]
    by_point = {run.data.tags[POINT].split("/")[0:2][-1] for run in runs}  # type: ignore[attr-defined]
    assert by_point == {"baseline", "fast"}
    speeds = sorted(run.data.metrics["speed"] for run in runs)  # type: ignore[attr-defined]
    assert speeds == sorted(point.readings["speed"].value for point in found.points)

    killed = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    killed.delete_tag(runs[0].info.run_id, DIGEST)  # type: ignore[attr-defined]
    told = export(lab, found, str(tmp_path))
    assert (told.replaced, told.kept, told.added) == (1, 3, 0) and len(stored(tmp_path)) == 4

    other = make_lab(tmp_path / "other")
    told = export(other, history(other), str(tmp_path))
    assert (told.added, told.withdrawn) == (0, 0), "runs of another lab in the same store are not its own"

    shorter = dataclasses.replace(found.tracks[0], points=found.tracks[0].points[:2])
    told = export(lab, dataclasses.replace(found, tracks=(shorter,)), str(tmp_path))
    assert (told.withdrawn, told.kept) == (2, 2) and len(stored(tmp_path)) == 2


@mlflow
@unwarned
def test_an_address_that_does_not_work_gets_a_sentence(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no database " * 100)
    for target in (f"sqlite:///{tmp_path}/file", str(tmp_path / "file"), "nonsense://x"):
        assert main(["lab", "--lab", str(lab.root), "history", "--mlflow", target]) == 73, target
        said = capsys.readouterr().err
        assert "Traceback" not in said and len(said.strip().splitlines()) == 1, said
