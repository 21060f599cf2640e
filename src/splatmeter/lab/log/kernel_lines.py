"""Registers, spills and shared memory of a phase's kernels, beside its parent's, as lines of the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from splatmeter.lab.log.escape import inline
from splatmeter.lab.monitor import kernels
from splatmeter.lab.monitor.kernels import Kernel, KernelChange
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.kept_builds import _record, kernels_of

MOST_LINES = 24
"""Kernels that are listed one by one: those that changed, then those that spill, then the others."""
MOST_WARNINGS = 4
FIGURES = (
    ("registers", "registers"),
    ("spill stores", "spill_store_bytes"),
    ("spill loads", "spill_load_bytes"),
    ("stack", "stack_bytes"),
    ("shared memory", "shared_bytes"),
)
"""Label and field of a Kernel; all but the first are bytes."""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """From the builds' own logs. `parent` is the phase whose build stands before the arrows, or empty."""

    parent: str
    changes: tuple[KernelChange, ...]
    warnings: tuple[str, ...] = ()

    @property
    def differing(self) -> int:
        return sum(change.differs for change in self.changes)

    @property
    def spilling(self) -> int:
        return sum(bool(change.after and change.after.spills) for change in self.changes)

    def sentence(self) -> str:
        count = len(self.changes)
        architectures = list(dict.fromkeys(change.architecture for change in self.changes))
        total = f"{count} kernel{'s' if count != 1 else ''} for {', '.join(architectures)}"
        spills = f", {self.spilling or 'none'} with spills"
        if not self.parent:
            return f"{total}{spills}"
        if not self.differing:
            return f"{total}, as in {self.parent}{spills}"
        return f"{total}, {self.differing} other than in {self.parent}{spills}"

    def in_order(self) -> list[KernelChange]:
        return sorted(
            self.changes, key=lambda change: (not change.differs, not (change.after and change.after.spills))
        )


def kernel_lines(report: KernelReport | None) -> Iterator[str]:
    if report is None:
        return
    yield f"- **Kernels, as ptxas tells:** {inline(report.sentence())}"
    changes = report.in_order()
    for change in changes[:MOST_LINES]:
        yield f"  - {code(change.name)} for {inline(change.architecture)}: {_words(change)}"
    if len(changes) > MOST_LINES:
        yield f"  - and {len(changes) - MOST_LINES} more; all of them are in the session's builds folder"
    yield from (f"  - ptxas warns: {inline(text)}" for text in report.warnings[:MOST_WARNINGS])


def code(name: str) -> str:
    """A name as code: a backtick inside would end it."""
    return f"`{' '.join(name.replace('`', chr(39)).split())}`"


def _words(change: KernelChange) -> str:
    if change.after is None:
        return "gone"
    new = "new; " if change.before is None else ""
    return new + ", ".join(f"{label} {figure}" for label, figure in arrows(change) if figure)


def arrows(change: KernelChange, everything: bool = False) -> Iterator[tuple[str, str]]:
    """Each figure as '96 → 40', or '96' where nothing changed; empty where both are 0."""
    for label, field in FIGURES:
        before, after = (_figure(kernel, field) for kernel in (change.before, change.after))
        unit = "" if field == "registers" else " B"
        if not everything and not before and not after and field not in ("registers", "spill_store_bytes"):
            yield label, ""
        elif change.before is None or change.after is None or before == after:
            shown = after if change.after is not None else before
            yield label, "unknown" if shown is None else f"{shown}{unit}"
        else:
            left, right = ("unknown" if value is None else str(value) for value in (before, after))
            yield label, f"{left} → {right}{unit}"


def _figure(kernel: Kernel | None, field: str) -> int | None:
    return getattr(kernel, field) if kernel is not None else None


def kernel_report(lab: Lab, phase: Phase, session: str = "") -> KernelReport | None:
    """The phase's kernels beside its parent's; None where its build names none."""
    before = kernels_of(lab, phase.parent, session) if phase.parent else []
    after = kernels_of(lab, phase.name, session)
    if not after:
        return None
    changes = kernels.compare_kernels(before if before else after, after)
    names = kernels.short_names(kernels.readable(change.name for change in changes))
    return KernelReport(
        phase.parent if before else "",
        tuple(dataclasses.replace(change, name=names[change.name]) for change in changes),
        tuple(map(str, _record(lab, phase.name, session).get("warnings", ()))),
    )
