"""Plans that somebody has edited: refused with one sentence that names the field, or as good as any."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from running import Make, of, run
from test_time_given import RECIPE, SECONDS, World, folder
from tiny_scene import some_backend

from splatmeter.backend import Backend
from splatmeter.errors import InputError, SplatmeterError
from splatmeter.events import Finished, Planned, Warned
from splatmeter.train import plan as plans
from splatmeter.train.config import TrainConfig
from splatmeter.train.earlier import planned_settings
from splatmeter.train.plan import Entry, Plan

ENTRIES = (Entry(0, 0.0, 100, 10, 50), Entry(20, 0.2, 60, 10, 50, 40), Entry(40, 0.6, 120, 10, 50, 45))
CONFIG = TrainConfig(iterations=80, progressive="4:20,2:40", densification="cut", max_gaussians=90)
GOOD = json.loads(json.dumps(plans.to_record(Plan(9.0, plans.settings_of(CONFIG), ENTRIES, True))))
GONE = object()
"""In place of a value: the field is not there at all."""


def edited(at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    record = copy.deepcopy(GOOD)
    *way, last = at
    place = record
    for name in way:
        place = place[name]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return record


def written(folder: Path, record: Any) -> Path:
    path = folder / "edited.json"
    path.write_text(json.dumps(record), "utf-8")
    return path


@pytest.mark.parametrize(
    ("at", "value", "told"),
    [
        (("settings",), {}, r'settings has no "iterations"'),
        (("settings",), [], r"settings is \[\], but must be an object"),
        (("settings", "densification"), "foo", r'settings\.densification is "foo", but must be one of'),
        (("settings", "densification"), [1], r"settings\.densification is \[1\], but must be one of"),
        (("settings", "images"), 7, r"settings\.images is 7, but must be text"),
        (("settings", "images"), "a\0b", r"settings\.images is .*, but must be text that a file could"),
        (("settings", "masks"), 5, r"settings\.masks is 5, but must be text or null"),
        (("settings", "eval"), "no", r'settings\.eval is "no", but must be true or false'),
        (("settings", "seed"), 1.5, r"settings\.seed is 1\.5, but must be a whole number"),
        (("settings", "seed"), 2**70, r"settings\.seed is 11805.*, but must be at most"),
        (("settings", "momentum"), 7, r"of its settings, momentum is 7\.0, but must be between 0 and 0\.99"),
        (("settings", "iteratons"), 5, r'settings has "iteratons", .* Did you mean iterations\? Take'),
        (("settings", "overwrite"), True, r'settings has "overwrite", which is no name there'),
        (("seconds",), -1, r"seconds is -1\.0, but must be between 0"),
        (("plan",), GONE, r'it has no "plan"'),
        (("ended",), "yes", r'ended is "yes", but must be true or false or null'),
        (("entries",), None, r"entries is null, but must be a list"),
        (("entries", 1), None, r"entries\[1\] is null, but must be an object"),
        (("entries", 1, "finest"), 7, r"entries\[1\]\.finest is 7, but must be one of \(1, 2, 4\)"),
        (("entries", 2, "end"), 10**12, r"entries\[2\]\.end is 1000000000000, but must be between 1"),
        (("entries", 2, "end"), GONE, r'entries\[2\] has no "end"'),
        (("entries", 2, "budget"), 1e3, r"entries\[2\]\.budget is 1000\.0, but must be a whole number"),
        (("entries", 2, "step"), 20, r"entries\[2\]\.step is 20, but must be after 20"),
    ],
)
def test_what_makes_no_sense_is_told_with_the_file_and_the_field(
    tmp_path: Path, at: tuple[Any, ...], value: Any, told: str
) -> None:
    path = written(tmp_path, edited(at, value))
    with pytest.raises(InputError, match=rf"edited\.json cannot be followed: {told}"):
        plans.read(path)


@pytest.mark.parametrize("text", ["", "7", "null", "[]", "[" * 100_000, "\ud800"])
def test_what_is_no_object_at_all_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "edited.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"edited\.json"):
        plans.read(path)


def _fields() -> list[tuple[Any, ...]]:
    own = [(name,) for name in (*GOOD, "new")]
    chosen = [("settings", name) for name in (*GOOD["settings"], "new", "plan", "model_path", "resume")]
    entries = [("entries", 0), ("entries", 1)]
    return [*own, *chosen, *entries, *(("entries", n, name) for n in range(3) for name in GOOD["entries"][0])]


NUMBERS = st.integers() | st.integers(-3, 200) | st.sampled_from([10**12, 2**63, -(10**400)]) | st.floats()
WORDS = st.text(max_size=12) | st.sampled_from(["none", "cut", "mcmc", "4:9", "9:4,2:5", "1e999G", "0,0,0,0"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)


@given(at=st.sampled_from(_fields()), value=VALUES | st.just(GONE))
@example(at=("settings",), value={"iterations": 80})
@example(at=("settings", "progressive"), value="none")
@settings(max_examples=600, deadline=None)
def test_any_change_of_one_field_is_refused_or_gives_a_plan_that_can_be_followed(
    tmp_path_factory: pytest.TempPathFactory, at: tuple[Any, ...], value: Any
) -> None:
    if value is GONE and at[-1] in ("new", "plan", "model_path", "resume") and at != ("plan",):
        return
    path = written(tmp_path_factory.getbasetemp(), edited(at, value))
    try:
        read = plans.read(path)
        config = TrainConfig(**planned_settings(path), plan=path)
        for entry in read.entries:
            so_far = read.upto(entry.step)
            stretched = plans.stretched(config, so_far)
            assert stretched.iterations == entry.end and stretched.densify_settings(1.0).interval > 0
            course = plans.course(config, so_far)
            assert all(0 <= course.rates_done(step) <= 1 and course.degree(step, 3) <= 3 for step in (1, 99))
        assert json.loads(json.dumps(plans.to_record(read), allow_nan=False))["entries"]
    except SplatmeterError as problem:
        assert len(str(problem)) > 30


# ---- sizes of photos --------------------------------------------------------------------------------------
def test_an_entry_that_ends_a_run_has_no_size_of_its_own(tmp_path: Path) -> None:
    """Earlier versions wrote down the size for no time at all, and it was told at the end of each repeat."""
    record = edited(("entries", 1), GOOD["entries"][1] | {"end": 40})
    record["entries"][2] |= {"end": 40, "done": 1.0, "finest": 4}
    assert [entry.finest for entry in plans.read(written(tmp_path, record)).entries] == [1, 1, 1]
    record["entries"][2] |= {"end": 41}
    assert [entry.finest for entry in plans.read(written(tmp_path, record)).entries] == [1, 1, 4]


def short_plan(ended: bool | None, finest: int = 1) -> Plan:
    entries = (Entry(0, 0.0, 30, 10, 50), Entry(10, 0.5, 20, 10, 50, finest=finest))
    return Plan(9.0, {"iterations": 40}, entries, ended)


def test_a_repeated_run_tells_of_no_size_that_no_step_has_seen(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    path = tmp_path / "old.json"
    old = short_plan(None).with_entry(Entry(20, 1.0, 20, 10, 50, finest=4))
    plans.write(path, old)
    events = run(make(plan=path), backend)
    assert [event.divisor for event in of(Planned, events)] == [1, 1, 1]
    assert of(Finished, events)[0].step == 20


def test_photos_too_small_for_a_plan_are_told_before_the_first_step(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    path = tmp_path / "small.json"
    plans.write(path, short_plan(True, finest=4))
    with pytest.raises(InputError, match=r"small\.json shows photos at 1/4 .* less than 8 pixels"):
        run(make(plan=path, resolution=2), backend)
    assert not (tmp_path / "run").exists()


# ---- whether the run had ended ----------------------------------------------------------------------------
def told(path: Path, make: Make, name: str) -> list[str]:
    events = run(make(name, plan=path), some_backend())
    return [event.message for event in of(Warned, events) if "did not end" in event.message]


@pytest.mark.parametrize(("ended", "warnings"), [(True, 0), (False, 1), (None, 0)])
def test_a_plan_of_a_run_that_did_not_end_is_told_of_and_the_run_that_repeats_it_has_a_whole_one(
    make: Make, tmp_path: Path, ended: bool | None, warnings: int
) -> None:
    path = tmp_path / "given.json"
    plans.write(path, short_plan(ended))
    if ended is None:
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "ended"}))
    assert len(told(path, make, "first")) == warnings
    assert plans.read(tmp_path / "first" / plans.NAME).ended is True
    assert not told(tmp_path / "first" / plans.NAME, make, "second")


@pytest.mark.parametrize("ended", [True, False])
def test_while_a_plan_is_repeated_its_record_is_as_whole_as_the_plan(
    make: Make, backend: Backend, tmp_path: Path, ended: bool
) -> None:
    path = tmp_path / "given.json"
    plans.write(path, short_plan(ended))
    steps = iter(range(1, 100))
    run(make(plan=path), backend, interrupted=lambda: next(steps) == 13)
    assert plans.read(tmp_path / "run" / plans.NAME).ended is ended


def test_a_timed_run_says_that_it_has_ended_only_when_it_has(make: Make, backend: Backend) -> None:
    config = make(seconds=SECONDS, **RECIPE)
    world = World(backend)
    world.run(config, interrupted=lambda: world.now > 8)
    assert plans.read(folder(config) / plans.NAME).ended is False
    world = World(backend)
    world.run(make(seconds=SECONDS, resume=True, **RECIPE))
    assert plans.read(folder(config) / plans.NAME).ended is True


def test_a_time_without_stages_of_smaller_photos_can_be_planned() -> None:
    plain = TrainConfig(iterations=100)
    assert plans.stretched(plain, Plan(9.0, {"iterations": 100}, ENTRIES)).progressive == "none"
