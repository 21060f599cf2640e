"""Which code a run is about to execute: a hash of contents, because names, commits and times can lie.

Three parts: `source` (the trainer's folder, scripts on its command line, what PYTHONPATH adds), `program`
(the executable itself) and `environment` (installed packages, by size and time of their files).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = frozenset(
    (".py", ".pyx", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".so", ".pyd", ".dll", ".dylib", ".sh")
) | {".ptx", ".cubin"}
SETTINGS = frozenset((".json", ".toml", ".yaml", ".yml", ".cfg", ".ini"))
INSTALLED = (".py", ".so", ".pyd", ".dll", ".dylib", ".pth")
MOST_FILES = 20_000
"""A folder with more programs than this is no trainer but somebody's home; then only its top level counts."""
_SKIPPED = {".git", "__pycache__", ".hg", ".svn", "node_modules"}
_RESULTS = {"cameras.json", "cfg_args", "results.json", "point_cloud"}
"""A folder with one of these was written by a trainer: its settings are results, not code."""
_OF_A_LAB = {"sessions", "phases", "judged", "imported", "worktrees", "start"}
_ASK = (
    "import importlib.util as u, json, sys; s = u.find_spec('splatmeter'); "
    "print(json.dumps([sys.path, list(s.submodule_search_locations) if s else []]))"
)


@dataclass(frozen=True, slots=True)
class CodeIdentity:
    """Equal for equal code. `files` name what the source part is made of, to tell what has changed."""

    source: str = ""
    program: str = ""
    environment: str = ""
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def sha256(self) -> str:
        """One hash for all three parts; empty if nothing could be identified."""
        parts = (self.source, self.program, self.environment)
        return _digest(parts)[:16] if any(parts) else ""

    def difference(self, other: CodeIdentity) -> str:
        """What `other` has that this has not, in words; empty if they are equal."""
        words: list[str] = []
        if self.source != other.source:
            changed = sorted(
                name
                for name in self.files.keys() | other.files.keys()
                if self.files.get(name) != other.files.get(name)
            )
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            words.append(f"{', '.join(changed[:3])}{more}" if changed else "its sources")
        words += ["the program itself"] if self.program != other.program else []
        words += ["installed packages"] if self.environment != other.environment else []
        return "; ".join(words)


def identify(
    arguments: tuple[str, ...], directory: Path | None, environment: Mapping[str, str]
) -> CodeIdentity:
    """Looks at the disk as it is now."""
    program = shutil.which(arguments[0]) or (arguments[0] if Path(arguments[0]).is_file() else "")
    paths: list[str] = []
    own: list[str] = []
    if program and Path(program).name.startswith("python"):
        paths, own = _python(program, str(directory or ""), environment.get("PYTHONPATH"))
    files: dict[str, str] = {}
    for number, root in enumerate(_roots(arguments, directory, environment, own)):
        files.update(_sources(root, str(number), own=str(root) in own))
    for name in _named_settings(arguments, directory):
        files[f"argument {name.name}"] = _content(name)
    return CodeIdentity(
        source=_digest(sorted(files.items())) if files else "",
        program=_content(Path(program)) if program else "",
        environment=_installed(paths),
        files=files,
    )


def _roots(
    arguments: tuple[str, ...], directory: Path | None, environment: Mapping[str, str], own: list[str]
) -> list[Path]:
    """Folders whose contents are the trainer: its directory, its scripts' folders, what PYTHONPATH adds."""
    found: list[Path] = [directory.resolve()] if directory and directory.is_dir() else []
    here = directory or Path.cwd()
    for word in arguments[1:]:
        path = here / word
        if path.suffix in (".py", ".sh") and path.is_file():
            found.append(path.resolve().parent)
    added = environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    found += [Path(part).resolve() for part in added.split(os.pathsep) if part and Path(part).is_dir()]
    if "splatmeter" in arguments[1:3]:
        found += [Path(part) for part in own]
    kept: list[Path] = []
    for path in dict.fromkeys(found):
        if not any(other == path or other in path.parents for other in kept):
            kept.append(path)
    return kept


def _sources(root: Path, mark: str, own: bool) -> dict[str, str]:
    """Contents by name below the root; the lab's own half of splatmeter trains nothing and is left out."""
    names = list(_walk(root))
    if len(names) > MOST_FILES:
        names = [path for path in names if path.parent == root]
    found: dict[str, str] = {}
    for path in names:
        name = path.relative_to(root).as_posix()
        if own and (name.startswith("lab/") or name.startswith("cli/lab")):
            continue
        found[name if mark == "0" else f"{mark}:{name}"] = _content(path)
    return found


def _walk(root: Path) -> Iterator[Path]:
    seen: set[str] = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = sorted(name for name in folders if name not in _SKIPPED) if real not in seen else []
        if real in seen:
            continue
        seen.add(real)
        lab = "protocol.toml" in names
        folders[:] = [name for name in folders if not (lab and name in _OF_A_LAB)]
        written = lab or (folder != str(root) and _RESULTS & {*names, *folders})
        wanted = PROGRAMS if written else PROGRAMS | SETTINGS
        for name in sorted(names):
            if Path(name).suffix.lower() in wanted:
                yield Path(folder, name)


def _named_settings(arguments: tuple[str, ...], directory: Path | None) -> list[Path]:
    """Files of settings that the command names, wherever they lie."""
    here = directory or Path.cwd()
    paths = [here / word.rpartition("=")[2] for word in arguments[1:]]
    return [path for path in paths if path.suffix.lower() in SETTINGS and path.is_file()]


@functools.cache
def _python(program: str, directory: str, path: str | None) -> tuple[list[str], list[str]]:
    """Where this interpreter looks for packages, and where it finds splatmeter; ([], []) if it won't say."""
    variables = os.environ | ({} if path is None else {"PYTHONPATH": path})
    try:
        answer = subprocess.run(
            [program, "-c", _ASK], cwd=directory or None, env=variables, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        paths, own = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return [], []
    return [item for item in paths if item.endswith(("site-packages", "dist-packages"))], own


def _installed(paths: list[str]) -> str:
    """By size and time: installed packages are too many to be read before every run."""
    facts: list[tuple[str, int, int]] = []
    for path in paths:
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in names:
                if name.endswith(INSTALLED):
                    facts.append(_size_and_time(f"{folder}/{name}"))
    return _digest(sorted(facts)) if facts else ""


def _size_and_time(path: str) -> tuple[str, int, int]:
    try:
        state = Path(path).stat()
    except OSError:  # a link to nowhere
        return path, -1, -1
    return path, state.st_size, state.st_mtime_ns


def _content(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return "unreadable"
    return digest.hexdigest()[:24]


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogateescape")).hexdigest()
