"""The file itself: whole, closed, and without anything that is nobody's business."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from page_models import mixed_table, page_of

from splatmeter.page import html_file

NO_NODE = "node is not installed: the page's scripts were not run outside a browser"


def test_the_scripts_lose_only_the_words_that_make_them_modules() -> None:
    text = html_file.scripts()
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    names = {path.stem for path in (Path(html_file.__file__).parent / "web").glob("*.js")}
    assert names == {*html_file.PAGE, *html_file.WORKER}, "a script that no page runs"
    shaders = {path.name for path in (Path(html_file.__file__).parent / "web").glob("*.glsl")}
    assert shaders == {f"{name}.glsl" for name in html_file.SHADERS.values()}


@pytest.mark.parametrize("names", [html_file.PAGE, html_file.WORKER], ids=["page", "worker"])
def test_no_name_is_taken_twice(names: tuple[str, ...]) -> None:
    """They share one scope."""
    found = re.findall(r"^(?:const|let|(?:async )?function) (\w+)", html_file.joined(names), re.MULTILINE)
    assert len(found) > 5 and len(found) == len(set(found))


@pytest.mark.skipif(not shutil.which("node"), reason=NO_NODE)
def test_what_the_page_runs_is_javascript(tmp_path: Path) -> None:
    for name, text in (("page", html_file.scripts()), ("worker", html_file.joined(html_file.WORKER))):
        (tmp_path / f"{name}.js").write_text(text, "utf-8")
        subprocess.run(["node", "--check", str(tmp_path / f"{name}.js")], check=True, capture_output=True)


def test_a_title_stays_text() -> None:
    title = "</script><script>alert(1)</script>{{script}}<!--&amp;"
    text = page_of(mixed_table(20), title=title)
    assert text.count("<script") == 3 and text.count("</script") == 3
    assert (
        "<title>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{script}}&lt;!--&amp;amp;</title>"
        in text
    )
    scene = re.search(r'id="scene">(.*?)</script>', text, re.DOTALL)
    assert scene and json.loads(scene[1])["title"] == title


def test_no_address_is_let_in() -> None:
    text = page_of(mixed_table(20))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and policy[1].startswith("default-src 'none'") and "http" not in policy[1]
    assert "unsafe" not in policy[1]
    outside = re.sub(r'<script type="text/plain".*?</script>', "", text, flags=re.DOTALL)
    assert not re.search(r"https?://|//cdn|@import|src=\"[^d]", outside)
