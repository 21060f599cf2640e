"""The page in Chromium, drawn by the processor: its picture against our engine's, hands, keys, silence."""

from __future__ import annotations

import base64
import dataclasses
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from page_models import SETTINGS, looking, mixed_table, page_of, ring
from PIL import Image

from splatmeter.evaluate.metrics import psnr
from splatmeter.ops import LOG_SCALES, OPACITY_LOGITS, Pinhole, RasterSettings, Table
from splatmeter.page.viewpoints import Viewpoint
from splatmeter.render.pictures import to_8bit

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend

WAIT = "return splatmeter.ready.then(() => 'open', (problem) => problem.message)"
STILL = "return new Promise((done) => setTimeout(() => requestAnimationFrame(done), arguments[0]))"
TARGET = "return splatmeter.ready.then(({stage}) => stage.target())"
PLACE = "return splatmeter.ready.then(({stage}) => stage.view().position)"


def opened(chromium: Browser, folder: Path, html: str, width: int = 640, height: int = 480) -> Path:
    path = folder / "page.html"
    path.write_text(html, "utf-8")
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    chromium.protocol("Emulation.setDeviceMetricsOverride", **size)
    wishes = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    chromium.protocol("Emulation.setEmulatedMedia", features=wishes)
    chromium.complaints()
    chromium.requests()
    chromium.open(path.as_uri())
    assert chromium.evaluate(WAIT) == "open"
    return path


def frame(chromium: Browser, **wish: Any) -> dict[str, Any]:
    return chromium.evaluate("return splatmeter.frame(arguments[0])", wish)


def shown(chromium: Browser, view: int, width: int, height: int) -> np.ndarray:
    told = frame(chromium, view=view, width=width, height=height, picture=True)
    pixels = Image.open(io.BytesIO(base64.b64decode(told["picture"].split(",")[1]))).convert("RGB")
    return np.asarray(pixels).transpose(2, 0, 1)


def ours(table: Table, camera: Pinhole, settings: RasterSettings = SETTINGS) -> np.ndarray:
    return to_8bit(some_backend().upload(table).render(camera, settings).color)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_page_shows_what_was_trained(chromium: Browser, tmp_path: Path, degree: int) -> None:
    """Needles, giants, faint ones, an off-centre principal point, unequal focal lengths, white behind it."""
    table = mixed_table(3000, degree)
    settings = dataclasses.replace(SETTINGS, sh_degree=degree, background=(1.0, 1.0, 1.0))
    path = opened(chromium, tmp_path, page_of(table, degree, settings=settings))
    for view, camera in list(enumerate(ring()))[:2]:
        picture = shown(chromium, view, camera.width, camera.height)
        assert psnr(picture, ours(table, camera, settings)) > 42
        unlike = dataclasses.replace(settings, compensate=False, kernel_size=0.3)
        assert psnr(picture, ours(table, camera, unlike)) < 40, "the test would not notice a wrong filter"
    assert chromium.complaints() == []
    assert [a for a in chromium.requests() if not a.startswith("blob:")] == [path.as_uri()]


def test_inside_the_cloud_and_at_other_sizes_it_is_the_same_picture(
    chromium: Browser, tmp_path: Path
) -> None:
    """Close to the near plane, wider than the photo: the scene goes on around the frame."""
    table = mixed_table(2000)
    inside = looking(np.array([0.4, -0.1, -0.3]), np.array([-0.5, 0.2, 0.8]), np.array([0.0, -1.0, 0.0]))
    opened(chromium, tmp_path, page_of(table, views=[Viewpoint(inside)]))
    assert psnr(shown(chromium, 0, 240, 180), ours(table, inside)) > 40
    wide = dataclasses.replace(inside, fx=480, fy=500, cx=2 * 130 + 60, cy=2 * 84, width=600, height=360)
    assert psnr(shown(chromium, 0, 600, 360), ours(table, wide)) > 40


def test_hands_keys_and_buttons_do_what_the_help_says(chromium: Browser, tmp_path: Path) -> None:
    photo = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="
    views = [Viewpoint(camera, held_out=k == 1, photo=photo if k else "") for k, camera in enumerate(ring())]
    opened(chromium, tmp_path, page_of(mixed_table(400), views=views, title="<b>A & B</b>"))
    text = "return document.getElementById(arguments[0]).textContent"
    assert chromium.evaluate(text, "title") == "<b>A & B</b>"
    assert (chromium.evaluate(text, "number"), chromium.evaluate(text, "kind")) == ("View 2 of 6", "held out")
    first = chromium.evaluate(PLACE)

    chromium.click("#next")
    assert chromium.evaluate(text, "kind") == "trained on"
    chromium.evaluate(STILL, 300)
    assert chromium.evaluate(PLACE) != first
    chromium.press("body", "r")
    chromium.evaluate(STILL, 300)
    assert chromium.evaluate(PLACE) == first

    chromium.click("#compare")
    chromium.evaluate(STILL, 300)
    frame_of = (
        "const b = document.getElementById('photo').getBoundingClientRect(); return [b.width, b.height]"
    )
    assert chromium.evaluate(frame_of) == pytest.approx([640, 480], abs=1)
    chromium.click("#compare")

    event = "Input.dispatchMouseEvent"
    for kind, x in (("mousePressed", 300), ("mouseMoved", 340), ("mouseMoved", 380), ("mouseReleased", 380)):
        chromium.protocol(event, type=kind, x=x, y=200, button="left", buttons=1, clickCount=1)
    chromium.evaluate(STILL, 300)
    turned, target = np.array(chromium.evaluate(PLACE)), np.array(chromium.evaluate(TARGET))
    assert np.linalg.norm(turned - first) > 0.5
    assert np.linalg.norm(turned - target) == pytest.approx(np.linalg.norm(first - target), rel=1e-6)
    assert chromium.evaluate(text, "number") == "Free view"
    chromium.protocol(event, type="mouseWheel", x=300, y=200, deltaX=0, deltaY=-200)
    chromium.evaluate(STILL, 300)
    nearer = np.array(chromium.evaluate(PLACE))
    assert np.linalg.norm(nearer - target) < 0.9 * np.linalg.norm(turned - target)

    chromium.press("body", "h")
    assert chromium.evaluate("return document.getElementById('help').open") is True
    chromium.press("#help", "\ue00c")  # Escape
    assert chromium.evaluate("return document.getElementById('help').open") is False
    assert chromium.complaints() == []


@pytest.mark.parametrize("log_scale", [-3.0, -2.0, -1.2])
def test_squares_hexagons_and_octagons_leave_no_seams(
    chromium: Browser, tmp_path: Path, log_scale: float
) -> None:
    """Ellipses of some hundred, some thousand and tens of thousands of pixels: several triangles each."""
    table = mixed_table(40)
    table.geometry[:, LOG_SCALES] = log_scale + np.random.default_rng(5).uniform(-0.7, 0.7, (40, 3))
    table.geometry[:, OPACITY_LOGITS] = 1.5
    opened(chromium, tmp_path, page_of(table))
    told = frame(chromium, view=0, width=480, height=360)
    assert told["triangles"] > 1.9 * told["count"], "nothing is large enough to be more than a triangle"
    camera = dataclasses.replace(ring()[0], fx=480.0, fy=500.0, cx=260.0, cy=168.0, width=480, height=360)
    assert psnr(shown(chromium, 0, 480, 360), ours(table, camera)) > 45


def test_three_gaussians_are_enough(chromium: Browser, tmp_path: Path) -> None:
    table = mixed_table(3)
    table.geometry[:, LOG_SCALES], table.geometry[:, OPACITY_LOGITS] = -1.5, 3
    opened(chromium, tmp_path, page_of(table))
    assert psnr(shown(chromium, 0, 240, 180), ours(table, ring()[0])) > 45


def test_who_turns_a_phone_sees_the_whole_of_it(chromium: Browser, tmp_path: Path) -> None:
    opened(chromium, tmp_path, page_of(mixed_table(50)), 390, 844)
    size = {"width": 844, "height": 390, "deviceScaleFactor": 3, "mobile": True}
    chromium.protocol("Emulation.setDeviceMetricsOverride", **size)
    chromium.evaluate(STILL, 500)
    pixels = "const c = document.getElementById('canvas'); return [c.width, c.height]"
    assert chromium.evaluate(pixels) == [1688, 780], "two pixels a CSS pixel are enough"


def test_a_lost_context_comes_back(chromium: Browser, tmp_path: Path) -> None:
    table, camera = mixed_table(800), ring()[1]
    opened(chromium, tmp_path, page_of(table))
    chromium.evaluate(
        "return splatmeter.ready.then(({gl}) => { const loss = gl.getExtension('WEBGL_lose_context');"
        " loss.loseContext(); return new Promise((done) => setTimeout(() => { loss.restoreContext();"
        " setTimeout(done, 500) }, 200)) })"
    )
    assert psnr(shown(chromium, 1, camera.width, camera.height), ours(table, camera)) > 40


@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390), (1440, 900)])
def test_nothing_lies_outside_of_a_phone(chromium: Browser, tmp_path: Path, width: int, height: int) -> None:
    opened(chromium, tmp_path, page_of(mixed_table(200), title="A very long title " * 8), width, height)
    outside = (
        "return [...document.querySelectorAll('header, nav, .group, nav button:not([hidden])')]"
        ".filter((one) => { const box = one.getBoundingClientRect(); return box.left < 0 || box.top < 0 ||"
        " box.right > innerWidth + 0.5 || box.bottom > innerHeight + 0.5 })"
        ".map((one) => one.id || one.tagName)"
    )
    assert chromium.evaluate(outside) == []


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("HTMLCanvasElement.prototype.getContext = () => null", "WebGL2"),
        ("delete window.DecompressionStream", "too old"),
        ("window.Worker = class { constructor() { throw new Error('No worker.') } }", "No worker."),
    ],
)
def test_a_browser_that_cannot_says_so(
    chromium: Browser, tmp_path: Path, missing: str, sentence: str
) -> None:
    added = chromium.protocol("Page.addScriptToEvaluateOnNewDocument", source=missing)
    try:
        path = tmp_path / "page.html"
        path.write_text(page_of(mixed_table(20)), "utf-8")
        chromium.open(path.as_uri())
        assert sentence in chromium.evaluate(WAIT)
        assert sentence in chromium.evaluate("return document.getElementById('veil').innerText")
    finally:
        chromium.protocol("Page.removeScriptToEvaluateOnNewDocument", **added)
        chromium.complaints()


@pytest.mark.slow
def test_a_trained_garden_in_the_page(chromium: Browser, tmp_path: Path) -> None:
    """The built-in scene, trained for a moment: at least 35 dB, and what a frame costs."""
    from splatmeter.cli import export, export_page, train
    from splatmeter.models.opening import open_model
    from splatmeter.scene import demo

    scene = demo.cached_demo_scene(quick=True)
    run = tmp_path / "run"
    words = [
        "-s",
        str(scene),
        "-m",
        str(run),
        "--eval",
        "--preset",
        "fast",
        "--iterations",
        "1200",
        "--quiet",
    ]
    assert (
        train.run([*words, "--save-iterations", "1200", "--test-iterations", "1200", "--device", "cpu"]) == 0
    )
    assert export.run([str(run), "-o", str(tmp_path / "made.html")]) == 0
    opened(chromium, tmp_path, (tmp_path / "made.html").read_text("utf-8"))
    model = open_model(run, -1, some_backend)
    assert model.config is not None
    settings = model.config.raster_settings(3)
    for number, view in enumerate(export_page.made(model, export_page.PageWishes()).views[:3]):
        picture = shown(chromium, number, view.camera.width, view.camera.height)
        assert psnr(picture, ours(model.model.table, view.camera, settings)) > 35
    told = [frame(chromium, view=0, width=640, height=360) for _ in range(3)][-1]
    print({name: round(value, 1) for name, value in told.items() if isinstance(value, (int, float))})
    assert {"sort", "upload", "draw", "total"} <= told.keys()
