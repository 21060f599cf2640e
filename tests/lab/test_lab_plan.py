"""Protocols and phases: small files that people edit, and the argument lists they become."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.errors import CheckpointError, InputError, MissingFile, SplatmeterError, UsageError
from splatmeter.events import Finished
from splatmeter.lab.executor import ChildProcess
from splatmeter.lab.plan import commands, protocol, toml
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.plan.phases import (
    Phase,
    Phases,
    phase_text,
    stated_variables,
)
from splatmeter.lab.plan.protocol import Protocol, users_own
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult, result_from
from splatmeter.lab.session import start
from splatmeter.lab.session.evaluating import Evaluator
from splatmeter.lab.session.worktree import built


def test_the_users_own_protocol_is_recreated() -> None:
    made = users_own("SAMPLES/garden", "mip-splatting")
    assert (made.resolution, made.start_iteration, made.end_iteration, made.evaluate_at) == (
        4,
        3000,
        4000,
        3100,
    )
    assert made.tolerance == 0.005 and made.eval and made.checkpoint.endswith("chkpnt3000.pth")
    assert made.warm_up_steps == 50 and made.evaluation_steps == (3100, 4000)


def test_warm_up_is_fifty_steps_or_five_percent() -> None:
    assert [protocol.default_warm_up(n) for n in (100, 1000, 1001, 30_000)] == [50, 50, 51, 1500]


def test_a_protocol_survives_being_written_and_read(tmp_path: Path) -> None:
    made = Protocol(
        scene='with "quotes" and \\ é \n', command=("python", "a b"), trainer="generic",
        tolerance=0.01, iterations=77,
        patterns=(("progress", r"(?P<step>\d+)"),), warm_up=7,
    )  # fmt: skip
    path = tmp_path / "protocol.toml"
    path.write_text(protocol.protocol_text(made), "utf-8")
    assert protocol.read_protocol(path) == made


@given(st.text())
def test_any_text_survives_toml(text: str) -> None:
    parsed = toml.tomllib.loads(f"key = {toml.toml_value(text)}")["key"]
    assert parsed == text.encode("utf-8", "replace").decode("utf-8")


def test_every_field_of_a_protocol_stands_in_the_file() -> None:
    placed = [key for keys in protocol.SECTIONS.values() for key in keys]
    assert sorted(placed) == sorted(field.name for field in dataclasses.fields(Protocol))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[run]\niteratons = 5", "iteratons"),
        ("[nowhere]\na = 1", "nowhere"),
        ("[run]\niterations = 'many'", "iterations"),
        ("[run]\niterations = 50", "warm-up"),
        ("[benchmark]\ntrainer = 'x'", "trainer"),
        ("[judgement]\ntolerance = 5.0", "tolerance"),
        ("[benchmark]\ntrainer = 'gsplat'", "command"),
        ("not toml", "TOML"),
    ],
)
def test_a_protocol_that_cannot_be_measured_is_refused_in_a_sentence(
    tmp_path: Path, text: str, word: str
) -> None:
    path = tmp_path / "protocol.toml"
    path.write_text(text)
    with pytest.raises((InputError, UsageError), match=word):
        protocol.read_protocol(path)


def test_rules_of_judgement_do_not_make_another_protocol() -> None:
    assert Protocol().fingerprint() == Protocol(tolerance=0.1, blocks=20, title="x").fingerprint()
    assert Protocol().fingerprint() != Protocol(resolution=2).fingerprint()


def test_phases_form_a_chain_from_the_baseline(tmp_path: Path) -> None:
    phases = Phases(tmp_path)
    phases.add(Phase("baseline", created="1"))
    phases.add(Phase("one", parent="baseline", options=("--a", "1"), created="2"))
    phases.add(
        Phase("two", parent="one", options=("--b", "2"), environment={"X": "y"}, note="ä\n", created="3")
    )
    assert [phase.name for phase in phases.lineage("two")] == ["baseline", "one", "two"]
    assert phases.get("two").note == "ä\n" and phases.get("two").environment == {"X": "y"}
    assert phases.baseline("two").name == "baseline"


def test_phases_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    phases = Phases(tmp_path)
    phases.add(Phase("a"))
    with pytest.raises(UsageError, match="exists"):
        phases.add(Phase("a"))
    with pytest.raises(MissingFile, match="nobody"):
        phases.add(Phase("b", parent="nobody"))
    for bad in (
        Phase("../escape"),
        Phase("x", state="done"),
        Phase("x", state="on hold"),
        Phase("x", changes=("luck",)),
    ):
        with pytest.raises(UsageError):
            phases.add(bad)
    phases.save(Phase("c", parent="d"))
    phases.save(Phase("d", parent="c"))
    with pytest.raises(InputError, match="circle"):
        phases.lineage("c")


def test_a_phase_file_shows_only_what_it_is_about() -> None:
    assert phase_text(Phase("quick", note="why")) == 'name = "quick"\nnote = "why"\nstate = "planned"\n'
    with pytest.raises(UsageError, match="NAME=VALUE"):
        stated_variables(["=x"])


REQUEST = RunRequest(Path("/out"), 3, Path("/start.pth"), "python", first=3000, last=4000,
                     evaluations=(3100, 4000), lab=Path("/lab"))  # fmt: skip


def test_our_trainer_gets_the_flags_people_know() -> None:
    words = commands.arguments(users_own("/garden"), [Phase("baseline")], REQUEST)
    assert words[:4] == ("python", "-m", "splatmeter", "train")
    joined = " ".join(words)
    for part in ("-s /garden -m /out -r 4 --iterations 4000", "--eval", "--test_iterations 3100 4000",
                 "--seed 3",                 "--start_checkpoint /start.pth", "--events-stdout"):  # fmt: skip
        assert part in joined


def test_the_original_is_started_with_its_own_flags_in_its_own_folder() -> None:
    made = users_own("garden", "mip-splatting", "/code/mip-splatting")
    words = commands.arguments(made, [Phase("baseline")], REQUEST)
    assert words[:2] == ("python", "train.py") and "--seed" not in words and "/lab/garden" in words
    assert commands.directory(made, [], REQUEST) == Path("/code/mip-splatting")


def test_options_of_parents_come_first_and_a_new_command_starts_afresh() -> None:
    parent = Phase("a", options=("--lr", "1"))
    child = Phase("b", parent="a", options=("--lr", "2"))
    words = commands.arguments(users_own("/garden"), [parent, child], REQUEST)
    assert words[-5:] == ("--lr", "1", "--lr", "2", "--events-stdout")
    other = Phase("c", parent="b", command=("other", "{seed}", "{scene}", "{braces}"), options=("--x",))
    assert commands.arguments(users_own("/garden"), [parent, child, other], REQUEST) == (
        "other", "3", "/garden", "{braces}", "--x",
    )  # fmt: skip


def test_the_start_checkpoint_is_known_by_its_hash(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    made = Protocol(start_iteration=3000, checkpoint="start/c.bin")
    with pytest.raises(MissingFile, match="lab prepare"):
        start.checked(lab, made)
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "c.bin").write_bytes(b"weights")
    path, first = start.checked(lab, made)
    assert path == tmp_path / "start" / "c.bin" and start.checked(lab, made)[1] == first
    path.write_bytes(b"other weights")
    with pytest.raises(CheckpointError, match="has changed"):
        start.checked(lab, made)
    assert start.checked(lab, Protocol(start_iteration=0)) == (None, "")


def test_a_revision_with_a_patch_is_built_in_its_own_worktree(tmp_path: Path) -> None:
    repository = tmp_path / "trainer"
    repository.mkdir()

    def git(*words: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t")
        return subprocess.run(
            ["git", *identity, *words], cwd=repository, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    (repository / "train.py").write_text("fast = False\n")
    git("add", ".")
    git("commit", "-qm", "slow")
    (repository / "train.py").write_text("fast = True\n")
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    (lab.root / "fast.patch").write_text(git("diff"))
    made = Protocol(trainer="mip-splatting", directory=str(repository))
    lineage = [Phase("baseline", revision="HEAD"), Phase("fast", parent="baseline", patch="fast.patch")]
    plain, patched = built(lab, lineage[:1], made), built(lab, lineage, made)
    assert plain.worktree and patched.worktree and plain.worktree != patched.worktree
    assert (plain.worktree / "train.py").read_text() == "fast = False\n"
    assert (patched.worktree / "train.py").read_text() == "fast = True\n"
    assert built(lab, lineage, made) == patched
    request = dataclasses.replace(REQUEST, worktree=patched.worktree)
    assert commands.directory(made, lineage, request) == patched.worktree
    with pytest.raises(InputError, match="rev-parse"):
        built(lab, [Phase("x", revision="no-such-revision")], made)
    compiled = built(
        lab, [dataclasses.replace(lineage[0], build=("{python}", "-c", "open('made', 'w')"))], made
    )
    assert compiled.worktree and (compiled.worktree / "made").exists() and compiled.python != sys.executable
    where = subprocess.run(
        [compiled.python, "-c", "import psutil, sys; print(sys.prefix)"], capture_output=True, text=True
    )
    assert where.stdout.strip() == str(Path(compiled.python).parents[1])
    request = dataclasses.replace(request, python=compiled.python, worktree=compiled.worktree)
    assert commands.environment(lineage, request) == {"PYTHONPATH": ""}


TRAINER = (
    "import json, pathlib, sys\n"
    "words = sys.argv[1:]; last = words[words.index('--checkpoint_iterations') + 1]\n"
    "out = pathlib.Path(words[0]); out.mkdir(parents=True)\n"
    "(out / f'chkpnt{last}.safetensors').write_text('weights')\n"
    "print(json.dumps({'event': 'finished', 'step': int(last), 'clock_seconds': 1.0, 'gaussians': 5}))\n"
)


def test_the_start_checkpoint_is_made_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    command = (sys.executable, "-c", TRAINER, "{output}")
    made = Protocol(
        trainer="events", command=command, start_iteration=50, checkpoint="start/chkpnt50.safetensors"
    )
    assert isinstance(list(start.prepare(lab, made, ChildProcess()))[-1].event, Finished)
    assert start.checked(lab, made)[0] == tmp_path / "start" / "chkpnt50.safetensors"
    with pytest.raises(UsageError, match="never overwritten"):
        list(start.prepare(lab, made, ChildProcess()))
    broken = dataclasses.replace(made, command=(sys.executable, "-c", "1/0"), checkpoint="start/other")
    with pytest.raises(SplatmeterError, match="exit code 1"):
        list(start.prepare(lab, broken, ChildProcess()))


def test_a_model_is_judged_once_and_then_known_by_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.ply"
    model.write_bytes(b"ply")
    answer = {
        "splits": {s: {"1": {"means": {"psnr": 26.0}, "per_view": {"a": {}}}} for s in ("test", "train")}
    }
    counter = tmp_path / "count"
    code = f"import json; open({str(counter)!r}, 'a').write('x'); print(json.dumps({answer!r}))"
    monkeypatch.setattr(Evaluator, "arguments", lambda *_: (sys.executable, "-c", code))
    made = Protocol(scene="garden", trainer="mip-splatting")
    spec: Any = SimpleNamespace(lineage=[], request=REQUEST)

    def judged(protocol: Protocol) -> RunResult:
        record = {"path": str(model), "sha256": "", "step": 4000}
        return Evaluator(Lab(tmp_path), protocol).complete(result_from({"models": [record]}), spec)

    first, second = judged(made), judged(made)
    assert first == second and counter.read_text() == "x"
    assert [item.split for item in first.evaluations] == ["test", "train"]
    assert first.evaluations[0].judged_by == "splatmeter eval" and first.model.sha256
    assert [e.split for e in judged(dataclasses.replace(made, eval=False)).evaluations] == ["train"]
    monkeypatch.setattr(
        Evaluator, "arguments", lambda *_: (sys.executable, "-c", "raise SystemExit('no weights')")
    )
    model.write_bytes(b"another")
    assert judged(made).warnings == ("the model could not be judged: no weights",)


def test_a_trainer_that_tells_a_false_hash_proves_nothing(tmp_path: Path) -> None:
    """Equal hashes stand for equal quality, so the lab takes them of the files that runs left."""
    (tmp_path / "model.ply").write_bytes(b"worse")
    told = {"path": str(tmp_path / "model.ply"), "sha256": "that of the baseline", "step": 10}
    judged = {"step": 10, "split": "test", "metrics": {"psnr": 26.0}}
    result = result_from({"models": [told], "evaluations": [judged]})
    spec: Any = SimpleNamespace(lineage=[], request=SimpleNamespace(save_all=False))
    result = Evaluator(Lab(tmp_path), Protocol(scene="garden", trainer="events")).complete(result, spec)
    assert result.evaluations[0].model_sha256 == hashlib.sha256(b"worse").hexdigest()
    assert result.warnings == ("model.ply has not the hash that the trainer told",)


def test_what_a_person_wrote_beside_a_phase_survives_a_change(tmp_path: Path) -> None:
    phases = Phases(tmp_path)
    phases.add(Phase("fused", note="first", environment={"A": "1"}))
    path = tmp_path / "fused.toml"
    path.write_text(f"# tried on Monday\n{path.read_text()}\n# and a last word\n")
    phases.save(dataclasses.replace(phases.get("fused"), note="second", options=("--fused",)))
    text = path.read_text()
    assert text.startswith("# tried on Monday\n") and "# and a last word" in text
    assert phases.get("fused") == Phase("fused", note="second", environment={"A": "1"}, options=("--fused",))
