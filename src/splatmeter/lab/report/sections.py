"""The parts of the page that are words and tables: summary, lineage, audit, method, evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from splatmeter.lab.log.log_document import LogPhase, MetricsFigure
from splatmeter.lab.report.markup import Markup, join, tag, text
from splatmeter.lab.report.report_document import (
    ModelPage,
    RatioRow,
    ReportDocument,
    RunRow,
    phase_anchor,
    run_anchor,
)
from splatmeter.lab.report.wording import (
    UNKNOWN,
    chip,
    figure_cell,
    html_table,
    metric_name,
    metric_text,
    rate_text,
    ratio_cell,
    size_text,
)
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.verdict_kinds import GAINS, VerdictKind

_TONES = {Severity.WRONG: "bad", Severity.DOUBT: "doubt", Severity.NOTE: "open"}


def summary_section(document: ReportDocument) -> Markup:
    """A few cards, then all phases in one table; every figure leads to its runs."""
    metrics = [
        n for n in ("psnr", "ssim", "lpips", "l1") if any(n in _last(p).metrics for p in document.phases)
    ]
    head = (
        "Phase",
        "Verdict",
        "Against its parent",
        "it/s",
        *map(metric_name, metrics),
        "Gaussians",
        "Peak memory",
    )
    rows = [_phase_row(document, phase, metrics) for phase in document.phases]
    return join([_cards(document), tag("section", tag("h2", "Phases"), html_table(head, rows), id="phases")])


def model(page: ModelPage) -> Markup:
    """Beside this page rather than inside: a model has as many bytes as a hundred reports."""
    if not page.run:
        link = tag("a", "Look around in the finished model", href=page.address)
        return tag("p", link, f" ({page.size})", f": {page.note}" if page.note else "", ".")
    words = f" ({page.size}): the best of the models that runs kept, to turn and to fly through. It is "
    return tag(
        "p",
        tag("a", f"Look around in the model of {page.phase}", href=page.address),
        words,
        tag("a", page.run, href=f"#{run_anchor(page.run)}"),
        "’s.",
    )


def _cards(document: ReportDocument) -> Markup:
    counted = sum(row.counted for row in document.runs)
    sessions = len({row.session for row in document.runs})
    kinds = [phase.verdict.kind for phase in document.phases if phase.verdict]
    won = sum(kind in (*GAINS, VerdictKind.VERIFIED) for kind in kinds)
    other = any(phase.aim for phase in document.phases)
    questions = sum(finding.questions_the_verdict for finding in document.findings)
    floor = next((row.floor for row in document.ratios if row.floor is not None), None)
    measured = sum(kind not in (VerdictKind.PLANNED, VerdictKind.ON_HOLD) for kind in kinds)
    cards = [
        ("Phases", len(document.phases), f"{measured} with a measured verdict"),
        ("Gains" if other else "Faster", won, "beyond noise, quality kept"),
        ("Runs counted", counted, f"in {sessions} session{'s' if sessions != 1 else ''}"),
        ("Noise floor", figure_cell(None if floor is None else 100 * floor, 2, "%"), "from an A/A control"),
        ("Audit", questions, "objection" if questions == 1 else "objections"),
    ]
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value, tag("small", words))) for name, value, words in cards),
        class_="cards",
    )


def _phase_row(document: ReportDocument, phase: LogPhase, metrics: list[str]) -> tuple[object, ...]:
    runs = document.runs_of(phase.name)
    own = next((r for r in document.ratios if (r.candidate, r.reference) == (phase.name, phase.parent)), None)
    ratio = ratio_cell(own.ratio, own.low, own.high) if own else UNKNOWN
    found = _last(phase).metrics
    return (
        tag("a", phase.name, href=f"#{phase_anchor(phase.name)}"),
        chip(phase.verdict.kind if phase.verdict else None, phase.state),
        _traced(ratio, [run for block in own.blocks for run in block.runs] if own else ()),
        _traced(rate_text(phase.speed.steps_per_second if phase.speed else None), _names(runs)),
        *(_traced(metric_text(name, found.get(name)), _names(runs)) for name in metrics),
        _traced(figure_cell(phase.gaussians, 0), _names(runs)),
        _traced(size_text(phase.training_peak_bytes), _names(runs)),
    )


def _names(rows: Iterable[RunRow]) -> list[str]:
    return [row.run for row in rows]


def _last(phase: LogPhase) -> MetricsFigure:
    found = phase.test or phase.train
    return found[-1] if found else MetricsFigure(0, {})


def _traced(words: str, runs: Iterable[str]) -> object:
    """A number as a link to the first of the runs behind it; all of them are named on hovering."""
    runs = [run for run in runs if run]
    if words == UNKNOWN or not runs:
        return words
    named = ", ".join(runs[:40]) + (f" and {len(runs) - 40} more" if len(runs) > 40 else "")
    title = f"from {len(runs)} run{'s' if len(runs) != 1 else ''}: {named}"
    return tag("a", words, href=f"#{run_anchor(runs[0])}", title=title, class_="traced")


def lineage(document: ReportDocument) -> Markup:
    """A tree from the baseline down; a phase whose parent is gone, or its own ancestor, is not lost."""
    names = {phase.name for phase in document.phases}
    children: dict[str, list[LogPhase]] = {}
    for phase in document.phases:
        children.setdefault(phase.parent if phase.parent in names else "", []).append(phase)
    seen: set[str] = set()
    tree = _branch(children, "", document, seen)
    lost = [phase for phase in document.phases if phase.name not in seen]
    rest = [tag("li", _phase(phase, document)) for phase in lost]
    return tag("ol", tree, *rest, class_="tree")


def _branch(
    children: Mapping[str, list[LogPhase]], parent: str, document: ReportDocument, seen: set[str]
) -> Markup:
    items: list[Markup] = []
    for phase in children.get(parent, ()):
        if phase.name in seen:
            continue
        seen.add(phase.name)
        below = _branch(children, phase.name, document, seen)
        items.append(tag("li", _phase(phase, document), tag("ol", below) if below else ""))
    return join(items)


def _phase(phase: LogPhase, document: ReportDocument) -> Markup:
    own = [row for row in document.ratios if row.candidate == phase.name and not row.control]
    title = tag("span", phase.title, class_="muted") if phase.title and phase.title != phase.name else ""
    head = tag(
        "div",
        tag("strong", phase.name, id=phase_anchor(phase.name)),
        chip(phase.verdict.kind if phase.verdict else None, phase.state),
        title,
        class_="head",
    )
    sentence = tag("p", phase.verdict.sentence) if phase.verdict else ""
    told = tag("p", phase.remark, class_="muted") if phase.remark else ""
    notes = tag("pre", _emphasised(phase.notes)) if phase.notes else ""
    return join([head, sentence, told, notes, _more(phase, own)])


def _emphasised(words: str) -> Markup:
    """Only **this** is taken for Markdown; the rest stands as it was written."""
    parts = words.split("**")
    if len(parts) % 2 == 0:
        return text(words)
    return join(tag("strong", part) if place % 2 else part for place, part in enumerate(parts))


def _more(phase: LogPhase, own: list[RatioRow]) -> Markup:
    lines: list[object] = [tag("code", line) for line in phase.configuration]
    lines += [f"Code: {line}" for line in phase.code_changes]
    if phase.verdict:
        lines += [reason for reason in phase.verdict.reasons if reason not in phase.verdict.sentence]
    lines += [
        f"Against {row.reference}: {ratio_cell(row.ratio, row.low, row.high)}, {row.verdict.kind.value}"
        f" (session {row.session})"
        for row in own
    ]
    lines += [sentence for row in own[:1] for sentence in row.quality]
    unique = list(dict.fromkeys(lines))
    if not unique:
        return Markup("")
    items = tag("ul", *(tag("li", line) for line in unique))
    return tag("details", tag("summary", "What it changes, and why the verdict"), items)


def audit_section(findings: tuple[Finding, ...], compared: int) -> Markup:
    if not findings and not compared:
        return tag("p", "Nothing has been compared yet, so there was nothing to audit.")
    if not findings:
        return tag("p", f"Nothing to object to in {compared} comparison{'s' if compared != 1 else ''}.")
    ordered = sorted(findings, key=lambda finding: list(_TONES).index(finding.severity))
    items = [
        tag(
            "li",
            tag("strong", f"{finding.severity.value}: {finding.kind}"),
            tag("p", finding.sentence),
            tag("code", finding.where) if finding.where else "",
            class_=_TONES[finding.severity],
        )
        for finding in ordered
    ]
    return tag("ul", *items, class_="findings")


def facts(entries: Mapping[str, str]) -> Markup:
    return tag("dl", *(join([tag("dt", k), tag("dd", v)]) for k, v in entries.items()), class_="facts")


def evidence_section(document: ReportDocument) -> Markup:
    """Every run, also those that failed or do not count, by session; the name leads to its folder."""
    metrics = [n for n in ("psnr", "ssim", "lpips", "l1") if any(n in row.metrics for row in document.runs)]
    sessions: dict[str, list[RunRow]] = {}
    for row in document.runs:
        sessions.setdefault(row.session, []).append(row)
    return join(_session(name, rows, metrics) for name, rows in sessions.items())


def _session(name: str, rows: list[RunRow], metrics: list[str]) -> Markup:
    columns = ("Run", "Phase", "Seed", "State", "it/s", "Loss", *map(metric_name, metrics), "Gaussians")
    head = tag(
        "tr", *(tag("th", column, scope="col") for column in (*columns, "Peaks: training, evaluation"))
    )
    inside = tag("table", tag("thead", head), tag("tbody", *(_run(row, metrics) for row in rows)))
    phases = ", ".join(dict.fromkeys(row.phase for row in rows))
    words = f" · {len(rows)} run{'s' if len(rows) != 1 else ''} of {phases}"
    label = f"Runs of session {name}"
    scroll = tag("div", inside, class_="scroll runs", tabindex="0", role="group", aria_label=label)
    return tag("details", tag("summary", tag("code", name), words), scroll)


def _run(row: RunRow, metrics: list[str]) -> Markup:
    name = tag("code", row.run.removeprefix(f"{row.session}/blocks/"))
    peaks = f"{size_text(row.training_peak_bytes)}, {size_text(row.evaluation_peak_bytes)}"
    cells = (
        f"{row.phase} on {row.scene}" if row.scene else row.phase,
        UNKNOWN if row.seed is None else row.seed,
        row.status if row.counted else f"{row.status}, not counted",
        rate_text(row.steps_per_second),
        figure_cell(row.loss, 5),
        *(metric_text(name, row.metrics.get(name)) for name in metrics),
        figure_cell(row.gaussians, 0),
        peaks,
    )
    first = tag(
        "th",
        tag("a", name, href=row.folder, title=f"{row.run}, {row.started}") if row.folder else name,
        scope="row",
    )
    return tag("tr", first, *(tag("td", cell) for cell in cells), id=run_anchor(row.run))
