"""Draws who imports whom inside splatmeter: `python docs/import_graph.py [trainer|lab] [--mermaid]`.

Each half of the program is one sentence, read from left to right: a package may import the packages before it
and never one after it. The two sentences are written down here, once. `tests/test_architecture.py` checks
every import against them, and a test checks that ARCHITECTURE.md shows what this script prints for the lab.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "splatmeter"
TRAINER = (
    "photos", "scene", "gaussians", "formats", "densify", "render", "evaluate",
    "train", "blocks", "page", "models",
)  # fmt: skip
LAB = (
    "json_files", "order_of_time", "patience", "environment", "code_identity",
    "samples", "handlog", "trainers", "executor", "monitor",
    "plan", "record", "session", "audit", "compare", "judgement", "history", "log", "report",
)  # fmt: skip
HALVES = {"trainer": (SOURCE, TRAINER), "lab": (SOURCE / "lab", LAB)}


def imported_modules(path: Path) -> list[str]:
    """Everything of ours that a file imports, as full names; relative imports are resolved."""
    package = ["splatmeter", *path.relative_to(SOURCE).parts[:-1]]
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{stem}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith("splatmeter.")]


def packages_used(path: Path, root: Path) -> Counter[str]:
    """How many names a file takes from each package (or single module) directly below `root`."""
    prefix = ".".join(["splatmeter", *root.relative_to(SOURCE).parts, ""])
    names = (name.removeprefix(prefix) for name in imported_modules(path) if name.startswith(prefix))
    return Counter(name.split(".")[0] for name in names)


def package_of(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0].removesuffix(".py")


def graph(half: str) -> dict[tuple[str, str], int]:
    """(importing package, imported package) -> number of imported names, for two different packages."""
    root, order = HALVES[half]
    edges: Counter[tuple[str, str]] = Counter()
    for path in sorted(root.rglob("*.py")):
        here = package_of(path, root)
        if here in order:
            for there, count in packages_used(path, root).items():
                if there in order and there != here:
                    edges[here, there] += count
    return dict(edges)


def backwards(half: str) -> dict[tuple[str, str], int]:
    """The imports that run against the sentence."""
    order = HALVES[half][1]
    return {edge: n for edge, n in graph(half).items() if order.index(edge[0]) < order.index(edge[1])}


def table(half: str) -> str:
    """One line a package, in the order of the sentence: what it uses."""
    edges, (_, order) = graph(half), HALVES[half]
    lines = ["| package | uses |", "| --- | --- |"]
    for here in order:
        used = [there for there in order if (here, there) in edges]
        lines.append(f"| `{here}` | {', '.join(used) or 'nothing'} |")
    return "\n".join(lines)


def mermaid(half: str) -> str:
    lines = [f"    {here} --> {there}" for here, there in sorted(graph(half))]
    return "\n".join(["graph LR", *lines])


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("half", nargs="?", choices=tuple(HALVES), help="both, unless one is named")
    parser.add_argument("--mermaid", action="store_true", help="as a Mermaid graph instead of a table")
    chosen = parser.parse_args(words)
    for half in [chosen.half] if chosen.half else HALVES:
        print(f"The {half}: {' → '.join(HALVES[half][1])}\n")
        print(mermaid(half) if chosen.mermaid else table(half))
        against = backwards(half)
        print(f"\nImports against the sentence: {sum(against.values())}")
        for (here, there), count in against.items():
            print(f"  {here} imports {count} names of {there}")
        print()
    return 1 if any(backwards(half) for half in HALVES) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
