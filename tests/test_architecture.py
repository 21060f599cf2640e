"""The order of packages: each may use those before it and never one after it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

import pytest

from splatmeter.ops import WIDTHS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "splatmeter"


def _import_graph() -> ModuleType:
    """The script that draws the graph also has the two sentences, so that they are written down once."""
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "docs" / "import_graph.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


GRAPH = _import_graph()
TRAINER: tuple[str, ...] = GRAPH.TRAINER
LAB: tuple[str, ...] = GRAPH.LAB
NOT_PACKAGES = ("__version__", "_native", "_scenery")
SHARED = (
    "units", "errors", "camera", "events", "process_memory", "control_groups", "ops", "backend", "places",
    "shell", "typed_fields", "files", "jobs",
)  # fmt: skip
ENGINES_MAY_USE = {"gaussians", "densify", "backends"}
CAPTURE_MAY_USE = {"photos", "scene", "capture"}
API_MAY_USE = {*SHARED, *TRAINER, "backends", "listeners", "api"}
LAB_MAY_USE = {"units", "errors", "events", "files", "jobs", "lab"}
LONGEST_FILE = 330
LONGEST_FUNCTION = 45

FILES = sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_packages(path: Path) -> set[str]:
    """First package component below splatmeter of every import in the file, relative ones resolved."""
    here = ["splatmeter", *path.relative_to(SOURCE).parts[:-1]]
    packages: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{stem}.{alias.name}" for alias in node.names] if stem == "splatmeter" else [stem]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "splatmeter" and len(parts) > 1 and parts[1] not in NOT_PACKAGES:
                packages.add(parts[1])
    return packages


def allowed(package: str) -> set[str] | None:
    """What `package` may import; None means everything."""
    if package in ("cli", "__init__", "__main__"):
        return None
    if package == "api":
        return API_MAY_USE
    if package in SHARED:
        return {"errors", "camera", "ops", "files", "control_groups", package}
    if package in TRAINER:
        return {*SHARED, *TRAINER[: TRAINER.index(package) + 1]}
    if package == "capture":
        return {*SHARED, *CAPTURE_MAY_USE}
    if package == "lab":
        return LAB_MAY_USE
    if package == "backends":
        return {*SHARED, *ENGINES_MAY_USE}
    if package == "listeners":
        return {*SHARED, package}
    raise AssertionError(f"{package} is not in the design; add it to ARCHITECTURE.md and here")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_package_uses_only_the_packages_before_it(path: Path) -> None:
    permitted = allowed(package_of(path))
    if permitted is not None:
        assert imported_packages(path) <= permitted


LAB_FILES = sorted((SOURCE / "lab").rglob("*.py"))


@pytest.mark.parametrize("path", LAB_FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_package_of_the_lab_uses_only_those_before_it(path: Path) -> None:
    package = GRAPH.package_of(path, SOURCE / "lab")
    if package == "__init__":
        return
    assert package in LAB, f"lab/{package} has no place in the sentence of docs/import_graph.py"
    used = set(GRAPH.packages_used(path, SOURCE / "lab"))
    assert used <= set(LAB[: LAB.index(package) + 1])


def test_reading_logs_of_people_and_writing_our_own_are_two_products() -> None:
    """`handlog` knows findings and nothing else of the lab; what writes and judges knows nothing of it."""
    edges = GRAPH.graph("lab")
    assert {there for here, there in edges if here == "handlog"} == {"samples"}
    assert {here for here, there in edges if there == "handlog"} == {"record", "report"}


def test_the_architecture_shows_the_lab_as_it_is() -> None:
    told = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert GRAPH.table("lab") in told, "paste the table that `python docs/import_graph.py lab` prints"


def test_a_name_of_the_lab_says_what_it_is_once() -> None:
    """Two modules, or two public classes or functions, of one name would be two things behind one word."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in LAB_FILES:
        name = str(path.relative_to(SOURCE))
        if path.stem != "__init__":
            places[f"module {path.stem}"].append(name)
        for node in ast.parse(path.read_text("utf-8")).body:
            public = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
            if public and node.name != "main":
                places[node.name].append(name)
    assert not {name: found for name, found in places.items() if len(found) > 1}


ABOVE_THE_ENGINES = ("render", "evaluate", "train", "blocks", "page", "models", "listeners", "cli", "api")
HOST_TABLES = {
    "blocks/join.py",
    "blocks/polish.py",
    "train/import_pth.py",
    "cli/doctor.py",
    "cli/export.py",
    "cli/profile.py",
    "cli/preview.py",
    "cli/export_page.py",
    "page/from_model.py",
    "page/quantise.py",
    "models/writing.py",
}
"""What these touch they made or read themselves, or was downloaded for them."""
MODEL_ARRAYS = {*WIDTHS, "_table", "_handle", "_kernels"}


def _of_somebody_else(node: ast.AST) -> TypeGuard[ast.Attribute]:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Attribute) and not own


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_above_the_engines_touches_a_models_arrays(path: Path) -> None:
    """tests/train/test_on_an_imitation.py plays it: there a model's memory is out of reach."""
    if package_of(path) not in ABOVE_THE_ENGINES or path.relative_to(SOURCE).as_posix() in HOST_TABLES:
        return
    tree = ast.parse(path.read_text("utf-8"))
    touched = {node.attr for node in ast.walk(tree) if _of_somebody_else(node)} & MODEL_ARRAYS
    assert not touched, f"{path.name} touches {', '.join(sorted(touched))}"


WEB = sorted(
    path
    for folder in (SOURCE / "page" / "web", SOURCE / "lab" / "report" / "web")
    for path in folder.iterdir()
    if path.suffix in (".js", ".glsl", ".css")
)


@pytest.mark.parametrize("path", WEB, ids=lambda p: p.name)
def test_what_runs_in_the_page_stays_small_and_asks_nobody(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= LONGEST_FILE
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|importScripts", text)


def test_only_one_file_knows_the_library_that_may_abort() -> None:
    """pycolmap is loaded in a child process, by functions: importing our modules never loads it."""
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pycolmap", "av"}, f"{path.name} loads {names} when it is imported"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= LONGEST_FILE, f"{path} is too long: is it one thing?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{path.name}:{node.name} has {length} lines"
