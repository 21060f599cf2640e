"""Submitting, waiting and repeating, with a cluster that is played and a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from splatmeter.errors import UsageError
from splatmeter.jobs.cluster import Standing, checked_options
from splatmeter.jobs.crew import LATE_SECONDS, Crew, News
from splatmeter.jobs.folder import JobFolder, Task, new_try, tries


class Played:
    """What happens to the n-th job of a task, look by look; the last look stays."""

    name = "played"

    def __init__(self, plays: dict[str, list[str]]) -> None:
        self.plays = plays
        self.looks: dict[str, int] = {}
        self.cancelled: list[str] = []
        self.most = 0

    def submit(self, job: JobFolder) -> None:
        job.write("submitted", {"cluster": self.name, "id": job.path.name})

    def standing(self, jobs: Sequence[JobFolder]) -> list[Standing]:
        self.most = max(self.most, len(jobs))
        return [self._one(job) for job in jobs]

    def _one(self, job: JobFolder) -> Standing:
        name = job.path.name
        if name in self.cancelled:
            return Standing.GONE
        look = self.looks.get(name, 0)
        self.looks[name] = look + 1
        play = self.plays.get(name, ["ends 0"])
        word = play[min(look, len(play) - 1)]
        if word.startswith("ends"):
            job.write("started", {"node": "n"})
            job.write("ended", {"code": int(word.split()[1])})
            return Standing.GONE
        if word == "dies":
            job.write("started", {"node": "n"})
            return Standing.GONE
        if word == "ended by others":
            job.write("ended", {"code": 143, "signalled": True})
            return Standing.GONE
        return Standing(word)

    def cancel(self, job: JobFolder) -> None:
        self.cancelled.append(job.path.name)


def crew(folder: Path, names: str, plays: dict[str, list[str]] | None = None, **settings: int) -> Crew:
    left = [Task(name, ("true",)) for name in names]
    clock = [100.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    def next_task() -> Task | None:
        return left.pop(0) if left else None

    return Crew(
        Played(plays or {}), folder, next_task, clock=lambda: clock[0], sleep=sleep, **settings
    )  # type: ignore[arg-type]


def told(found: Crew) -> list[str]:
    return [f"{report.job.path.name} {report.news.value}" for report in found.reports()]


def test_tasks_go_through_one_after_the_other_or_as_many_at_once_as_may(tmp_path: Path) -> None:
    one = crew(tmp_path / "one", "abc")
    assert [words for words in told(one) if "ended" in words] == ["a.1 ended", "b.1 ended", "c.1 ended"]
    assert one.cluster.most == 1  # type: ignore[attr-defined]
    two = crew(tmp_path / "two", "abcd", at_once=3)
    assert len([words for words in told(two) if "ended" in words]) == 4
    assert two.cluster.most == 3  # type: ignore[attr-defined]


def test_a_job_that_dies_is_submitted_again_in_a_folder_of_its_own(tmp_path: Path) -> None:
    found = told(crew(tmp_path, "a", {"a.1": ["waiting", "running", "dies"]}))
    assert found[0] == "a.1 submitted" and found[-1] == "a.2 ended"
    assert "a.1 died" in found and "a.2 submitted" in found
    assert not JobFolder(tmp_path / "a.1").ended


def test_one_that_others_cancelled_is_repeated_too(tmp_path: Path) -> None:
    assert told(crew(tmp_path, "a", {"a.1": ["ended by others"]}))[-1] == "a.2 ended"


def test_a_task_is_not_tried_for_ever(tmp_path: Path) -> None:
    plays = {f"a.{number}": ["dies"] for number in range(1, 9)}
    reports = list(crew(tmp_path, "ab", plays, tries=3).reports())
    died = [report for report in reports if report.news is News.DIED]
    assert [report.last for report in died] == [False, False, True]
    assert reports[-1].task.name == "b" and reports[-1].news is News.ENDED


def test_an_exit_code_is_an_end_and_never_repeated(tmp_path: Path) -> None:
    found = crew(tmp_path, "a", {"a.1": ["ends 3"]})
    reports = list(found.reports())
    assert reports[-1].news is News.ENDED and reports[-1].job.code == 3
    assert len(tries(tmp_path, "a")) == 1


def test_nothing_is_concluded_from_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    assert told(crew(tmp_path, "a", {"a.1": ["running", *["unknown"] * 50, "ends 0"]}))[-1] == "a.1 ended"


def test_storage_may_be_late_to_show_the_end(tmp_path: Path) -> None:
    """The scheduler says that it is over before its last file is seen here."""
    late = int(LATE_SECONDS) - 1
    assert told(crew(tmp_path, "a", {"a.1": ["running", *["dies"] * late, "ends 0"]}))[-1] == "a.1 ended"
    assert len(tries(tmp_path, "a")) == 1


def test_a_job_that_outlived_its_submitter_is_found_and_not_doubled(tmp_path: Path) -> None:
    job = new_try(tmp_path, Task("a", ("true",)), {})
    job.write("submitted", {"cluster": "played", "id": "a.1"})
    assert told(crew(tmp_path, "a", {"a.1": ["running", "running", "ends 0"]}))[0] == "a.1 found"
    assert len(tries(tmp_path, "a")) == 1


def test_leaving_ends_every_job(tmp_path: Path) -> None:
    found = crew(tmp_path, "ab", {"a.1": ["running"], "b.1": ["waiting"]}, at_once=2)
    reports = found.reports()
    next(reports), next(reports)
    reports.close()  # type: ignore[attr-defined]
    assert sorted(found.cluster.cancelled) == ["a.1", "b.1"]  # type: ignore[attr-defined]


def test_what_waits_can_be_stopped_while_what_runs_is_let_through(tmp_path: Path) -> None:
    found = crew(tmp_path, "ab", {"a.1": ["running", "ends 0"], "b.1": ["waiting"]}, at_once=2)
    seen: list[str] = []
    for report in found.reports():
        seen.append(f"{report.job.path.name} {report.news.value}")
        if report.task.name == "b" and report.news is News.SUBMITTED:
            JobFolder(tmp_path / "a.1").write("started", {"node": "n"})
            found.stop_what_waits()
    assert "a.1 ended" in seen and "b.1 died" in seen and "b.2 submitted" not in seen


def test_names_that_begin_alike_are_different_tasks(tmp_path: Path) -> None:
    for name in ("block-1", "block-10", "block-1.5"):
        new_try(tmp_path, Task(name, ("true",)), {})
    assert [job.path.name for job in tries(tmp_path, "block-1")] == ["block-1.1"]


@pytest.mark.parametrize(
    "word", ["partition", "=x", "nodes=2", "exclusive=no", "a b=c", "x=a\nb", "array=0-9"]
)
def test_options_that_would_make_another_kind_of_job_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        checked_options([word])


def test_options_are_those_of_sbatch() -> None:
    assert checked_options(["partition=cpu", "--gpu_bind=none"]) == {"partition": "cpu", "gpu-bind": "none"}
