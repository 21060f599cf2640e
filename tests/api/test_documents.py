"""The examples in docstrings and on the page for notebooks run as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import splatmeter
from splatmeter import api

ROOT = Path(__file__).parents[2]
MODULES = ("", ".loading", ".model", ".picture", ".scenes", ".training")


@pytest.mark.parametrize("name", [*(f"splatmeter.api{name}" for name in MODULES), "splatmeter.camera.camera"])
def test_examples_in_docstrings_run(
    name: str, run: Path, garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that holds a run under output/model."""
    monkeypatch.chdir(run.parents[1])
    scene = api.load_scene(garden, eval=True)
    known = {key: getattr(api, key) for key in api.__all__} | {
        "np": np,
        "scene": scene,
        "model": api.load_model(run),
        "camera": scene.test[0].camera,
    }
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder().find(module, extraglobs=known) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).attempted > 0
    assert not runner.failures, "".join(said)


def test_every_public_name_is_explained() -> None:
    """And every public method and attribute of a class: in a tooltip nobody reads the source."""
    bare: list[str] = []
    for name in api.__all__:
        thing: Any = getattr(api, name)
        if name == "Event":
            continue  # a union of the classes beside it
        own = (thing.__doc__ or "").strip()
        if not own or own.startswith(f"{name}("):  # what dataclasses write by themselves
            bare.append(name)
        for key, value in vars(thing).items() if isinstance(thing, type) else ():
            shown = callable(value) or isinstance(value, (property, classmethod, cached_property))
            if shown and not key.startswith("_") and not (value.__doc__ or "").strip():
                bare.append(f"{name}.{key}")
    assert not bare


def test_the_page_for_notebooks_runs_as_it_stands(
    garden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 10
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/notebooks.md", "exec"), space)
    said = capsys.readouterr().out
    promised = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert all(text in said for text in promised), said
    assert "step 100 of 100" in said
    for name in ("render.png", "depth.png", "mine.png"):
        with Image.open(tmp_path / name) as image:
            assert np.asarray(image).std() > 5, f"{name} shows nothing"
    for name in ("turn.gif", "garden.ply", "table.glb", "garden.html", "garden.spz"):
        assert (tmp_path / name).stat().st_size > 100
    assert space["losses"][-1] < space["losses"][0]
    np.testing.assert_allclose(space["one"].rotation, space["same"].rotation, atol=1e-9)
    assert 0 < space["table_top"].count < space["model"].count == space["again"].count
    assert space["report"].means["psnr"] > 12


def test_the_api_loads_nothing_of_the_command_line() -> None:
    """Nor what only some need: it is there in a moment, also where extras are not installed."""
    code = (
        "import sys; from splatmeter import api; "
        "print([m for m in sys.modules if m.startswith(('splatmeter.cli', 'splatmeter.lab'))], "
        "[m for m in ('torch', 'tyro', 'rich', 'pycolmap', 'av') if m in sys.modules])"
    )
    package = str(Path(splatmeter.__file__).parents[1])
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {package!r}); {code}"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[] []\n"
