"""What the page is tested with: a small model that is hard to draw, its cameras, and a browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "lab" / "report"))

from browser import CHROMIUM, DRIVER, WITH_WEBGL, Browser, browser

NO_BROWSER = "chromium and chromium-driver are not installed: the page was not looked at in a browser"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.skip(NO_BROWSER)
    with browser(tmp_path_factory.mktemp("browser"), WITH_WEBGL) as opened:
        yield opened
