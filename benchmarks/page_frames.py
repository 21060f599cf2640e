"""What a frame of exported pages costs in Chromium, drawn by the processor.

    python benchmarks/page_frames.py garden.html demo.html [--views 4] [--width 640 --height 360]

Each view is drawn several times, from the order of Gaussians to the finished picture. Told are the best and
the median frame: the best is what the machine can do, the median what people see. Run it on a machine that
does nothing else. Needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import measuring

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lab" / "report"))

from browser import WITH_WEBGL, Browser, browser

PARTS = ("sort", "upload", "draw", "total")
HEADER = ["page", "view", "Gaussians seen", *(f"{part}, ms" for part in PARTS), "frames a second"]


def frames(chromium: Browser, chosen: argparse.Namespace, view: int) -> list[dict[str, float]]:
    wish = {"view": view, "width": chosen.width, "height": chosen.height}
    drawn = [
        chromium.evaluate("return splatmeter.frame(arguments[0])", wish) for _ in range(chosen.frames + 1)
    ]
    return drawn[1:]  # the first one still compiles


def row(page: Path, view: int, drawn: list[dict[str, float]]) -> list[str]:
    best = min(drawn, key=lambda frame: frame["total"])
    usual = median(frame["total"] for frame in drawn)
    speed = f"{1000 / best['total']:.2f}, median {1000 / usual:.2f}"
    seen = f"{best['count'] / 1000:.0f} k"
    return [page.stem, str(view), seen, *(f"{best[part]:.0f}" for part in PARTS), speed]


def measured(page: Path, chosen: argparse.Namespace, folder: Path) -> list[list[str]]:
    with browser(folder, WITH_WEBGL) as chromium:
        chromium.open(page.absolute().as_uri())
        chromium.evaluate("return splatmeter.ready.then(() => 'open')")
        return [row(page, view, frames(chromium, chosen, view)) for view in range(chosen.views)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--frames", type=int, default=7, help="frames drawn of each view")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=360)
    chosen = parser.parse_args()
    rows = []
    for page in chosen.pages:
        with tempfile.TemporaryDirectory() as folder:
            rows += measured(page, chosen, Path(folder))
    print("\n".join(measuring.table(HEADER, rows)))


if __name__ == "__main__":
    main()
