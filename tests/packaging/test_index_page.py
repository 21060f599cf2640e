"""What a package index shows of the README leads nowhere else than it can."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "packaging" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(text: str) -> str:
    """Without what is always added at the end."""
    maker = loaded("index_page")
    made = maker.index_page(text, "splatmeter")
    assert made.endswith(maker.CLOSING)
    return made.removesuffix(maker.CLOSING).strip()


def test_the_readme_has_no_links_or_pictures_of_the_repository_left() -> None:
    page = shown((REPOSITORY / "README.md").read_text("utf-8"))
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", page, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\]\(([^)]*)\)", prose) and "![" not in prose
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)]*)\)", prose))
    assert "Left:" not in page, "a caption without its picture"
    assert "pip install splatmeter\n" in page
    assert "pip install '.[" not in page and "pip install .\n" not in page
    assert "Run the tests" not in page and "## Licence" in page


def test_every_file_that_the_page_names_is_there() -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", readme)
    assert targets and all((REPOSITORY / target).exists() for target in targets)


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("see [the lab](docs/lab.md#aims)", "see the lab (`docs/lab.md`)"),
        ("proof ([measured](a/b.md)).", "proof (measured: `a/b.md`)."),
        ("([measured](a/b.md), twice)", "(measured (`a/b.md`), twice)"),
        ("[docs/cards](docs/cards/README.md) says", "`docs/cards/README.md` says"),
        ("[below](#below)", "below"),
        ("[`code`](docs/lab.md)", "`code` (`docs/lab.md`)"),
        ("`a[0](x.md)` stays", "`a[0](x.md)` stays"),
        ("```\n[x](y.md)\n![p](q.png)\n```", "```\n[x](y.md)\n![p](q.png)\n```"),
        ("[far](https://example.org/a.md)", "[far](https://example.org/a.md)"),
        ("text\n\n![alt](x.png)\n\n*Left: a.\nRight: b.*\n\nmore", "text\n\nmore"),
        ("![alt](x.png)\n\n*one* word", "*one* word"),
        ("![far](https://example.org/p.png)\n", "![far](https://example.org/p.png)"),
        ("`pip install '.[a,b]'` and `.[a]`", "`pip install 'splatmeter[a,b]'` and `splatmeter[a]`"),
        ("pip install ./other", "pip install ./other"),
        ("## Run the tests\n\nx\n\n## Next\n", "## Next"),
        ("## Next\n\n## Run the tests\n\nx", "## Next"),
    ],
)
def test_what_becomes_of_a_line(written: str, left: str) -> None:
    assert shown(written) == left


def test_the_build_is_given_markdown() -> None:
    made = loaded("index_page").dynamic_metadata({}, {"name": "splatmeter"})
    assert made["readme"]["content-type"] == "text/markdown" and "# splatmeter" in made["readme"]["text"]
