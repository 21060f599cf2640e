"""A phase that is a git revision or a patch gets its own worktree and its own environment, built once."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.errors import MissingFile
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab, locked
from splatmeter.lab.session import submodules
from splatmeter.lab.session.build_worktree import Workshop, build
from splatmeter.lab.session.git import call, git

OWN_BUILD = ("{python}", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", ".")
"""For revisions of splatmeter itself: its engine is native code, so a source tree alone does not run."""
LOG = "build.log"


@dataclass(frozen=True, slots=True)
class Built:
    python: str = sys.executable
    worktree: Path | None = None
    folder: Path | None = None
    """Holds worktree, environment, the build's log and what was built."""


def built(lab: Lab, lineage: list[Phase], protocol: Protocol, wait: bool = False) -> Built:
    """The nearest revision in the lineage, with all patches that came after it; nothing to do without
    either, unless a phase says how it is built.
    """
    newest = max((place for place, phase in enumerate(lineage) if phase.revision), default=-1)
    revision = lineage[newest].revision if newest >= 0 else ""
    patches = [phase.patch for phase in lineage[max(0, newest) :] if phase.patch]
    stated = next((phase.build for phase in reversed(lineage) if phase.build), ())
    if not revision and not patches and not stated:
        return Built()
    repository = _repository(lab, protocol)
    commit = git(repository, "rev-parse", "--verify", f"{revision or 'HEAD'}^{{commit}}")
    texts = [_patch(lab, patch) for patch in patches]
    usual = OWN_BUILD if protocol.trainer == "splatmeter" else ()
    recipe = (texts, stated or usual)
    identity = repr((commit, *recipe)).encode("utf-8", "surrogateescape")
    folder = lab.worktrees.resolve() / hashlib.sha256(identity).hexdigest()[:12]
    with locked(lab.worktrees / ".lock", "the folder of worktrees", wait):
        return _ensure(folder, repository, commit, recipe)


def _ensure(folder: Path, repository: Path, commit: str, recipe: tuple[list[str], tuple[str, ...]]) -> Built:
    texts, words = recipe
    source, done = folder / "source", folder / "built.json"
    python = folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if read_json(done) is None:
        folder.mkdir(parents=True, exist_ok=True)
        if source.exists():  # left over from a build that was killed
            git(repository, "worktree", "remove", "--force", str(source))
        git(repository, "worktree", "prune")
        plain = ("-c", "submodule.recurse=false")
        git(repository, *plain, "worktree", "add", "--detach", str(source), commit)
        _apply(source, repository, texts)
        if words:
            _make_environment(folder / "environment")
            build(words, Workshop(source, folder / "environment", python, folder / LOG))
        write_json(done, {"commit": commit, "patches": len(texts), "build": list(words)})
    return Built(str(python) if words else sys.executable, source, folder)


def _apply(source: Path, repository: Path, patches: list[str]) -> None:
    """Submodules first: a patch may change what lies in them."""
    moved: dict[str, str] = {}
    for text in patches:
        moved |= submodules.moved_by(text)
    submodules.fill(source, repository, moved)
    for text in patches:
        there = [f"--exclude={path}" for path in submodules.moved_by(text)]
        git(source, "apply", "--whitespace=nowarn", *there, "-", text=text)


def _make_environment(folder: Path) -> None:
    """Its own packages first, then all of ours: only what is built there differs between the arms."""
    pip = [] if importlib.util.find_spec("pip") is None else ["--without-pip"]
    call((sys.executable, "-m", "venv", "--clear", *pip, str(folder)), folder.parent)
    ours = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    for packages in folder.glob("[Ll]ib/**/site-packages"):
        (packages / "the_lab_s_own.pth").write_text("\n".join(ours) + "\n")


def _repository(lab: Lab, protocol: Protocol) -> Path:
    """Where the sources of the foreign trainer are, or those of splatmeter itself."""
    start = Path(protocol.directory).expanduser() if protocol.directory else Path(__file__).parent
    start = start if start.is_absolute() else lab.root / start
    return Path(git(start, "rev-parse", "--show-toplevel"))


def _patch(lab: Lab, name: str) -> str:
    path = Path(name).expanduser()
    path = path if path.is_absolute() else lab.root / path
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise MissingFile(
            f"The patch {path} cannot be read; relative patches are seen from the lab's folder."
        ) from None
