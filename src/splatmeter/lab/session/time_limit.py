"""When a run is taken to hang."""

from __future__ import annotations

from splatmeter.lab.environment import machine_identity
from splatmeter.lab.patience import SHORTEST_LIMIT, TIMES_THE_SLOWEST
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.session_plan import SessionPlan, protocol_of


def longest_run(lab: Lab, plan: SessionPlan) -> float:
    """When a run is taken to hang: the protocol's limit, or five times the slowest run of the first arm; 0
    while none has ended.
    """
    protocol = protocol_of(plan)
    if protocol.time_limit:
        return protocol.time_limit
    ended = Index(lab).rows(
        "SELECT max(json_extract(result, '$.process.seconds')) AS slowest FROM runs"
        " WHERE phase = ? AND protocol = ? AND machine = ? AND status = 'finished' AND block >= 0",
        (plan.arms[0].phase, plan.fingerprint, machine_identity()),
    )
    slowest = ended[0]["slowest"]
    return max(SHORTEST_LIMIT, TIMES_THE_SLOWEST * slowest) if slowest else 0.0
