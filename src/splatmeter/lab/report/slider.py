"""Renders against photos: two layers of one view, and a slider between them."""

from __future__ import annotations

from splatmeter.lab.report.markup import Markup, join, tag
from splatmeter.lab.report.report_document import Picture, run_anchor

PHOTO = "photo"


def slider(pictures: tuple[Picture, ...], best: str = "") -> Markup:
    """Begins with the photo and what `best` made of it, else the last phase.

    Layers have numbers, never names: a phase may be called anything, even 'photo'.
    """
    phases = list(dict.fromkeys(phase for picture in pictures for phase in picture.renders))
    shown = phases.index(best) + 1 if best in phases else len(phases)
    layers = [PHOTO, *phases]
    views = [picture.view for picture in pictures]
    controls = tag(
        "div",
        _choice("view", "View", views, 0),
        _choice("left", "Left", layers, 0),
        _choice("right", "Right", layers, shown),
        tag("label", tag("input", type="checkbox", id="difference"), "difference × 4"),
        class_="controls",
    )
    frames = [_frame(picture, phases, shown, number == 0) for number, picture in enumerate(pictures)]
    cut = tag(
        "input", type="range", id="cut", class_="slider", min="0", max="100", step="any", value="50",
        aria_label="Border between the left and the right picture",
    )  # fmt: skip
    return tag("div", controls, *frames, cut, _sources(pictures), id="pictures")


def _choice(name: str, words: str, options: list[str], chosen: int) -> Markup:
    items = [
        tag("option", option, value=str(number), selected=number == chosen)
        for number, option in enumerate(options)
    ]
    return tag("label", words, tag("select", *items, id=name))


def _frame(picture: Picture, phases: list[str], shown: int, first: bool) -> Markup:
    """Without a script: the photo, and on the right half the render to begin with."""
    size = {"width": str(picture.size[0]), "height": str(picture.size[1])}
    images = [
        tag(
            "img",
            src=picture.photo,
            alt=f"Photo of view {picture.view}",
            data_layer="0",
            class_="left",
            **size,
        )
    ]
    for number, phase in enumerate(phases, start=1):
        if phase in picture.renders:
            images.append(
                tag(
                    "img",
                    src=picture.renders[phase],
                    alt=f"View {picture.view} as rendered by {phase}",
                    data_layer=str(number),
                    class_="right" if number == shown else None,
                    **size,
                )
            )
    return tag(
        "div",
        *images,
        tag("div", class_="handle"),
        tag("span", PHOTO, class_="side l"),
        tag("span", phases[shown - 1], class_="side r"),
        class_="compare tall" if picture.size[1] > picture.size[0] else "compare",
        hidden=not first,
    )


def _sources(pictures: tuple[Picture, ...]) -> Markup:
    runs = {phase: run for picture in pictures for phase, run in picture.runs.items()}
    if not runs:
        return Markup("")
    items = [join([phase, ": ", tag("a", run, href=f"#{run_anchor(run)}")]) for phase, run in runs.items()]
    return tag("p", "Rendered by ", join(items, "; "), class_="muted")
