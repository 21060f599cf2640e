"""What stands on the page, and that it stands there truly."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from sample_lab import trainer, write_renders
from scripted_lab import add, carried_out, make_lab

from splatmeter.cli.main import main
from splatmeter.lab.judgement.verdicts import judged
from splatmeter.lab.log.log_document import LogPhase, MetricsFigure, SpeedFigure
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report import write
from splatmeter.lab.report.page import LARGEST, page
from splatmeter.lab.report.pictures import find_renders, read_pictures
from splatmeter.lab.report.report_contents import report
from splatmeter.lab.report.report_document import (
    BlockRatio,
    Curve,
    MemoryTrace,
    ModelPage,
    PassTimes,
    Picture,
    RatioRow,
    ReportDocument,
    RunRow,
    Stage,
    run_anchor,
)
from splatmeter.lab.report.write import KeptModel
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"
VOID = {"meta", "input", "img", "br", "link"}


class Outline(HTMLParser):
    """Elements as a browser would see them; complains about tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile_document() -> ReportDocument:
    """Every text that can come from outside is hostile."""
    verdict = Verdict(VerdictKind.FASTER, HOSTILE, (HOSTILE,))
    phase = LogPhase(
        HOSTILE, HOSTILE, "", verdict, HOSTILE, SpeedFigure(10.0), test=(MetricsFigure(1, {"psnr": 25.0}),),
        configuration=(HOSTILE,), code_changes=(HOSTILE,), notes=HOSTILE + "**", remark=HOSTILE,
    )  # fmt: skip
    block = BlockRatio(0, 1.1, (HOSTILE, HOSTILE))
    return ReportDocument(
        title=HOSTILE, generated=HOSTILE, configuration={"Dataset": HOSTILE, HOSTILE: HOSTILE},
        machine={HOSTILE: HOSTILE}, phases=(phase, dataclasses.replace(phase, name="x", parent=HOSTILE)),
        ratios=(RatioRow("x", HOSTILE, 1.1, 1.0, 1.2, (block,), verdict, HOSTILE, 0.01, quality=(HOSTILE,)),),
        runs=(
            RunRow(HOSTILE, HOSTILE, "./a", HOSTILE, status=HOSTILE, message=HOSTILE, started=HOSTILE,
                   steps_per_second=10.0, metrics={"psnr": 25.0}),
        ),
        curves=(Curve(HOSTILE, HOSTILE, ((0.0, 1.0), (1.0, 0.5)), ((1.0, 10, 25.0),)),),
        memory=(
            MemoryTrace(HOSTILE, HOSTILE, ((0.0, 1), (1.0, 2)), (Stage(HOSTILE, 0.0, 1.0),), ((HOSTILE, 2),),
                        HOSTILE),
        ),
        passes=(PassTimes(HOSTILE, (HOSTILE,), {HOSTILE: 1.0}, 0.1),),
        pictures=(Picture(HOSTILE, "data:,", {HOSTILE: "data:,"}, (2, 1), {HOSTILE: HOSTILE}),),
        findings=(Finding(HOSTILE, HOSTILE, Severity.WRONG, HOSTILE),), notes=(HOSTILE,), noise=HOSTILE,
    )  # fmt: skip


def test_nothing_hostile_becomes_an_element_or_a_handler() -> None:
    text = page(hostile_document())
    outline = Outline(text)
    assert len(outline.named("script")) == 1
    assert {image["src"] for image in outline.named("img")} == {"data:,"}
    for name, attributes in outline.elements:
        assert not [key for key in attributes if key.startswith("on")], name
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_the_page_is_whole_and_asks_for_nothing_outside(html: str) -> None:
    outline = Outline(html)
    assert len(html.encode()) < LARGEST
    for name, attributes in outline.elements:
        for key in ("src", "href", "srcset", "action", "data", "xlink:href"):
            address = attributes.get(key) or ""
            assert address == "" or address.startswith(("#", "data:", "./sessions/")), (name, key, address)
    assert "http://" not in html and "https://" not in html
    assert "url(" not in html and "@import" not in html


def test_every_chart_has_a_label_and_a_table(html: str) -> None:
    outline = Outline(html)
    charts = [svg for svg in outline.named("svg") if svg.get("class") == "chart"]
    figures = html.count("<figure>")
    assert len(charts) == 2 * figures and all(svg["aria-label"] for svg in charts)
    assert figures == 7 and html.count("Numbers as a table") == figures
    assert all(image["alt"] for image in outline.named("img"))


def test_no_link_on_the_page_leads_nowhere(html: str) -> None:
    outline = Outline(html)
    identifiers = [attributes["id"] for _, attributes in outline.elements if attributes.get("id")]
    assert len(identifiers) == len(set(identifiers))
    targets = {str(link["href"])[1:] for link in outline.named("a") if str(link["href"]).startswith("#")}
    assert targets <= set(identifiers)


def test_each_run_leads_to_the_folder_that_proves_it(lab: Lab, html: str) -> None:
    links = [str(link["href"]) for link in Outline(html).named("a") if str(link["href"]).startswith("./")]
    folders = {path.parent for path in lab.sessions.glob("*/blocks/*/*/result.json")}
    assert {(lab.root / unquote(link)).resolve() for link in links} == {
        folder.resolve() for folder in folders
    }


def test_ratios_on_the_page_are_those_that_were_judged(lab: Lab, document: ReportDocument, html: str) -> None:
    found = judged(lab, "baseline", "tiles")
    row = next(r for r in document.ratios if (r.reference, r.candidate) == ("baseline", "tiles"))
    bounds = found.comparison.speed.main.interval_95
    assert (row.ratio, row.low, row.high) == (found.comparison.speed.main.ratio, bounds.low, bounds.high)
    assert f"{row.ratio:.4f} [{row.low:.4f}, {row.high:.4f}]" in html
    assert found.verdict.kind is VerdictKind.VERIFIED and len(row.blocks) == 4
    for block in row.blocks:
        rates = [next(r.steps_per_second for r in document.runs if r.run == run) for run in block.runs]
        assert block.ratio == pytest.approx(rates[1] / rates[0])  # type: ignore[operator]


def test_every_verdict_and_the_noise_floor_are_told(document: ReportDocument, html: str) -> None:
    for phase in document.phases:
        if phase.verdict:
            assert f"{phase.verdict.kind.value}</span>" in html
    assert any(row.control for row in document.ratios)
    floor = next(row.floor for row in document.ratios if row.floor is not None)
    assert document.noise and f"{100 * floor:.2f}" in html


def test_passes_and_what_is_left_add_up_to_the_step(document: ReportDocument) -> None:
    assert {times.phase for times in document.passes} == {"baseline", "tiles", "fused", "half", "logging"}
    for times in document.passes:
        rates = [row.steps_per_second for row in document.runs_of(times.phase)]
        mean = sum(1000 / rate for rate in rates if rate) / len(rates)
        assert times.total == pytest.approx(mean, rel=1e-6)
        assert times.rest == pytest.approx(0.04 * times.total, rel=1e-3)


def test_memory_shows_all_four_stages_in_their_order(document: ReportDocument) -> None:
    names = [stage.name for stage in document.memory[0].stages]
    assert names[:3] == ["loading", "training", "evaluation"] and names[-1] == "saving"
    assert all(
        a.end == b.begin
        for a, b in zip(document.memory[0].stages, document.memory[0].stages[1:], strict=False)
    )


def test_samples_from_outside_win_over_what_the_trainer_said(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    carried_out(lab, "record", ["baseline"], trainer())
    assert report(lab, tmp_path).memory[0].source == "said by the trainer"
    folder = next(lab.sessions.glob("*/blocks/*/*/result.json")).parent
    folder.joinpath("memory.csv").write_text(
        "seconds,resident_bytes,processes,device_bytes\n0.5,77,1,\n1,99,1,\n"
    )
    trace = report(lab, tmp_path).memory[0]
    assert (trace.source, trace.points) == ("sampled from outside", ((0.5, 77), (1.0, 99)))


def test_failed_runs_stay_visible(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "broken", "--fail-at", "100")
    with pytest.raises(Exception, match="memory"):
        carried_out(lab, "ab", ["baseline", "broken"], trainer(), blocks=4, prime=False)
    document = report(lab, tmp_path)
    assert any(row.status == "failed" and not row.counted for row in document.runs)
    text = page(document)
    assert "CUDA out of memory &lt;b&gt;here" in text and "not counted" in text


def test_an_empty_lab_gives_a_page_that_says_so(tmp_path: Path) -> None:
    text = page(report(make_lab(tmp_path), tmp_path))
    Outline(text)
    assert "nothing to audit" in text and "<figure>" not in text


def test_phases_that_are_their_own_ancestors_are_still_shown() -> None:
    text = page(
        ReportDocument(
            phases=(LogPhase("a", parent="b"), LogPhase("b", parent="a"), LogPhase("c", parent="gone"))
        )
    )
    assert all("<strong id=" in text and f">{name}</strong>" in text for name in "abc")


def test_numbers_lead_to_the_runs_behind_them(document: ReportDocument, html: str) -> None:
    first = document.runs_of("fused")[0].run
    assert re.search(
        rf'<a href="#{run_anchor(first)}" title="from 4 runs: [^"]*" class="traced">2\d\.\d\d</a>', html
    )


def test_the_best_model_that_was_kept_is_linked(lab: Lab, document: ReportDocument, tmp_path: Path) -> None:
    found = [
        KeptModel("first", "s/0", tmp_path / "a.ply", tmp_path / "a", 20.0),
        KeptModel("<second>", "s/1", tmp_path / "b.ply", tmp_path / "b", 25.0),
        KeptModel("third", "s/2", tmp_path / "c.ply", tmp_path / "c"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "kept_models", lambda lab: found)
        best = write.best_model(lab)
        assert best is not None and best.phase == "<second>"
        assert write._model_page(lab, tmp_path) is None, "there is no page yet"
        best.page.parent.mkdir()
        best.page.write_text("x" * 2048)
        model = write._model_page(lab, tmp_path)
    assert model == ModelPage("<second>", "s/1", "./b/model.html", "2.0 KiB")
    text = page(dataclasses.replace(document, model=model))
    assert '<a href="./b/model.html">Look around in the model of &lt;second&gt;</a> (2.0 KiB)' in text
    assert "Look around in the model" not in page(document)


def test_a_finished_model_comes_before_everything_else(
    lab: Lab, document: ReportDocument, tmp_path: Path
) -> None:
    (tmp_path / "my scene.html").write_text("x" * 1024)
    path = tmp_path / "report.html"
    write.write_report(lab, path, finished=(tmp_path / "my scene.html", "21 dB <held out>"))
    text = path.read_text("utf-8")
    link = '<a href="./my%20scene.html">Look around in the finished model</a> (1.0 KiB): 21 dB &lt;held out'
    assert link in text and text.index(link) < text.index('id="phases"')


def test_the_slider_begins_with_the_best_arm_and_of_equals_with_the_latest(document: ReportDocument) -> None:
    view = document.pictures[0]
    some = next(iter(view.renders.values()))
    views = (dataclasses.replace(view, renders=dict.fromkeys("abc", some)),)
    quality = {"a": 25.0, "b": 25.0 + 1e-9, "c": 24.0}
    phases = tuple(LogPhase(n, test=(MetricsFigure(9, {"psnr": quality[n]}),)) for n in "abc")
    shown = ReportDocument(phases=phases, pictures=views)
    assert shown.best() == "b"
    assert re.search(r'<select id="right">.*?selected>b</option>', page(shown))


def test_a_page_that_grows_too_large_leaves_out_views(document: ReportDocument) -> None:
    view = document.pictures[0]
    heavy = dataclasses.replace(view, photo="data:image/jpeg;base64," + "A" * 4_000_000)
    text = page(dataclasses.replace(document, pictures=(heavy, heavy, heavy)))
    assert len(text.encode()) < LARGEST and text.count("Photo of view") == 2


def test_pictures_are_chosen_from_both_and_kept_within_their_budget(tmp_path: Path) -> None:
    sources = [find_renders(name, write_renders(tmp_path / name, 0.2, 5)) for name in ("a", "b")]
    known = [source for source in sources if source]
    assert len(known) == 2
    (tmp_path / "b" / "test" / "ours_200" / "test_preds_1" / "00002.png").unlink()
    found = read_pictures(known, 3)
    assert [picture.view for picture in found] == ["00000", "00003", "00004"]
    assert found[0].size == (320, 200) and found[0].photo.startswith("data:image/jpeg;base64,")
    weight = sum(
        len(p.photo) + sum(map(len, p.renders.values())) for p in read_pictures(known, 3, budget=60_000)
    )
    assert 0 < weight <= 60_000


def test_a_file_that_is_no_picture_is_left_out(tmp_path: Path) -> None:
    source = find_renders("a", write_renders(tmp_path, 0.2, 2))
    assert source
    (source.renders / "00000.png").write_text("<svg onload=alert(1)>")
    assert [picture.view for picture in read_pictures([source], 3)] == ["00001"]


def test_the_last_held_out_renders_are_found(tmp_path: Path) -> None:
    write_renders(tmp_path, 0.2, 1)
    for folder in (
        "test/ours_9/gt_1",
        "test/ours_9/test_preds_1",
        "train/ours_300/gt_1",
        "train/ours_300/test_preds_1",
    ):
        (tmp_path / folder).mkdir(parents=True)
    found = find_renders("a", tmp_path)
    assert found and found.renders == tmp_path / "test" / "ours_200" / "test_preds_1"
    assert find_renders("a", tmp_path / "nowhere") is None


def test_the_command_writes_the_page_and_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = make_lab(tmp_path / "lab")
    carried_out(lab, "record", ["baseline"], trainer())
    write_renders(tmp_path / "made", 0.3, 1)
    words = ["lab", "--lab", str(lab.root), "report", str(tmp_path / "out" / "page.html")]
    assert main([*words, "--renders", f"baseline={tmp_path / 'made'}"]) == 0
    text = (tmp_path / "out" / "page.html").read_text("utf-8")
    assert "page.html" in capsys.readouterr().out and "Photo of view 00000" in text
    assert 'href="../lab/sessions/' in text
    assert main([*words, "--renders", "baseline"]) == 64
    assert main([*words, "--renders", f"nobody={tmp_path}"]) == 66
    assert main([*words, "--renders", f"baseline={tmp_path / 'nowhere'}"]) == 66
    assert main(["lab", "--lab", str(tmp_path / "none"), "report"]) == 66


def test_an_imported_log_is_audited_on_the_page(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    log = tmp_path / "hand.md"
    log.write_text(
        "# Speed\n\n## Results\n\n### Baseline\n- **Speed:** 10.0 it/s\n\n### Phase 1 - Trick\n"
        "- **Speed:** 10.1 it/s (+0.1 it/s, +9%)\n"
    )
    assert main(["lab", "--lab", str(tmp_path), "import", str(log)]) == 0
    document = report(lab, tmp_path)
    assert any("9%" in finding.sentence and "hand.md" in finding.where for finding in document.findings)
    for path in (tmp_path / "imported").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "source": "gone.md"}))
    assert report(lab, tmp_path).findings == ()
