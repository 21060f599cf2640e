"""What the sessions of a plan came to, as a Markdown table: ratio, interval, noise, blocks, verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.lab.environment import cpu
from splatmeter.lab.judgement.verdicts import Judged, Judgements
from splatmeter.lab.log.escape import cell, inline
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.plan.replay import Measurement, Replay
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import result_from_text
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.blocks import done_blocks, repetitions

_HEAD = ("measurement", "candidate", "against", "ratio", "95 % interval", "s_d", "blocks", "verdict", "gate")


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """One pair of one session; `expected` is empty where the plan expects nothing."""

    measurement: Measurement
    item: Judged
    repeated: int
    remark: str = ""

    @property
    def expected(self) -> tuple[str, ...]:
        return self.measurement.expect.get(self.item.comparison.candidate.partition("#")[0], ())

    @property
    def too_noisy(self) -> bool:
        most = self.measurement.most_deviation
        return bool(most) and not self.item.comparison.speed.main.log_deviation <= most

    @property
    def as_expected(self) -> bool:
        right = not self.expected or self.item.verdict.kind.value in self.expected
        return right and not self.too_noisy

    def row(self) -> list[str]:
        speed = self.item.comparison.speed.main
        bounds = speed.interval_95
        interval = "-" if math.isinf(bounds.high) else f"[{bounds.low:.4f}, {bounds.high:.4f}]"
        arms = [self.item.comparison.candidate, self.item.comparison.reference]
        deviation = f"{100 * speed.log_deviation:.2f} %"
        repeated = f" ({self.repeated} repeated)" if self.repeated else ""
        decided = [f"{speed.blocks}{repeated}", f"**{self.item.verdict.kind.value}**"]
        figures = [f"{speed.ratio:.4f}", interval, deviation, *decided, str(self.item.verdict.exit_code)]
        return [self.measurement.name, *arms, *figures]

    def told(self) -> str:
        """What was expected, and whether it came."""
        if not self.expected:
            return ""
        wanted = " or ".join(self.expected)
        if self.too_noisy:
            noise = 100 * self.item.comparison.speed.main.log_deviation
            limit = 100 * self.measurement.most_deviation
            return f"expected {wanted}; s_d of {noise:.2f} % is above {limit:.3g} %: too noisy a machine"
        return f"expected {wanted}: {'as expected' if self.as_expected else 'NOT as expected'}"


def session_of(lab: Lab, wanted: Measurement) -> str:
    """The newest session made for this measurement and not refused; empty if there is none."""
    found = ""
    for name in plans.in_order(lab):
        plan, folder = plans.load(lab, name), lab.sessions / name
        same = (plan.kind, plan.order_seed) == (wanted.kind, wanted.order_seed)
        refused = (folder / "ended.json").exists() and not done_blocks(folder)
        if same and [arm.phase for arm in plan.arms] == wanted.arms and not refused:
            found = name
    return found


def measured_pairs(known: Judgements, plan: Replay) -> list[MeasuredPair]:
    lab = known.lab
    found: list[MeasuredPair] = []
    for measurement in plan.sessions:
        session = session_of(lab, measurement)
        again = len(repetitions(lab.sessions / session))
        for pair in _pairs(lab, measurement):
            remark = monitor_share(lab, session) if measurement.kind == "overhead" else ""
            found.append(MeasuredPair(measurement, known.judged(*pair, session), again, remark))
    return found


def monitor_share(lab: Lab, session: str) -> str:
    """The monitor's own CPU time, counted by the system and not inferred from how fast the arms were."""
    rows = Index(lab).rows("SELECT result FROM runs WHERE session = ? AND counted = 1", (session,))
    costs = [result_from_text(row["result"]).monitor for row in rows]
    known = [cost.share for cost in costs if cost is not None and cost.share is not None]
    if not known:
        return ""
    return (
        f"the monitor's own CPU time, measured directly: {100 * mean(known):.2f} % of the clock of a run,"
        f" {100 * max(known):.2f} % at most"
    )


def _pairs(lab: Lab, measurement: Measurement) -> list[tuple[str, str]]:
    """(reference, candidate)"""
    if measurement.kind == "record":
        return []
    first, *others = measurement.arms
    parents = {name: lab.phases.get(name).parent for name in others}
    return [(parent if parent in measurement.arms else first, name) for name, parent in parents.items()]


def results_table(plan: Replay, found: Sequence[MeasuredPair], protocol: Protocol) -> str:
    """The whole results file."""
    machine = cpu()
    lines = [
        f"# {inline(plan.title)}",
        "",
        f"{inline(machine['model'])}, {machine['logical']} logical processors. {_how(protocol)}",
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{'---|' * len(_HEAD)}",
        *(f"| {' | '.join(cell(text) for text in outcome.row())} |" for outcome in found),
        "",
    ]
    for outcome in found:
        lines.append(f"- **{inline(outcome.measurement.name)}**: {inline(outcome.item.verdict.sentence)}")
        lines += [f"  - {inline(reason)}" for reason in outcome.item.verdict.reasons]
        lines += [f"  - {inline(words)}" for words in (outcome.remark, outcome.told()) if words]
    return "\n".join([*lines, ""])


def _how(protocol: Protocol) -> str:
    timed = protocol.iterations - protocol.warm_up_steps
    text = (
        f"Every run: iterations {protocol.start_iteration} to {protocol.end_iteration} in a fresh process, "
        f"{timed} of them timed, after {protocol.warm_up_steps} of warm-up."
    )
    if protocol.most_foreign_cpu:
        text += (
            f" A block in which others used more than {100 * protocol.most_foreign_cpu:g} % of the machine "
            f"was run again (at most {protocol.repeats} ×)."
        )
    return text
