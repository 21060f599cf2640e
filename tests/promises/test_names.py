"""Names and exit codes that docs/promises.md lists are still there."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from kept_names import KEPT, SCENE_ACTIONS, names_of_today

from splatmeter import api, errors
from splatmeter.cli.main import COMMANDS, main
from splatmeter.lab.samples.verdict_kinds import VerdictKind

PAGE = (Path(__file__).parents[2] / "docs" / "promises.md").read_text("utf-8")
SOURCE = Path(errors.__file__).parent


def test_no_name_of_the_first_version_has_gone() -> None:
    kept = json.loads((KEPT / "names.json").read_text("utf-8"))
    today = names_of_today()
    gone = [
        f"{command} {name}"
        for command, names in kept.items()
        for name in {*names} - {*today.get(command, ())}
    ]
    assert len(kept) > 40 and not [command for command in kept if command not in today]
    assert not gone, f"{gone}: docs/promises.md says that they stay; accept the old names beside the new ones"


def test_the_page_lists_the_commands() -> None:
    from splatmeter.cli.lab import parser

    block = PAGE.partition("```text\n")[2].partition("```")[0]
    top, _, rest = block.partition("lab:")
    lab, _, scene = rest.partition("scene:")
    actions = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(top.split()) == set(COMMANDS)
    assert set(lab.split()) == set(actions.choices)
    assert set(scene.split()) == set(SCENE_ACTIONS)


def test_variables_are_still_read() -> None:
    listed = set(re.findall(r"`(SPLATMETER_\w+)`", PAGE))
    code = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    native = "\n".join(
        path.read_text("utf-8") for path in (Path(__file__).parents[2] / "native").rglob("*.cpp")
    )
    assert len(listed) == 5 and all(f'"{name}"' in code + native for name in listed)


API = {
    "Event", "Model", "Report", "Scene", "SplatmeterError", "View", "demo_scene", "evaluate", "load_model",
    "load_scene", "orbit", "train",
}  # fmt: skip


def test_what_notebooks_use_is_still_there() -> None:
    assert set(api.__all__) >= API and all(hasattr(api, name) for name in API)


CODES = {
    64: "UsageError", 65: "InputError", 66: "MissingFile", 69: "MissingExtra", 70: "SplatmeterError",
    71: "NotEnoughMemory", 73: "OutputError", 1: "Diverged",
}  # fmt: skip


def listed_codes() -> dict[int, str]:
    return {int(code): when for code, when in re.findall(r"(?m)^\| (\d+) \| (.+) \|$", PAGE)}


def test_the_page_lists_the_exit_codes_that_there_are() -> None:
    assert set(listed_codes()) == {0, 2, 3, 4, 130, 141, *CODES}
    assert all(getattr(errors, name).exit_code == code for code, name in CODES.items())
    assert errors.CardUnavailable.exit_code == 69 and errors.CheckpointError.exit_code == 65
    everyone = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and hasattr(kind, "exit_code")
    }
    assert everyone == set(CODES), "an exit code that docs/promises.md does not list"


def test_a_gate_leaves_with_the_code_of_its_verdict(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which verdict that is may change with the rules."""
    monkeypatch.chdir(kept)
    code = main(["lab", "gate", "plain-loss", "--json"])
    assert VerdictKind(json.loads(capsys.readouterr().out)["verdict"]).exit_code == code


def test_what_a_gate_says() -> None:
    codes = {kind.value: kind.exit_code for kind in VerdictKind}
    gains = (
        "faster",
        "leaner",
        "faster and leaner",
        "sooner",
        "better",
        "verified",
        "no speed-up",
        "no gain",
    )
    losses = ("slower", "quality lost", "more memory", "later", "worse")
    expected = dict.fromkeys(gains, 0) | dict.fromkeys(losses, 1)
    expected |= {"undecided": 2, "planned": 2, "on hold": 2, "questionable": 3}
    assert codes == expected


def test_commands_leave_with_these_codes(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(kept)
    (kept / "broken.ply").write_bytes(b"ply\nnothing")
    rows = ["phase | it/s | speed-up", "--- | --- | ---", "base | 10.0 it/s | ", "one | 20.0 it/s | 5.0x"]
    (kept / "contradicts.md").write_text("".join(f"| {row} |\n" for row in rows), "utf-8")
    (kept / "empty.md").write_text("Nothing was measured.\n", "utf-8")
    asked = {
        ("doctor", "--nonsense"): 64,
        ("info", "broken.ply"): 65,
        ("info", "nowhere.ply"): 66,
        ("train", "-s", "scene", "--device", "cuda", "-m", "x"): 69,
        ("train", "-s", "scene", "--memory", "1M", "-m", "x", "--quiet", "--device", "cpu"): 71,
        ("train", "-s", "scene", "-m", "run", "--quiet", "--device", "cpu"): 73,
        ("lab", "phase", "add", "later"): 0,
        ("lab", "gate", "later"): 2,
        ("lab", "audit", "contradicts.md"): 3,
        ("lab", "audit", "empty.md"): 4,
        (): 64,
    }
    found = {words: main(list(words)) for words in asked}
    assert found == asked, capsys.readouterr().err


def test_an_interruption_and_a_closed_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for raised, code in ((KeyboardInterrupt(), 130), (BrokenPipeError(), 141), (MemoryError(), 71)):

        def fails(words: object, raised: BaseException = raised) -> int:
            raise raised

        monkeypatch.setattr("splatmeter.cli.main.carried_out", fails)
        assert main(["doctor"]) == code
