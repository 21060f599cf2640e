"""The pages under docs/commands tell what --help tells; layout may differ between versions of the parsers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "docs" / "commands"


def load_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_command_pages", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(text: str) -> set[str]:
    """Every option; long ones may be broken over lines, so only their beginning counts."""
    return {word.rstrip("-") for word in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text)}


def test_every_command_has_a_page_with_its_present_options() -> None:
    made = load_maker().pages()
    for name, text in made.items():
        written = (FOLDER / name).read_text("utf-8")
        missing = options(text) ^ options(written)
        assert not missing, f"{name} is out of date ({missing}): run python docs/commands/make.py"
    pages = {path.name for path in FOLDER.glob("*.md")}
    assert pages == set(made), "run python docs/commands/make.py, and remove pages of commands that are gone"
