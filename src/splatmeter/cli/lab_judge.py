"""`lab compare`, `lab verdict`, `lab gate`, `lab log`, `lab import`, `lab audit`: what it means."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from pathlib import Path

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_text import clean, table
from splatmeter.errors import MissingFile, UsageError
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.ratio import Estimate
from splatmeter.lab.json_files import finite, write_text
from splatmeter.lab.judgement.verdicts import (
    Judged,
    Judgements,
    judged,
    phase_verdict,
    state_of,
)
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.verdict_kinds import GAINS, Verdict, VerdictKind


def compare(chosen: Namespace) -> int:
    """Two phases; or, without names, every phase against its parent and the baseline."""
    lab = Lab(lab_folder(chosen)).checked()
    if bool(chosen.reference) != bool(chosen.candidate):
        raise UsageError("Name two phases, or none to compare all of them.")
    if chosen.reference:
        found = [judged(lab, chosen.reference, chosen.candidate, chosen.session)]
    else:
        found = _all(lab)
    if chosen.json:
        print(json.dumps([_record(item) for item in found], ensure_ascii=False, indent=1))
        return 0
    rows = []
    for item in found:
        speed = item.comparison.speed.main
        bounds = f"[{speed.interval_95.low:.4f}, {speed.interval_95.high:.4f}]"
        arms = [item.comparison.candidate, item.comparison.reference]
        rows.append([*arms, f"{speed.ratio:.4f}", bounds, speed.blocks, item.verdict.kind.value])
        rows += _parts(item)
    print(table(["phase", "against", "ratio", "95 % interval", "blocks", "verdict"], rows))
    if chosen.reference:
        _say(found[0].verdict)
    return 0


def _parts(item: Judged) -> list[list[object]]:
    """A line for every figure of an aim, and for every scene."""
    found: list[tuple[str, Estimate]] = [(f.name, f.estimate) for f in item.comparison.figures]
    for part in (*item.comparison.scenes, *item.comparison.machines):
        where = part.scene or part.machine
        found.append((f"speed on {where}", part.speed.main))
        found += [(f"{figure.name} on {where}", figure.estimate) for figure in part.figures]
    rows: list[list[object]] = []
    for name, estimate in found:
        bounds = f"[{estimate.interval_95.low:.4f}, {estimate.interval_95.high:.4f}]"
        rows.append([f"  {name}", "", f"{estimate.ratio:.4f}", bounds, estimate.blocks, ""])
    return rows


def _all(lab: Lab) -> list[Judged]:
    known = Judgements(lab)
    found = [item for phase in lab.phases.all() for item in known.against_parent_and_baseline(phase)]
    if not found:
        raise MissingFile(
            "No phase has been measured against another yet; `splatmeter lab run PHASE` does it."
        )
    return found


def verdict(chosen: Namespace) -> int:
    decided = _decided(chosen)
    if chosen.json:
        print(json.dumps(_verdict_record(decided), ensure_ascii=False, indent=1))
    else:
        _say(decided)
    return 0


def gate(chosen: Namespace) -> int:
    """0 go, 1 slower or quality lost, 2 undecided or not measured, 3 questionable; with --require also 2
    where the evidence has not come that far.
    """
    decided = _decided(chosen)
    lacking = "" if decided.exit_code else _lacking(decided, chosen.require)
    code = 2 if lacking else decided.exit_code
    if chosen.json:
        record = _verdict_record(decided) | {"exit_code": code, "lacking": lacking}
        print(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        print(decided.sentence)
        if lacking:
            print(lacking)
    return code


def _lacking(decided: Verdict, required: str | None) -> str:
    """What is missing to what was asked for; empty if nothing is."""
    shown = decided.gain or decided.kind
    if required is None or (required == "verified" and decided.kind is VerdictKind.VERIFIED):
        return ""
    if required in shown.value.split(" and "):
        return ""
    advice = "measure it once more, later" if decided.kind in GAINS else "measure it again"
    if decided.kind in GAINS and required != "verified":
        advice = "declare what it aims at (`splatmeter lab phase set PHASE --aim`) and measure it again"
    return f"Required: {required}; it is {decided.kind.value}: {advice} (`splatmeter lab run PHASE`)."


def adopt(chosen: Namespace) -> int:
    """A ground that later phases stand on needs a result that came twice."""
    lab = Lab(lab_folder(chosen)).checked()
    phase = lab.phases.get(chosen.phase)
    found = phase_verdict(lab, phase)
    if not chosen.anyway and (found is None or found.kind is not VerdictKind.VERIFIED):
        state = found.kind.value if found else state_of(lab, phase)
        raise UsageError(
            f"{phase.name} is {state}, not verified: measure it a second time with `splatmeter lab run"
            f" {phase.name}`, or say why it is adopted all the same: --anyway REASON."
        )
    lab.phases.save(dataclasses.replace(phase, adopted=utc_now(), adopted_because=chosen.anyway))
    print(f"{phase.name} is adopted; new phases build on it.")
    return 0


def _decided(chosen: Namespace) -> Verdict:
    lab = Lab(lab_folder(chosen)).checked()
    phase = lab.phases.get(chosen.phase)
    if chosen.against or chosen.session:
        return judged(lab, chosen.against or phase.parent or phase.name, phase.name, chosen.session).verdict
    found = phase_verdict(lab, phase)
    if found is None:
        state = state_of(lab, phase)
        raise MissingFile(
            f"{phase.name} is {state}, which has no speed verdict; `splatmeter lab run` measures it."
        )
    return found


def _say(decided: Verdict) -> None:
    print(decided.sentence)
    for reason in decided.reasons:
        if reason not in decided.sentence:
            print(f"  - {reason}")
    if decided.below_tolerated_difference:
        print("  - below the tolerated difference")


def _verdict_record(decided: Verdict) -> dict[str, object]:
    return {
        "verdict": decided.kind.value,
        "sentence": decided.sentence,
        "reasons": list(decided.reasons),
        "below_tolerated_difference": decided.below_tolerated_difference,
        "gain": decided.gain.value if decided.gain else None,
        "more_blocks": decided.more_blocks,
        "exit_code": decided.exit_code,
    }


def _figures(comparison: Comparison) -> list[dict[str, object]]:
    return [
        {
            "figure": figure.name,
            "unit": figure.unit,
            "reference": finite(figure.reference),
            "candidate": finite(figure.candidate),
            "ratio": finite(figure.estimate.ratio),
            "interval_95": finite(list(dataclasses.astuple(figure.estimate.interval_95))),
        }
        for figure in comparison.figures
    ]


def _record(item: Judged) -> dict[str, object]:
    speed = item.comparison.speed.main
    bounds = speed.interval_95
    return {
        "reference": item.comparison.reference,
        "candidate": item.comparison.candidate,
        "session": item.session,
        "ratio": finite(speed.ratio),
        "interval_95": finite([bounds.low, bounds.high]),
        "blocks": speed.blocks,
        "aim": item.comparison.aim.value,
        "figures": _figures(item.comparison),
        "scenes": [{"scene": part.scene} | _part(part) for part in item.comparison.scenes],
        "machines": [{"machine": part.machine} | _part(part) for part in item.comparison.machines],
        "machines_agree": item.comparison.agreement and item.comparison.agreement.holds,
        "findings": [finding.sentence for finding in item.comparison.findings],
        "quality": [result.sentence for result in item.comparison.quality],
        **_verdict_record(item.verdict),
    }


def _part(part: Comparison) -> dict[str, object]:
    return {
        "ratio": finite(part.speed.main.ratio),
        "interval_95": finite(list(dataclasses.astuple(part.speed.main.interval_95))),
        "blocks": part.speed.main.blocks,
        "figures": _figures(part),
    }


def log(chosen: Namespace) -> int:
    from splatmeter.lab.log import write_log
    from splatmeter.lab.log.log_contents import document

    lab = Lab(lab_folder(chosen)).checked()
    path: Path = chosen.file or lab.root / "LOG.md"
    previous = path.read_text("utf-8") if path.exists() else ""
    write_text(path, write_log(document(lab), previous))
    print(path)
    return 0


def import_log(chosen: Namespace) -> int:
    from splatmeter.lab.handlog import parse_log
    from splatmeter.lab.record.imported import import_log as taken

    lab = Lab(lab_folder(chosen)).checked()
    found = taken(lab, parse_log(_text(chosen.file)), str(chosen.file), utc_now())
    print(f"{len(found.added)} phases added: {', '.join(found.added) or 'none'}")
    if found.kept:
        print(f"{len(found.kept)} were there already and stay as they are: {', '.join(found.kept)}")
    return 0


def audit(chosen: Namespace) -> int:
    """Audits a written log, or everything measured here. Returns 3 if something makes a verdict questionable,
    4 if the log was not understood.
    """
    objection = ""
    if chosen.file is not None:
        from splatmeter.lab.handlog import audit_log, parse_log, understanding

        hand = parse_log(_text(chosen.file))
        findings = audit_log(hand)
        read = understanding(hand)
        objection = read.objection
        print(read.sentence)
    else:
        lab = Lab(lab_folder(chosen)).checked()
        findings = list(dict.fromkeys(f for item in _all(lab) for f in item.comparison.findings))
    for finding in findings:
        print(_line(finding))
    if findings or not objection:
        print(f"{len(findings)} findings" if findings else "nothing to object to")
    if objection:
        print(objection)
    if any(finding.questions_the_verdict for finding in findings):
        return 3
    return 4 if objection else 0


def _line(finding: Finding) -> str:
    where = f" ({clean(finding.where)})" if finding.where else ""
    return f"[{finding.severity.value}] {finding.kind}{where}: {clean(finding.sentence)}"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        raise MissingFile(f"{path} cannot be read; check its name and its rights.") from None
