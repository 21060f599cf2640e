"""Labs of several hosts in one: nothing lost, nothing counted twice, contradictions refused by name."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
from scripted_lab import add, carried_out, trainer
from several_machines import lab_on, measured, pretend

from splatmeter.cli.main import main
from splatmeter.lab.judgement.verdicts import judged
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.merge import merge
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.lab.session import session_plan as plans

HERE, THERE = "aaaa11112222", "bbbb33334444"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same question on two hosts, each with a lab of its own."""
    folder = tmp_path_factory.mktemp("hosts")
    for place, machine in enumerate((HERE, THERE)):
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(os, "fsync", lambda descriptor: None)
            pretend(monkeypatch, machine)
            measured(lab_on(folder / machine), lambda block: None, seed=place, blocks=4)
    return folder


@pytest.fixture
def labs(originals: Path, tmp_path: Path) -> tuple[Lab, Lab]:
    here, there = (
        Lab(Path(shutil.copytree(originals / machine, tmp_path / machine))) for machine in (HERE, THERE)
    )
    return here, there


def conflicts(lab: Lab, *sources: Lab) -> str:
    return "\n".join(words for merging in merge(lab, list(sources)) for words in merging.conflicts)


def evidence(lab: Lab) -> dict[str, bytes]:
    return {
        path.relative_to(lab.sessions).as_posix(): path.read_bytes()
        for path in sorted(lab.sessions.rglob("*"))
        if path.is_file() and path.name not in ("merged.json", ".lock")
    }


def test_two_hosts_make_one_comparison_with_two_machines(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    before = {**evidence(here), **evidence(there)}
    assert not conflicts(here, there)
    assert evidence(here) == before  # nothing lost, nothing edited
    found = judged(here, "baseline", "candidate")
    assert found.verdict.kind is VerdictKind.FASTER and "2 machines that agree" in found.verdict.sentence
    assert [part.speed.main.blocks for part in found.comparison.machines] == [4, 4]
    Index(here).rebuild()
    assert judged(here, "baseline", "candidate").verdict == found.verdict


def test_merging_twice_and_merging_back_change_nothing(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    assert len(merge(here, [there])[0].new) == 1
    state, verdict = evidence(here), judged(here, "baseline", "candidate").verdict
    again = merge(here, [there])[0]
    assert not again.new and not again.conflicts and len(again.known) == 1
    assert evidence(here) == state and judged(here, "baseline", "candidate").verdict == verdict
    assert len(merge(there, [here])[0].new) == 1
    assert evidence(there) == state


def test_a_lab_is_not_merged_with_itself_nor_doubled_by_its_copy(
    labs: tuple[Lab, Lab], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, _ = labs
    assert main(["lab", "--lab", str(here.root), "merge", str(here.root / ".." / here.root.name)]) == 64
    copy = Lab(Path(shutil.copytree(here.root, tmp_path / "copy")))
    assert merge(here, [copy])[0].known == plans.in_order(here)
    old = copy.sessions / plans.in_order(copy)[0]
    old.rename(copy.sessions / "20300101-000000-000000-ab-0000")
    assert "calls itself" in conflicts(here, copy)
    plan = copy.sessions / "20300101-000000-000000-ab-0000" / "session.json"
    plan.write_text(plan.read_text().replace(old.name, "20300101-000000-000000-ab-0000"))
    assert "is a copy of" in conflicts(here, copy)
    state = evidence(here)
    assert main(["lab", "--lab", str(here.root), "merge", str(copy.root)]) == 65
    assert "is a copy of" in capsys.readouterr().out and evidence(here) == state


def test_one_lab_given_twice_under_two_names_is_one(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    here, there = labs
    copy = Lab(Path(shutil.copytree(there.root, tmp_path / "copy")))
    (copy.root / "phases" / "third.toml").write_text(
        (copy.root / "phases" / "candidate.toml").read_text().replace('name = "candidate"', 'name = "third"')
    )
    merge(here, [there, copy])
    assert len(plans.in_order(here)) == 2
    assert merge(there, [copy])[0].known  # and the phase that only one of them has came along
    assert "third" in here.phases.names()


def test_labs_that_contradict_each_other_are_refused_though_neither_contradicts_this_one(
    labs: tuple[Lab, Lab], tmp_path: Path
) -> None:
    here, there = labs
    copy = Lab(Path(shutil.copytree(there.root, tmp_path / "copy")))
    result = next(copy.sessions.rglob("result.json"))
    result.write_text(result.read_text().replace('"seconds"', '"Seconds"'))
    assert "is here too, with another" in conflicts(here, there, copy)
    assert len(plans.in_order(here)) == 1


def test_what_differs_is_named_and_nothing_is_taken(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    state = evidence(here)
    text = there.protocol_file.read_text()
    there.protocol_file.write_text(text.replace("iterations = 200", "iterations = 300"))
    assert "iterations = 300, here it is 200" in conflicts(here, there)
    there.protocol_file.write_text(text)
    phase = there.root / "phases" / "candidate.toml"
    phase.write_text(phase.read_text().replace('"110"', '"111"'))
    assert "phase candidate has options" in conflicts(here, there)
    phase.write_text(phase.read_text().replace('"111"', '"110"'))
    for lab, mark in ((here, "1" * 64), (there, "2" * 64)):
        lab.start.mkdir(exist_ok=True)
        (lab.start / "checkpoint.json").write_text(json.dumps({"checkpoint": "x", "sha256": mark}))
    assert "its start checkpoint is 222222222222" in conflicts(here, there)
    (there.start / "checkpoint.json").unlink()
    for lab, mark in ((here, "1"), (there, "2")):
        pinned = {"phase": "baseline", "code": {"source": mark, "files": {"train.py": mark}}}
        (lab.root / "pinned.json").write_text(json.dumps(pinned))
    assert "pinned to other code than here (train.py)" in conflicts(here, there)
    assert evidence(here) == state


def test_a_session_that_was_changed_in_one_place_is_refused(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    here, _ = labs
    copy = Lab(Path(shutil.copytree(here.root, tmp_path / "copy")))
    result = next(copy.sessions.rglob("result.json"))
    result.write_text(result.read_text().replace('"seconds"', '"Seconds"'))
    assert "is here too, with another" in conflicts(here, copy)


def test_a_session_that_was_copied_half_way_grows_and_one_that_went_on_twice_does_not(
    labs: tuple[Lab, Lab], tmp_path: Path
) -> None:
    here, there = labs
    merge(here, [there])
    name = plans.in_order(there)[0]
    whole = evidence(here)
    for missing in ("ended.json", "blocks/003.1"):
        path = here.sessions / name / missing
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert merge(here, [there])[0].grown == [name] and evidence(here) == whole
    (here.sessions / name / "blocks" / "004.1").mkdir()
    (here.sessions / name / "blocks" / "004.1" / "block.json").write_text("{}")
    shutil.rmtree(here.sessions / name / "blocks" / "003.1")
    assert "went on in both labs" in conflicts(here, there)


def test_unfinished_sessions_stay_where_they_are(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    (there.sessions / plans.in_order(there)[0] / "ended.json").unlink()
    found = merge(here, [there])[0]
    assert found.unfinished and not found.new and len(plans.in_order(here)) == 1


def test_order_comes_from_numbers_whatever_the_clocks_say(
    labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other host's clock is years ahead; what is measured here afterwards is later all the same."""
    here, there = labs
    for path in there.sessions.rglob("*.json"):
        path.write_text(path.read_text().replace('"2026-', '"2039-'))
    merge(here, [there])
    pretend(monkeypatch, HERE)
    newest = measured(here, lambda block: None, seed=9, blocks=4)
    assert plans.in_order(here)[-1] == newest.session
    assert len(set(Index(here).rows("SELECT place_in_order FROM sessions"))) == 3
    found = judged(here, "baseline", "candidate")
    assert found.sessions[0] == newest.session and len(found.sessions) == 2


def test_a_session_that_was_removed_elsewhere_is_missed_here(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    measured(there, lambda block: None, seed=11, blocks=4)
    gone = plans.in_order(there)[-1]
    shutil.rmtree(there.sessions / gone)
    merge(here, [there])
    verdict = judged(here, "baseline", "candidate").verdict
    assert verdict.kind is VerdictKind.QUESTIONABLE and gone in verdict.sentence


def test_a_strangers_pickle_or_link_does_not_travel(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    here, there = labs

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

    folder = there.sessions / plans.in_order(there)[0]
    jobs = folder / "jobs" / "block-000.1" / "submitit"
    jobs.mkdir(parents=True)
    (jobs / "1_0_result.pkl").write_bytes(pickle.dumps(Trap()))
    (jobs.parent / "ended.json").write_text('{"code": 0}')
    (folder / "stolen.txt").symlink_to("/etc/passwd")
    merge(here, [there])
    judged(here, "baseline", "candidate")
    taken = here.sessions / folder.name
    assert not (tmp_path / "sprung").exists() and (taken / "jobs" / "block-000.1" / "ended.json").exists()
    assert not list(taken.rglob("*.pkl")) and not (taken / "stolen.txt").exists()


def test_phases_that_only_the_other_lab_has_come_along(labs: tuple[Lab, Lab]) -> None:
    here, there = labs
    add(there, "third", "--speed", "120")
    carried_out(there, "ab", ["baseline", "third"], trainer(0.004, 3), blocks=4, prime=False)
    merge(here, [there])
    assert judged(here, "baseline", "third").verdict.kind is VerdictKind.FASTER


def test_a_merge_that_is_killed_goes_on(labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = labs
    copied = [0]
    real = shutil.copy2

    def dies(source: Path, target: Path) -> None:
        copied[0] += 1
        if copied[0] == 9:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(shutil, "copy2", dies)
    with pytest.raises(KeyboardInterrupt):
        merge(here, [there])
    assert len(plans.in_order(here)) == 1  # half a session is none
    monkeypatch.undo()
    merge(here, [there])
    assert len(plans.in_order(here)) == 2
    assert not [f for f in judged(here, "baseline", "candidate").comparison.findings if "gone" in f.sentence]
