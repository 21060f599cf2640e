"""`splatmeter doctor --clean` removes what splatmeter made, and nothing else, and nothing that is in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from splatmeter.cli.main import main
from splatmeter.files.locks import IN_USE, Hold, alone_with
from splatmeter.scene import demo
from splatmeter.scene.built_in import STAMP

NAME = f"demo-{demo.VERSION}-seed-0-quick"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of nobody but this test; what other processes left for temporary files is out of sight, too."""
    folder, temporary = tmp_path / "cache", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("SPLATMETER_CACHE", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return folder


def scene(cache: Path, name: str = NAME) -> Path:
    """As `make_demo_scene` leaves one, with other bytes."""
    folder = cache / name
    for place in ("images", "sparse/0"):
        (folder / place).mkdir(parents=True)
    (folder / STAMP).write_text(json.dumps(demo._garden(0, demo.QUICK).stamp), "utf-8")
    (folder / "images" / "garden_001.png").write_bytes(b"x" * 1000)
    (folder / "sparse" / "0" / "points3D.bin").write_bytes(b"x" * 500)
    return folder


def lpips_folder(age: float = 0.0, mark: bool = True) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="splatmeter-lpips-"))
    (folder / "render.png").write_bytes(b"x" * 100)
    if mark:
        (folder / IN_USE).touch()
    os.utime(folder, (folder.stat().st_atime, folder.stat().st_mtime - age))
    return folder


def cleaned(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, dict[str, str]]:
    assert main(["doctor", "--clean", "--json", *words]) == code
    return {Path(one["folder"]).name: one for one in json.loads(capsys.readouterr().out)}


def test_what_we_made_goes_and_is_counted(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, size = scene(cache), sum(path.stat().st_size for path in scene(cache, "demo-1-seed-7").rglob("*.*"))
    (cache / "trusted-cards").mkdir()
    (cache / "trusted-cards" / ("0" * 32)).touch()
    left = lpips_folder()
    assert main(["doctor", "--clean"]) == 0
    said = capsys.readouterr().out
    assert not made.exists() and not (cache / "demo-1-seed-7").exists() and not left.exists()
    assert not (cache / "trusted-cards").exists()
    assert said.count("removed ") == 4 and str(made) in said and size > 1500
    assert main(["doctor", "--clean"]) == 0 and "Nothing is cached." in capsys.readouterr().out


def test_the_listing_before_removes_nothing(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = scene(cache)
    before = sorted(made.rglob("*"))
    assert cleaned(capsys, "--dry-run")[NAME]["state"] == "would be removed"
    assert sorted(made.rglob("*")) == before


def test_doctor_shows_the_cache(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene(cache)
    main(["doctor"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("ok        cache"))
    assert str(cache) in line and "KiB in 1 folders" in line and "--clean" in line


def test_a_list_without_cleaning_is_asked_back(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--dry-run"]) == 64 and "--clean --dry-run" in capsys.readouterr().err


def test_files_of_others_stay(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = scene(cache)
    names = ("images/holiday.png", "output/model.ply", "../notes.txt", "../demo-mine/a")
    mine = [made / name for name in names]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine", "utf-8")
    one = cleaned(capsys)[NAME]
    assert all(path.read_text("utf-8") == "mine" for path in mine)
    assert one["state"] == "removed" and "is not ours and stays" in one["why"]
    assert not (made / STAMP).exists() and not (made / "sparse").exists()


@pytest.mark.parametrize("stamp", ["", "{}", "[]", '{"scene": "mine"}', "\x00"])
def test_a_folder_of_that_name_without_our_stamp_is_not_ours(
    cache: Path, capsys: pytest.CaptureFixture[str], stamp: str
) -> None:
    made = scene(cache)
    (made / STAMP).write_text(stamp, "utf-8")
    assert cleaned(capsys) == {} and (made / "images" / "garden_001.png").exists()


@pytest.mark.parametrize("place", ["", "images", "sparse", "sparse/0", STAMP, "images/garden_001.png"])
def test_symbolic_links_are_not_followed(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """Whatever stands for a link leads to somebody's files of the same names."""
    made = scene(cache)
    elsewhere = tmp_path / "elsewhere"
    (made / place).rename(elsewhere)
    (made / place).symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in [elsewhere, *elsewhere.rglob("*")] if path.is_file()}
    cleaned(capsys)
    assert before and all(path.read_bytes() == data for path, data in before.items())
    assert (made / place).is_symlink()


def test_a_cache_that_is_itself_a_link_is_still_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scene(cache)
    (tmp_path / "link").symlink_to(cache)
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path / "link"))
    assert cleaned(capsys)[NAME]["state"] == "removed" and not made.exists()


def test_a_link_in_the_folder_for_temporary_files_is_left_alone(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "render.png").write_text("mine", "utf-8")
    (Path(tempfile.gettempdir()) / "splatmeter-lpips-trap").symlink_to(target)
    assert cleaned(capsys) == {} and (target / "render.png").exists()


PLAY = """
import sys
from splatmeter.scene import built_in, demo
built_in.BuiltIn.is_in = lambda *_: True
print(demo.cached_demo_scene(quick=True), flush=True)
sys.stdin.read()
"""


def test_what_a_running_demo_uses_stays_until_it_is_killed(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between its trainings a demo has no file open and names the scene nowhere: it holds a mark of use."""
    made = scene(cache)
    with subprocess.Popen(
        [sys.executable, "-c", PLAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None and user.stdout.readline().strip() == str(made)
        one = cleaned(capsys)[NAME]
        assert one["state"] == "kept" and "another splatmeter uses it" in one["why"] and made.exists()
        user.kill()
    assert cleaned(capsys)[NAME]["state"] == "removed" and not made.exists()


WAIT = "import sys; print(flush=True); sys.stdin.read()"
OPEN = f"import sys; file = open(sys.argv[1]); {WAIT}"


@pytest.mark.parametrize("how", ["names it", "stands in it", "reads it"])
def test_what_any_other_process_uses_stays(cache: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    made = scene(cache)
    photo = made / "images" / "garden_001.png"
    words = {"names it": [f"--source={made}"], "stands in it": [], "reads it": [os.path.relpath(photo)]}
    with subprocess.Popen(
        [sys.executable, "-c", OPEN if how == "reads it" else WAIT, *words[how]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=made if how == "stands in it" else None,
    ) as user:
        assert user.stdout is not None and user.stdout.readline()
        one = cleaned(capsys)[NAME]
        assert one["state"] == "kept" and one["why"] == f"process {user.pid} uses it" and photo.exists()
        user.kill()


def test_pictures_of_a_running_evaluation_stay(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used, fresh, old = lpips_folder(), lpips_folder(mark=False), lpips_folder(age=7200, mark=False)
    hold = Hold(used)
    states = {name: one["state"] for name, one in cleaned(capsys).items()}
    assert states == {used.name: "kept", fresh.name: "kept", old.name: "removed"}
    hold.release()
    assert cleaned(capsys)[used.name]["state"] == "removed"


def test_two_may_hold_a_folder_and_both_must_let_go(tmp_path: Path) -> None:
    holds = [Hold(tmp_path), Hold(tmp_path)]
    for hold in holds:
        with alone_with(tmp_path) as alone:
            assert not alone
        hold.release()
    with alone_with(tmp_path) as alone:
        assert alone


def test_a_folder_that_cannot_be_emptied_is_told(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene(cache)

    def refused(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refused)
    one = cleaned(capsys, code=1)[NAME]
    assert one["state"] == "kept" and one["why"] == "it cannot be removed: Permission denied"
