"""Blocks as jobs (`--on slurm`, `--on local`), and `lab merge`: what a lab does beyond one machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the parser needs this module, and must be there at once
    from splatmeter.lab.record.lab import Lab
    from splatmeter.lab.session.session_plan import SessionPlan


def add_job_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("blocks as jobs")
    group.add_argument(
        "--on", choices=("slurm", "local"), help="one job a block, on a node of its own or on this machine"
    )
    group.add_argument(
        "--jobs", type=int, default=0, metavar="N",
        help="at most so many at once (default: all on a cluster, 1 on this machine)",
    )  # fmt: skip
    group.add_argument(
        "--job-option", action="append", default=[], metavar="NAME=VALUE",
        help="for sbatch, such as partition=cpu or nodelist=n1",
    )  # fmt: skip
    group.add_argument(
        "--job-minutes", type=int, default=0, metavar="N", help="a job's time limit (default: a day)"
    )


def job_wishes(chosen: argparse.Namespace) -> dict[str, Any]:
    """{} where the lab runs its blocks itself; refused before anything is written where they cannot run."""
    from splatmeter.jobs.cluster import cluster_of, wanted_of

    wanted = wanted_of(chosen.on, chosen.jobs, chosen.job_minutes, chosen.job_option)
    if wanted is None:
        return {}
    cluster_of(chosen.on, wanted)
    return {
        "on": chosen.on, "at_once": chosen.jobs, "minutes": wanted.minutes, "options": dict(wanted.options),
    }  # fmt: skip


def session_of(lab: Lab, plan: SessionPlan) -> Any:
    """By jobs, if the plan says so; else in this process."""
    from splatmeter.lab.executor import ChildProcess
    from splatmeter.lab.session.session import Session

    if not plan.jobs:
        return Session(lab, plan, ChildProcess())
    from splatmeter.jobs.cluster import Wanted, cluster_of
    from splatmeter.lab.session.by_jobs import JobSession

    wanted = Wanted(int(plan.jobs["minutes"]), dict(plan.jobs["options"]))
    return JobSession(lab, plan, cluster_of(str(plan.jobs["on"]), wanted))


def merge(chosen: argparse.Namespace) -> int:
    """All labs or none; what contradicts is told one by one."""
    from splatmeter.cli.lab import lab_folder
    from splatmeter.cli.lab_text import clean
    from splatmeter.lab.record.index import Index
    from splatmeter.lab.record.lab import Lab
    from splatmeter.lab.record.merge import merge as merged
    from splatmeter.lab.record.merge import refused

    lab = Lab(lab_folder(chosen)).checked()
    found = merged(lab, [Lab(path).checked() for path in chosen.labs])
    problem = refused(found)
    if problem is not None:
        for words in dict.fromkeys(words for merging in found for words in merging.conflicts):
            print(clean(words))
        raise problem
    runs = Index(lab).rebuild()
    for merging in found:
        print(_told(merging))
    print(f"The index has {runs} runs; `splatmeter lab compare` tells what they say together.")
    return 0


def _told(merging: Any) -> str:
    words = [f"{len(merging.new)} new session{'s' if len(merging.new) != 1 else ''}"]
    words += [f"{len(merging.grown)} that went on"] if merging.grown else []
    words += [f"{len(merging.known)} known already"] if merging.known else []
    left = ", ".join(merging.unfinished)
    more = f"; not ended there, so left out: {left}" if left else ""
    return f"{merging.source.root}: {', '.join(words)}{more}."
