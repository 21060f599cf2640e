"""The whole way with an engine that pretends: order, going on, nothing half-written, the report."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from capture_stand_in import InProcess, folder_of_photos, textured
from PIL import Image

from splatmeter.capture import report
from splatmeter.capture.child import ChildDied, run_child
from splatmeter.capture.from_photos import from_photos
from splatmeter.capture.job import STAGES, Job, Settings, SourcePhoto
from splatmeter.capture.work import Work, alone, work_folder
from splatmeter.errors import InputError, MissingExtra, OutputError
from splatmeter.scene.scene import SceneOptions, load_scene

MAPPING = '{"stage": "mapping", "done": 1}'
FAST = Settings(camera_model="PINHOLE")


def left_beside(out: Path) -> list[str]:
    return sorted(path.name for path in out.parent.iterdir() if path.name.startswith("."))


def test_the_scene_can_be_trained_on_and_nothing_else_is_left(tmp_path: Path) -> None:
    photos, out = folder_of_photos(tmp_path / "my photos ü", 5), tmp_path / "deep" / "scene"
    heard: list[dict[str, Any]] = []
    made = from_photos(photos, out, FAST, hear=heard.append, child=InProcess())
    scene = load_scene(SceneOptions(out))
    assert sorted(view.name for view in scene.train) == [f"IMG_{n}.jpg" for n in range(1, 6)]
    assert (made.before, made.facts["registered"], made.facts["photos"]) == (False, 5, 5)
    assert [m["stage"] for m in heard if m.get("finished")] == list(STAGES)
    assert left_beside(out) == []
    again = InProcess()
    assert from_photos(photos, out, FAST, child=again).before and again.engine is None


def test_the_report_tells_no_places(tmp_path: Path) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 5), tmp_path / "scene"
    (photos / "text.jpg").write_text("nothing")
    from_photos(photos, out, FAST, child=InProcess(lost=[2], apart=[3]))
    text = (out / report.NAME).read_text("utf-8")
    assert str(tmp_path) not in text and platform.node() not in text
    facts = json.loads(text)
    assert facts["other_groups"] == [["IMG_3.jpg"]]
    said = {photo["photo"]: photo["reason"] for photo in facts["left_out"]}
    assert "not a readable image" in said["text.jpg"]
    assert "overlaps too little" in said["IMG_2.jpg"] and "separate group" in said["IMG_3.jpg"]
    shown = dict(report.lines(facts))
    assert shown["photos"].startswith("3 of 6 have found their place (50 %)")
    assert "Many photos have no place" in shown["warning"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, stage: str) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 4), tmp_path / "scene"
    with pytest.raises(KeyboardInterrupt):
        from_photos(photos, out, FAST, child=InProcess(stop_in=stage))
    assert not out.exists() and left_beside(out) == [".scene.work"]
    heard: list[dict[str, Any]] = []
    second = InProcess()
    from_photos(photos, out, FAST, hear=heard.append, child=second)
    assert heard[0] == {"going_on": True}
    before = [m["stage"] for m in heard if m.get("before")]
    assert before == list(STAGES[: STAGES.index(stage)])
    assert second.engine is not None
    assert ("reconstruct" in second.engine.calls) == (STAGES.index(stage) <= STAGES.index("mapping"))
    assert load_scene(SceneOptions(out)).kind == "colmap" and left_beside(out) == []


@pytest.mark.parametrize(
    ("lost", "features", "words"),
    [
        ([1, 2, 3, 4], 1000, "no two of them show enough of the same"),
        ([3, 4], 1000, "not from places far enough apart"),
        ([3, 4], 50, "too little detail"),
    ],
)
def test_photos_that_make_no_scene_say_why_and_leave_nothing(
    tmp_path: Path, lost: list[int], features: int, words: str
) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 4), tmp_path / "scene"
    with pytest.raises(InputError, match=f"No scene could be made of the 4 photos.*{words}"):
        from_photos(photos, out, FAST, child=InProcess(lost=lost, features=features))
    assert not out.exists() and left_beside(out) == []


@pytest.mark.parametrize("change", ["settings", "photo"])
def test_work_of_other_photos_or_settings_is_not_gone_on_with(tmp_path: Path, change: str) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 4), tmp_path / "scene"
    with pytest.raises(KeyboardInterrupt):
        from_photos(photos, out, FAST, child=InProcess(stop_in="undistortion"))
    if change == "photo":
        textured(99).save(photos / "IMG_2.jpg", quality=60)
    settings = Settings(camera_model="OPENCV") if change == "settings" else FAST
    heard: list[dict[str, Any]] = []
    from_photos(photos, out, settings, hear=heard.append, child=InProcess())
    assert heard[0] == {"going_on": False}


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 4), tmp_path / "scene"
    from_photos(photos, out, FAST, child=InProcess())
    assert from_photos(photos, out, Settings(camera_model="PINHOLE", threads=9), child=InProcess()).before


def test_reports_of_before_points_were_added_are_read(tmp_path: Path) -> None:
    photos, out = folder_of_photos(tmp_path / "photos", 4), tmp_path / "scene"
    facts = from_photos(photos, out, FAST, child=InProcess()).facts
    assert facts["points_added"] == 0 and "comparing pixels" not in dict(report.lines(facts))["points"]
    of_before = {name: value for name, value in facts.items() if name != "points_added"}
    of_before["stages"] = {stage: spent for stage, spent in facts["stages"].items() if stage != "points"}
    (out / report.NAME).write_text(json.dumps(of_before), "utf-8")
    made = from_photos(photos, out, FAST, child=InProcess())
    assert made.before and dict(report.lines(made.facts))["points"] == "500, off by 0.50 px on average"
    more = dict(report.lines({**facts, "points_added": 2000}))["points"]
    assert more == "500, off by 0.50 px on average, and 2000 by comparing pixels"


def test_work_can_be_kept(tmp_path: Path) -> None:
    out = tmp_path / "scene"
    from_photos(folder_of_photos(tmp_path / "p"), out, FAST, keep_work=True, child=InProcess())
    assert (work_folder(out) / "database.db").exists()


def test_masks_in_a_folder_reach_every_photo(tmp_path: Path) -> None:
    photos = folder_of_photos(tmp_path / "photos", 4)
    (photos / "masks").mkdir()
    Image.new("L", (320, 240), 255).save(photos / "masks" / "IMG_2.png")
    out = tmp_path / "scene"
    made = from_photos(photos, out, FAST, keep_work=True, child=InProcess())
    assert made.facts["photos"] == 4
    assert "3 of 4 photos have no mask (first: IMG_1.jpg)" in made.facts["notes"][0]
    for number in range(1, 5):
        with Image.open(work_folder(out) / "masks" / f"{number:06d}.png") as mask:
            assert np.asarray(mask).min() == 255


def test_photos_that_cannot_be_decoded_here_are_named(tmp_path: Path) -> None:
    photos = folder_of_photos(tmp_path / "photos", 4)
    (photos / "IMG_9.HEIC").write_bytes(b"x")
    made = from_photos(photos, tmp_path / "scene", FAST, child=InProcess())
    assert made.facts["notes"] == ["IMG_9.HEIC is not read here: export it as JPEG."]
    (photos / "IMG_8.CR2").write_bytes(b"x")
    made = from_photos(photos, tmp_path / "other", FAST, child=InProcess())
    assert made.facts["notes"] == ["2 files (CR2, HEIC) are not read here: export them as JPEG."]


def test_many_photos_are_compared_by_likeness(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(120):
        textured(number, 208, 160).save(photos / f"{number}.jpg")
    made = from_photos(photos, tmp_path / "scene", FAST, child=InProcess())
    assert made.facts["matching"] == "similar" and 0 < made.facts["pairs"] < 120 * 33


def test_two_commands_at_one_scene_are_one_too_many(tmp_path: Path) -> None:
    out = tmp_path / "scene"
    with alone(out), pytest.raises(OutputError, match="Another splatmeter"), alone(out):
        raise AssertionError
    (tmp_path / ".scene.lock").write_text("999999999")
    with alone(out):
        pass
    assert left_beside(out) == []


def test_without_the_library_one_sentence_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for machine, word in (("aarch64", "no package for Linux on this processor"), ("x86_64", "pycolmap")):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        monkeypatch.setattr("sys.platform", "linux")
        with pytest.raises(MissingExtra, match=rf"{word}.*pip install 'splatmeter\[photos\]'"):
            from_photos(folder_of_photos(tmp_path / "photos"), tmp_path / "scene", FAST)
    assert left_beside(tmp_path / "scene") == [] and not (tmp_path / "scene").exists()


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("import os; os.abort()", "signal 6.*during its start"),
        (f"print({MAPPING!r}, flush=True); import os; os.kill(os.getpid(), 9)", "during mapping"),
        ("raise SystemExit(3)", "code 3"),
    ],
)
def test_a_child_that_dies_is_told_of(tmp_path: Path, program: str, word: str) -> None:
    work = Work(tmp_path)
    with pytest.raises(ChildDied, match=f"{word}.*log.txt"):
        run_child("from-photos", work, lambda message: None, [sys.executable, "-c", program])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_worker_ends_when_its_parent_was_killed(tmp_path: Path) -> None:
    """Its standard input ends: it must not go on writing where another run may begin."""
    import subprocess

    work = Work(tmp_path / "work")
    photos = folder_of_photos(tmp_path / "photos", 200)
    work.open(Job(FAST, tuple(SourcePhoto(path, path.name) for path in sorted(photos.iterdir()))))
    child = subprocess.Popen(
        [sys.executable, "-m", "splatmeter.capture.worker", "from-photos", str(work.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None and child.stdout is not None
    child.stdout.readline()
    child.stdin.close()
    assert child.wait(20) == 1
    child.stdout.close()
    assert not work.finished("photos")


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        'print(\'{"stage": "mapping", "done": %d}\' % os.getpid(), flush=True)\ntime.sleep(60)'
    )
    seen: list[int] = []

    def interrupt(message: dict[str, Any]) -> None:
        seen.append(message["done"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_child("from-photos", Work(tmp_path), interrupt, [sys.executable, "-c", program])
    assert seen and not psutil.pid_exists(seen[0])
