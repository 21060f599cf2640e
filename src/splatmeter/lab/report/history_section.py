"""The section that tells a lab's history: a chart and a table for each track, and what may be compared."""

from __future__ import annotations

from collections.abc import Mapping

from splatmeter.lab.history import history_text
from splatmeter.lab.history.tracks import SIGNS, Change, FigureKind, History, Point, Track
from splatmeter.lab.report.drawing import figure, legend
from splatmeter.lab.report.history_chart import draw, panels
from splatmeter.lab.report.markup import Markup, join, tag
from splatmeter.lab.report.wording import UNKNOWN, chip, html_table

MOST_ROWS = 400
MOST_SENTENCES = 20
_TONES = {SIGNS[Change.BETTER]: "good", SIGNS[Change.WORSE]: "bad", SIGNS[Change.DOUBTED]: "doubt"}
CAPTION = (
    "Numbers below are sessions, oldest first. A solid line leads from what an arm was compared with to that "
    "arm, in one session; a dotted one to the next session that measured the very same code, declared in the "
    "same way. Nothing else is joined. Whiskers: the 95 % interval of a ratio, elsewhere the range of single "
    "runs."
)
ALONE = "One session so far: what a history can show begins with the second."


def history_section(history: History, order: Mapping[str, int]) -> Markup:
    phases = dict.fromkeys(point.variant.phase for point in history.points)
    known = {**order, **{name: len(order) + n for n, name in enumerate(p for p in phases if p not in order)}}
    parts: list[Markup] = [_track(history, track, known) for track in history.tracks]
    alone = len({point.session for point in history.points}) == 1
    notes = [*([ALONE] if alone else []), *history_text.comparable(history)]
    parts.append(tag("h3", "What can be compared, and what cannot"))
    parts.append(_listed(notes))
    for title, sentences in (
        ("Revisions", history_text.revision_notes(history)),
        ("Objections", history_text.objections(history)),
        ("Names that changed their meaning", history.remarks),
        ("Left out", history.left_out),
    ):
        if sentences:
            parts += [tag("h3", title), _listed(history_text.listed(sentences, MOST_SENTENCES))]
    return join(parts)


def _listed(sentences: list[str] | tuple[str, ...]) -> Markup:
    return tag("ul", *(tag("li", sentence) for sentence in sentences))


def _track(history: History, track: Track, order: Mapping[str, int]) -> Markup:
    head = tag("h3", history_text.track_title(history, track)) if len(history.tracks) > 1 else ""
    told = tag("p", track.describes, class_="muted")
    found = panels(track)
    rows = _table(history, track)
    if not found:
        return join([head, told, rows])
    names = dict.fromkeys(point.variant.phase for point in track.points)
    marks = legend([(order[name], name) for name in names])
    return join([head, told, figure(draw(track, found, order), CAPTION, rows, marks)])


def _table(history: History, track: Track) -> Markup:
    kinds = track.known()
    speed = [kind for kind in kinds if kind.name == "speed"]
    others = [kind for kind in kinds if kind.name != "speed"]
    compared = ("Against", "Speed ratio", "Verdict")
    head = ("Session", "Phase", "Revision", *map(_title, speed), *compared, *map(_title, others))
    points = track.points[-MOST_ROWS:]
    rows = [
        (
            tag("span", history_text.session_text(point), title=point.session),
            point.arm if point.kind == "aa" else point.variant.label,
            tag("code", history_text.revision_text(history, point)),
            *(_cell(history_text.reading_text(point, kind)) for kind in speed),
            point.parent or UNKNOWN,
            _cell(history_text.against_text(point.against) or UNKNOWN),
            _verdict(point),
            *(_cell(history_text.reading_text(point, kind)) for kind in others),
        )
        for point in points
    ]
    left = len(track.points) - len(points)
    more = f"; {left} older rows are left out (`splatmeter lab history --csv` has them)" if left else ""
    return html_table(head, rows, f"Arms session by session; it/s compare inside a session only{more}")


def _title(kind: FigureKind) -> str:
    return kind.unit if kind.name == "speed" else kind.title


def _cell(text: str) -> object:
    tone = next((tone for sign, tone in _TONES.items() if sign in text.split()), "")
    return tag("span", text, class_=tone) if tone else text


def _verdict(point: Point) -> object:
    return chip(point.against.verdict.kind) if point.against and point.kind != "aa" else UNKNOWN
