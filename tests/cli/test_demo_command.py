"""The demo's own decisions; the whole of it is run from a wheel by .ci/run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from splatmeter.cli import demo, demo_lab
from splatmeter.errors import OutputError


def test_a_second_demo_takes_the_next_free_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = demo.free_folder()
    (first / "LOG.md").write_text("mine")
    second = demo.free_folder()
    assert [first.name, second.name] == ["splatmeter-demo", "splatmeter-demo-2"]
    assert (first / "LOG.md").read_text() == "mine"


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(OutputError, match="not empty"):
        demo.run(["--quick", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="Choose another"):
        demo.empty_folder(tmp_path / "file" / "below")


def test_the_ending_lists_only_what_is_there_and_three_commands(tmp_path: Path) -> None:
    (tmp_path / "LOG.md").write_text("x")
    text = demo.ending(tmp_path, tmp_path / "scene")
    assert "LOG.md" in text and "report.html" not in text
    assert text.partition("Try next:")[2].count("  splatmeter ") == 3


@pytest.mark.parametrize(("free", "threads"), [(2.0, ["1", "2"]), (64.0, ["1", "2"]), (1.0, ["8", "1"])])
def test_the_lab_proves_what_this_machine_can_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, threads: list[str]
) -> None:
    """Two threads where two processors are free, else the opposite; the last phase declares its change."""
    planned = demo_lab.Demo(tmp_path, tmp_path / "scene", demo.FULL)
    monkeypatch.setattr(demo_lab, "free_processors", lambda: free)
    names = demo_lab.plan(planned)
    phases = {phase.name: phase for phase in planned.lab.phases.all()}
    assert list(phases) == names
    assert [phases[name].options[-1] for name in names[:2]] == threads
    assert phases[names[1]].parent == "baseline" and "gaussians" not in phases[names[1]].changes
    assert "gaussians" in phases[names[2]].changes
    assert planned.lab.protocol().blocks >= 4


def test_no_more_processors_are_free_than_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: 25.0)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    monkeypatch.setattr("splatmeter.backends.native.usable_threads", lambda: 1)
    assert demo_lab.free_processors() == 1
    monkeypatch.setattr("splatmeter.backends.native.usable_threads", lambda: 8)
    assert demo_lab.free_processors() == 6


@pytest.mark.slow
def test_the_quick_demo_ends_in_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal bits prove one change, the other one loses quality; the report begins with the model."""
    assert demo.run(["--quick", "--out", str(tmp_path / "out"), "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "from bit-identical models" in shown and "Quality lost: test " in shown
    assert "scene.html" in shown.partition("[4/5]")[0]
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert report.index("Look around in the finished model") < report.index('id="phases"')
    chosen = re.search(r'<select id="right">.*?selected[^>]*>([^<]*)<', report)
    assert chosen is not None and "-thread" in chosen[1]
