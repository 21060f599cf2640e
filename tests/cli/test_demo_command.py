"""The demo's own decisions; the whole of it is run from a wheel by .ci/run."""

from __future__ import annotations

from pathlib import Path

import pytest

from splatmeter.cli import demo
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


@pytest.mark.parametrize("widest", ["avx2", "baseline"])
def test_the_lab_measures_what_this_processor_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, widest: str
) -> None:
    """With wide vectors those; otherwise threads. A later phase declares that it changes the Gaussians."""
    from types import SimpleNamespace

    from splatmeter.backends import registry
    from splatmeter.cli import demo_lab

    engine = SimpleNamespace(facts=SimpleNamespace(details={"instruction_set": widest}))
    monkeypatch.setattr(registry, "backend", lambda *_: engine)
    planned = demo_lab.Demo(tmp_path, tmp_path / "scene", demo.FULL)
    names = demo_lab.plan(planned)
    phases = {phase.name: phase for phase in planned.lab.phases.all()}
    assert list(phases) == names
    assert phases[names[1]].parent == "baseline" and phases[names[2]].changes == ("gaussians",)
    assert bool(phases["baseline"].environment) == (widest == "avx2")
    assert planned.lab.protocol().blocks >= 4
