"""`splatmeter scene` makes and describes scenes."""

from __future__ import annotations

from pathlib import Path

import pytest

from splatmeter.cli.main import main
from splatmeter.scene import demo
from splatmeter.scene.demo import DemoSize


@pytest.fixture
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("splatmeter._scenery", reason="the ray tracer is not built")
    size = DemoSize(photos=9, width=32, height=24, samples=1, points=50)
    monkeypatch.setattr(demo, "QUICK", size)
    monkeypatch.setattr("splatmeter.cli.scene.QUICK", size)
    return tmp_path / "my garden"


def test_demo_makes_a_scene_and_names_the_next_command(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scene", "demo", str(garden), "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "9 photos of 32x24, 50 points (made in" in shown
    assert f"splatmeter train -s '{garden}' --eval" in shown
    assert main(["scene", "demo", str(garden), "--quick"]) == 0
    assert "already there" in capsys.readouterr().out


def test_info_tells_views_split_sizes_points_and_extent(
    garden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["scene", "demo", str(garden), "--quick"])
    capsys.readouterr()
    assert main(["scene", "info", str(garden), "--test-every", "3"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["scene"] == str(garden)
    assert lines["kind"] == "colmap"
    assert lines["views"] == "9, with --eval 6 to train on and 3 to judge by"
    assert lines["sizes"] == "32x24"
    assert lines["points"].startswith("50, within (")
    assert 3 < float(lines["extent"].split()[0]) < 6


def test_another_seed_in_the_same_folder_is_refused(garden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["scene", "demo", str(garden), "--quick"])
    assert main(["scene", "demo", str(garden), "--quick", "--seed", "1"]) == 73
    assert "Choose another folder" in capsys.readouterr().err


def test_city_makes_a_scene_of_its_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("splatmeter._scenery", reason="the ray tracer is not built")
    words = ["scene", "city", str(tmp_path / "town"), "--size", "1", "--width", "24", "--height", "16"]
    assert main(words) == 0
    assert "54 photos of 24x16, 4000 points (made in" in capsys.readouterr().out
    assert main(words) == 0
    assert "already there" in capsys.readouterr().out
    assert main([*words, "--seed", "5"]) == 73
    assert "is not this city" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 64, "Say from-photos, undistort, info, demo or city"),
        (["paint"], 64, "'paint' is none of from-photos, undistort, info, demo or city"),
        (["demo"], 64, "OUT"),
        (["demo", "x", "--seed", "many"], 64, "--seed"),
        (["demo", "x", "--seed", "-1"], 64, "out of range"),
        (["city"], 64, "OUT"),
        (["city", "x", "--size", "0"], 64, "--size is 0, but must be from 1 to 20 blocks"),
        (["city", "x", "--width", "9"], 64, "--width is 9"),
        (["info", "/nowhere/at/all"], 66, "/nowhere/at/all is not a folder"),
    ],
)
def test_mistakes_get_one_sentence(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scene", *words]) == code
    shown = capsys.readouterr().err
    assert message in shown and shown.count("\n") == 1


def test_help_names_all_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scene", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("from-photos", "undistort", "info", "demo", "city"))
