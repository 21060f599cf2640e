"""The whole page as one string: a pure function of the document."""

from __future__ import annotations

import base64
import dataclasses
import hashlib

from splatmeter.lab.report import sections
from splatmeter.lab.report.bars import time_per_pass
from splatmeter.lab.report.curves import loss_over_time, psnr_over_time
from splatmeter.lab.report.forest import AIMS, MACHINES, SCENES, forest
from splatmeter.lab.report.history_section import history_section
from splatmeter.lab.report.kernel_tables import kernel_tables
from splatmeter.lab.report.markup import Markup, join, tag
from splatmeter.lab.report.memory_chart import memory_over_time
from splatmeter.lab.report.report_document import ReportDocument
from splatmeter.lab.report.scatter import clouds, scatter
from splatmeter.lab.report.slider import slider
from splatmeter.lab.report.web_files import script, style

LARGEST = 10_000_000
"""Bytes of a page that still travels by mail."""

Part = tuple[str, str, Markup]
"""Anchor, heading, content."""
FIRST = "model"
"""What everybody wants to see before any table."""


def page(document: ReportDocument) -> str:
    """Views are left out, last first, should the page grow beyond the limit."""
    text = _page(document)
    while len(text.encode("utf-8", "replace")) >= LARGEST and document.pictures:
        document = dataclasses.replace(document, pictures=document.pictures[:-1])
        text = _page(document)
    return text


def _page(document: ReportDocument) -> str:
    parts = _parts(document)
    body = tag(
        "body",
        _header(document, parts),
        tag(
            "main",
            *(_section(part) for part in parts if part[0] == FIRST),
            sections.summary_section(document),
            *(_section(part) for part in parts if part[0] != FIRST),
        ),
        tag(
            "footer",
            "Made by splatmeter lab report",
            f" on {document.generated}" if document.generated else "",
        ),
        tag("script", script()),
    )
    return f"<!doctype html>\n{tag('html', _head(document), body, lang='en')}\n"


def _section(part: Part) -> Markup:
    anchor, name, content = part
    return tag("section", tag("h2", name), content, id=anchor, class_=_length(anchor))


def _length(anchor: str) -> str | None:
    """Long sections may break across printed pages."""
    return "long" if anchor in ("evidence", "lineage", "history", "memory", "audit", "kernels") else None


def _head(document: ReportDocument) -> Markup:
    """The policy lets nothing in but this style and script, known by their hashes, and pictures inside."""
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style())}'; script-src '{_hash(script())}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{document.title} – splatmeter report"),
        tag("link", rel="icon", href="data:,"),
        tag("style", style()),
    )


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _header(document: ReportDocument, parts: list[Part]) -> Markup:
    words = [
        document.configuration[key]
        for key in ("Dataset", "Resolution", "Training")
        if key in document.configuration
    ]
    entries = [(anchor, name) for anchor, name, _ in parts]
    entries.insert(int(bool(document.model)), ("phases", "Phases"))
    links = [tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name in entries]
    return tag(
        "header",
        tag("h1", document.title),
        tag("p", " · ".join(words), class_="muted") if words else "",
        tag("button", "Dark theme", id="theme", type="button", hidden=True),
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )


def _parts(document: ReportDocument) -> list[Part]:
    order = document.order()
    parts: list[Part] = []
    if document.model:
        parts.append((FIRST, "The model", sections.model(document.model)))
    if document.ratios:
        parts.append(("ratios", "Speed ratios", forest(document.ratios)))
    if scenes := document.scene_rows():
        parts.append(("scenes", "Speed ratios, scene by scene", forest(scenes, SCENES)))
    if machines := document.machine_rows():
        parts.append(("machines", "Speed ratios, machine by machine", forest(machines, MACHINES)))
    if figures := document.figure_rows():
        parts.append(("aims", "What phases aimed at", forest(figures, AIMS)))
    parts.append(("lineage", "Lineage and verdicts", sections.lineage(document)))
    if document.history and document.history.tracks:
        parts.append(("history", "History", history_section(document.history, order)))
    found = clouds(document)
    if found:
        parts.append(("tradeoff", "Speed against quality", scatter(found, document.quality)))
    if document.pictures:
        parts.append(("renders", "Renders against photos", slider(document.pictures, document.best())))
    if any(curve.points for curve in document.curves):
        parts.append(("loss", "Loss over time", loss_over_time(document.curves, order)))
    if any(curve.evaluations for curve in document.curves):
        parts.append(("psnr", "PSNR over time", psnr_over_time(document.curves, order)))
    if document.passes:
        parts.append(("passes", "Time per pass", time_per_pass(document.passes)))
    if document.memory:
        parts.append(("memory", "Memory over time", memory_over_time(document.memory, order)))
    if told := kernel_tables(document.phases):
        parts.append(("kernels", "Kernels, as the compiler tells", told))
    parts.append(("audit", "Audit", sections.audit_section(document.findings, len(document.ratios))))
    parts.append(("method", "How it was measured", _method(document)))
    if document.runs:
        parts.append(("evidence", "Evidence: every run", sections.evidence_section(document)))
    return parts


def _method(document: ReportDocument) -> Markup:
    notes = [*document.notes, document.noise] if document.noise else list(document.notes)
    return join(
        [
            sections.facts(document.configuration),
            tag("h3", "Machine") if document.machine else "",
            sections.facts(document.machine),
            tag("h3", "Procedure") if notes else "",
            tag("ul", *(tag("li", note) for note in notes)) if notes else "",
        ]
    )
