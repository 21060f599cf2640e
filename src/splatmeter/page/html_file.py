"""One HTML file from a packed model, its views and the files in web/: a pure function of them.

The scripts are modules that import each other by name, so that Node can test them one by one. In the page
they stand one after the other in one scope, without their import and export words.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from splatmeter.ops import RasterSettings, Table
from splatmeter.page.quantise import Packed, quantised
from splatmeter.page.viewpoints import Surroundings, Viewpoint, record

BYTES_PER_GAUSSIAN = 40
"""What a Gaussian may cost in the page: 500,000 of them make 20 MB."""
SMALL = 1_000_000
"""Bytes that no page needs to save."""
COARSER = (1.0, 1.5, 2.2, 3.3, 5.0, 8.0, 12.0, 20.0)
"""Steps of the higher harmonics, tried in turn until the Gaussians have so few bytes."""
PAGE = ("math", "camera", "controls", "decode", "renderer", "sorting", "viewer", "interface", "main")
WORKER = ("decode", "sort", "worker")
"""Scripts in an order in which everything is there before it is used."""
SHADERS = {
    "fill": "fill.vert",
    "project": "project.frag",
    "splatVertex": "splat.vert",
    "splat": "splat.frag",
    "show": "show.frag",
}


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians:
    """A packed model as the text that goes into a page."""

    packed: Packed
    text: str
    coarseness: float


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    title: str
    gaussians: Gaussians
    settings: RasterSettings
    views: Sequence[Viewpoint]
    surroundings: Surroundings
    facts: Sequence[str] = ()
    """Below the title."""
    details: Sequence[tuple[str, str]] = ()
    """In the panel that opens."""


def packed_text(table: Table, degree: int) -> Gaussians:
    """As fine as BYTES_PER_GAUSSIAN allows; small models stay as they are."""
    for coarseness in COARSER:
        packed = quantised(table, degree, coarseness)
        text = base64.b64encode(zlib.compress(packed.data, 6)).decode("ascii")
        enough = len(text) <= max(BYTES_PER_GAUSSIAN * packed.count, SMALL)
        if enough or degree == 0 or coarseness == COARSER[-1]:
            return Gaussians(packed, text, coarseness)
    raise AssertionError("the last one is always taken")


def page(content: Content) -> str:
    """Nothing but what is inside is ever asked for: the policy lets no address in."""
    script, style = scripts(), _web("page.css")
    white = sum(content.settings.background) > 1.5
    parts = {
        "policy": _policy(script, style),
        "title": html.escape(content.title),
        "style": style,
        "background": "white" if white else "black",
        "scene": _quoted(_scene(content)),
        "gaussians": content.gaussians.text,
        "script": script,
    }
    template = re.split(r"\{\{(\w+)\}\}", _web("page.html"))  # once: a title may look like a place, too
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(template))


def scripts() -> str:
    """Everything that runs, in one scope."""
    shaders = {name: _web(f"{file}.glsl") for name, file in SHADERS.items()}
    constants = f"const SHADERS = {_quoted(shaders)};\nconst WORKER = {_quoted(joined(WORKER))};\n"
    return f'(() => {{\n"use strict";\n{constants}{joined(PAGE)}}})();\n'


def joined(names: Sequence[str]) -> str:
    """Modules without the words that make them modules."""
    text = "\n".join(_web(f"{name}.js") for name in names)
    text = re.sub(r"^import .*? from \"\./\w+\.js\";\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (?=const |function |async |class )", "", text, flags=re.MULTILINE)


def _web(name: str) -> str:
    return (files("splatmeter.page") / "web" / name).read_text("utf-8")


def _quoted(value: Any) -> str:
    """JSON that can stand in a script: nothing in it can end one."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _scene(content: Content) -> dict[str, Any]:
    origin, around = content.gaussians.packed.origin, content.surroundings
    return {
        "title": content.title,
        "facts": list(content.facts),
        "details": [list(pair) for pair in content.details],
        "header": content.gaussians.packed.header,
        "look": {
            "kernel": content.settings.kernel_size,
            "compensate": content.settings.compensate,
            "background": list(content.settings.background),
        },
        "views": [_view(view, origin) for view in content.views],
        "first": around.first,
        "start": record(around.start, origin),
        "up": around.up.tolist(),
        "focus": (around.focus - origin).tolist(),
        "focusDistance": around.distance,
    }


def _view(view: Viewpoint, origin: Any) -> dict[str, Any]:
    told = record(view.camera, origin) | {"heldOut": view.held_out}
    return told | {"photo": view.photo} if view.photo else told
