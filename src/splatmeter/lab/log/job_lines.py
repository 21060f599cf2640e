"""Jobs and machines in the words of the log; nothing here names a node."""

from __future__ import annotations

from collections.abc import Sequence

from splatmeter.jobs.folder import JobFolder
from splatmeter.lab.compare.machines import FEWEST_ON_A_MACHINE, LEVEL
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult
from splatmeter.lab.session.session_plan import in_order, load

_CLUSTERS = {"slurm": "SLURM jobs, each on a node of its own", "local": "jobs on one machine"}


def job_notes(lab: Lab) -> list[str]:
    """How many jobs there were, and how many of them died and were repeated; [] without any."""
    notes: list[str] = []
    for name in in_order(lab):
        on = str(load(lab, name).jobs.get("on", ""))
        jobs = [JobFolder(path) for path in (lab.sessions / name / "jobs").glob("*.*") if path.is_dir()]
        if not on or not jobs:
            continue
        died, stopped = sum(job.died for job in jobs), sum(bool(job.read("cancelled")) for job in jobs)
        words = f"{died} died and {'was' if died == 1 else 'were'} repeated" if died else "none died"
        words += f", {stopped} ended because the lab was interrupted" if stopped else ""
        notes.append(
            f"Jobs: every block of {name} is one job ({len(jobs)} {_CLUSTERS.get(on, on)}; {words}). Each"
            " primes itself."
        )
    return notes


def machine_notes(results: Sequence[RunResult]) -> list[str]:
    """The rule, where there were several."""
    if len({result.identity.which_machine for result in results}) < 2:
        return []
    return [
        "Machines: each is a stratum with a ratio of its own. They are pooled only if they agree"
        f" (Brown-Forsythe test at {100 * LEVEL:.0f} %, at least {FEWEST_ON_A_MACHINE} blocks on each); a"
        " machine that is shown to lose decides."
    ]


def machine_lines(results: Sequence[RunResult]) -> dict[str, str]:
    """Processor and memory of each machine, where there were several."""
    found: dict[str, str] = {}
    for result in results:
        cpu = result.facts.get("cpu") or {}
        limits = result.facts.get("limits") or {}
        usable = limits.get("usable_cpus", cpu.get("logical", "?"))
        memory = f"{cpu.get('memory_bytes', 0) / 1e9:.1f} GB of memory"
        words = f"{cpu.get('model', 'unknown')}, {usable} usable processors, {memory}"
        found.setdefault(result.identity.which_machine, words)
    return {f"Machine {name}": words for name, words in sorted(found.items())} if len(found) > 1 else {}
