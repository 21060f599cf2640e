"""The page in Debian's Chromium: clicks, widths, themes, and silence on console and network."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, DRIVER, Browser, browser
from PIL import Image, ImageStat
from test_report import hostile_document

from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.page import page

pytestmark = pytest.mark.skipif(
    not (CHROMIUM.exists() and DRIVER.exists()),
    reason="chromium and chromium-driver are not installed: the report was not looked at in a browser",
)
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = "return getComputedStyle(document.querySelector('.compare img.right')).clipPath"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def brightness(pixels: bytes) -> float:
    return ImageStat.Stat(Image.open(io.BytesIO(pixels)).convert("L")).mean[0]


def test_a_reader_can_use_the_page(chromium: Browser, lab: Lab, html: str, tmp_path: Path) -> None:
    path = lab.root / "report.html"
    path.write_text(html, "utf-8")
    chromium.requests()
    chromium.open(path.as_uri())
    for width in (390, 1280):
        for theme in ("light", "dark"):
            chromium.look(width, theme)
            assert chromium.evaluate(OVERFLOW) == 0, f"wider than {width} px"
            shot = chromium.screenshot(tmp_path / f"{width}-{theme}.png")
            assert (brightness(shot) > 128) == (theme == "light")
    chromium.look(1280)

    before = chromium.evaluate(BACKGROUND)
    chromium.click("#theme")
    assert chromium.evaluate(BACKGROUND) != before
    assert chromium.evaluate("return document.getElementById('theme').textContent") == "Light theme"
    chromium.click("#theme")
    assert chromium.evaluate(BACKGROUND) == before

    middle = chromium.evaluate(CUT)
    chromium.press("#cut", "\ue012" * 5)  # the left arrow
    assert chromium.evaluate(CUT) != middle
    chromium.click(".compare:not([hidden])")
    assert chromium.evaluate("return Number(document.getElementById('cut').value)") == pytest.approx(
        50, abs=1
    )
    chromium.press("#view", "00002")
    assert chromium.evaluate("return document.querySelectorAll('.compare:not([hidden])').length") == 1
    shown = "return document.querySelector('.compare:not([hidden]) img.left').alt"
    assert chromium.evaluate(shown) == "Photo of view 00002"
    chromium.click("#difference")
    assert chromium.evaluate(CUT) == "none"

    chromium.click("#phases a.traced")
    unfolded = "return document.querySelector(location.hash).closest('details').open"
    assert chromium.evaluate(unfolded) is True
    assert chromium.complaints() == []
    assert chromium.requests() == [path.as_uri()]


def test_hostile_names_run_nothing_in_a_browser(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page(hostile_document()), "utf-8")
    chromium.look(390)
    chromium.open(path.as_uri())
    assert chromium.evaluate("return document.scripts.length") == 1
    assert chromium.evaluate("return document.querySelector('h1').textContent").startswith("<script>")
    assert chromium.evaluate(OVERFLOW) == 0
    assert chromium.complaints() == []
