"""A phase that is a git revision or a patch gets its own worktree and its own environment, built once."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.errors import InputError, MissingFile
from splatmeter.lab.atomic import read_json, write_json
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab, locked

OWN_BUILD = ("{python}", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", ".")
"""For revisions of splatmeter itself: its engine is native code, so a source tree alone does not run."""


@dataclass(frozen=True, slots=True)
class Built:
    python: str = sys.executable
    worktree: Path | None = None


def built(lab: Lab, lineage: list[Phase], protocol: Protocol) -> Built:
    """The nearest revision in the lineage, with all patches that came after it; nothing to do without
    either.
    """
    newest = max((place for place, phase in enumerate(lineage) if phase.revision), default=-1)
    revision = lineage[newest].revision if newest >= 0 else ""
    patches = [phase.patch for phase in lineage[max(0, newest) :] if phase.patch]
    if not revision and not patches:
        return Built()
    repository = _repository(lab, protocol)
    commit = _git(repository, "rev-parse", "--verify", f"{revision or 'HEAD'}^{{commit}}")
    texts = [_patch(lab, patch) for patch in patches]
    usual = OWN_BUILD if protocol.trainer == "splatmeter" else ()
    build = next((phase.build for phase in reversed(lineage) if phase.build), usual)
    identity = repr((commit, texts, build)).encode("utf-8", "surrogateescape")
    folder = lab.worktrees.resolve() / hashlib.sha256(identity).hexdigest()[:12]
    with locked(lab.worktrees / ".lock", "the folder of worktrees"):
        return _ensure(folder, repository, commit, (texts, build))


def _ensure(folder: Path, repository: Path, commit: str, recipe: tuple[list[str], tuple[str, ...]]) -> Built:
    texts, build = recipe
    source, done = folder / "source", folder / "built.json"
    python = folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if read_json(done) is None:
        folder.mkdir(parents=True, exist_ok=True)
        if source.exists():  # left over from a build that was killed
            _git(repository, "worktree", "remove", "--force", str(source))
        _git(repository, "worktree", "prune")
        _git(repository, "worktree", "add", "--detach", str(source), commit)
        for text in texts:
            _git(source, "apply", "--whitespace=nowarn", "-", text=text)
        if build:
            _make_environment(folder / "environment")
            _call(tuple(word.replace("{python}", str(python)) for word in build), source)
        write_json(done, {"commit": commit, "patches": len(texts), "build": list(build)})
    return Built(str(python) if build else sys.executable, source)


def _make_environment(folder: Path) -> None:
    """Its own packages first, then all of ours: only what is built there differs between the arms."""
    pip = [] if importlib.util.find_spec("pip") is None else ["--without-pip"]
    _call((sys.executable, "-m", "venv", "--clear", *pip, str(folder)), folder.parent)
    ours = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    for packages in folder.glob("[Ll]ib/**/site-packages"):
        (packages / "the_lab_s_own.pth").write_text("\n".join(ours) + "\n")


def _repository(lab: Lab, protocol: Protocol) -> Path:
    """Of the foreign trainer, or of splatmeter itself."""
    start = Path(protocol.directory).expanduser() if protocol.directory else Path(__file__).parent
    start = start if start.is_absolute() else lab.root / start
    return Path(_git(start, "rev-parse", "--show-toplevel"))


def _patch(lab: Lab, name: str) -> str:
    path = Path(name).expanduser()
    path = path if path.is_absolute() else lab.root / path
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise MissingFile(
            f"the patch {path} cannot be read; relative patches are seen from the lab's folder"
        ) from None


def _git(directory: Path, *arguments: str, text: str | None = None) -> str:
    return _call(("git", *arguments), directory, text).strip()


def _call(arguments: tuple[str, ...], directory: Path, text: str | None = None) -> str:
    """An empty input rather than the terminal's: nothing here may wait for a person."""
    try:
        answer = subprocess.run(
            arguments,
            cwd=directory,
            input=text or "",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise MissingFile(f"{arguments[0]} cannot be started in {directory}: {problem.strerror}") from None
    if answer.returncode:
        last = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"`{' '.join(arguments[:6])}` failed in {directory}: {last[0]}")
    return answer.stdout
