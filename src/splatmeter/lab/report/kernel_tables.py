"""The section on kernels: what the compiler said of each, before and after."""

from __future__ import annotations

from collections.abc import Iterable

from splatmeter.lab.log.kernel_lines import FIGURES, KernelReport, arrows
from splatmeter.lab.log.log_document import LogPhase
from splatmeter.lab.monitor.kernels import KernelChange
from splatmeter.lab.report.markup import Markup, join, tag
from splatmeter.lab.report.wording import UNKNOWN, html_table

NOTE = (
    "From the builds’ own logs (ptxas). A number before an arrow is the parent’s. Spills are bytes that a"
    " thread moves to local memory and back because registers are lacking; shared memory is what a kernel"
    " declares, without what a launch adds. They do not tell speed: the ratios do."
)


def kernel_tables(phases: Iterable[LogPhase]) -> Markup:
    """One table a phase, changed kernels first; empty if no build names any."""
    parts = [_phase(phase.name, phase.kernels) for phase in phases if phase.kernels]
    return join([tag("p", NOTE, class_="muted"), *parts]) if parts else Markup("")


def _phase(name: str, report: KernelReport) -> Markup:
    head = ("Kernel", "For", *(label.capitalize() for label, _ in FIGURES), "State")
    rows = [_row(change) for change in report.in_order()]
    told = [tag("p", f"ptxas warns: {text}", class_="muted") for text in report.warnings]
    return join([tag("h3", name), html_table(head, rows, f"{name}: {report.sentence()}"), *told])


def _row(change: KernelChange) -> tuple[object, ...]:
    state = "gone" if change.after is None else "new" if change.before is None else ""
    state = state or ("changed" if change.differs else "")
    figures = [figure or UNKNOWN for _, figure in arrows(change, everything=True)]
    return tag("code", change.name), change.architecture, *figures, state
