"""Style and behaviour of the page, from the files in web/. Without its script the page can still be read."""

from __future__ import annotations

from importlib.resources import files

from splatmeter.lab.report.markup import Markup


def style() -> Markup:
    """Light unless the reader's system or the button says dark; paper is always light."""
    dark = _web("dark.css")
    by_the_system = dark.replace(":root", ":root:not([data-theme=light])", 1)
    by_the_button = dark.replace(":root", ":root[data-theme=dark]", 1)
    themes = (
        f"{_web('light.css')}@media screen and (prefers-color-scheme:dark){{{by_the_system}}}"
        f"@media screen{{{by_the_button}}}"
    )
    return Markup((themes + _web("report.css")).replace("\n", ""))


def script() -> Markup:
    """The theme button and the picture slider."""
    return Markup(_web("report.js").strip())


def _web(name: str) -> str:
    return (files("splatmeter.lab.report") / "web" / name).read_text("utf-8")
