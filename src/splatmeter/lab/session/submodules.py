"""Submodules of a worktree: kernels usually live in one, and git leaves them empty.

They are cloned from the checkouts that the trainer's own repository has, so that no network is needed and the
repository's settings stay untouched; git is asked for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from splatmeter.errors import InputError
from splatmeter.lab.session.git import asked, git

_FILE = re.compile(r"diff --git a/(\S+) b/(\S+)")
CHECKOUT = ("-c", "submodule.recurse=false", "checkout", "--quiet", "--detach")
"""Nested submodules come by the same way as these, whatever a person's settings say."""
_MOVED = re.compile(r"\+Subproject commit ([0-9a-f]{40,64})")


def moved_by(patch: str) -> dict[str, str]:
    """Submodules that a patch moves to another commit, which `git apply` passes over in silence."""
    found: dict[str, str] = {}
    path = ""
    for line in patch.splitlines():
        if header := _FILE.match(line):
            path = header[2]
        elif path and (commit := _MOVED.match(line)):
            found[path] = commit[1]
    return found


def fill(source: Path, repository: Path, moved: Mapping[str, str] = {}) -> None:
    """All submodules of the worktree, and theirs, at the commits that it names or that `moved` names."""
    for path, commit in _named(source).items():
        wanted = moved.get(path, commit)
        target, here = source / path, repository / path
        if not _cloned(here, target, wanted):
            _updated(source, path, commit)
            if wanted != commit and asked(target, *CHECKOUT, wanted) is None:
                raise _missing(path, wanted, repository)
        if not (target / ".git").exists():
            raise _missing(path, wanted, repository)
        fill(target, here)


def _named(source: Path) -> dict[str, str]:
    """Path -> commit of every submodule that the commit knows; mode 160000 is git's mark of one."""
    lines = git(source, "ls-tree", "-r", "-z", "HEAD").split("\0")
    links = [line.partition("\t") for line in lines if line.startswith("160000 ")]
    return {path: facts.split()[2] for facts, _, path in links}


def _cloned(here: Path, target: Path, commit: str) -> bool:
    """From the checkout beside the worktree's own repository, if it holds that commit."""
    if not (here / ".git").exists() or asked(here, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    git(target.parent, "clone", "--quiet", "--no-checkout", "--shared", str(here.resolve()), target.name)
    if asked(target, *CHECKOUT, commit) is None:  # a shallow checkout hands on only what its branches name
        lent = here / git(here, "rev-parse", "--git-path", "objects")
        with (target / ".git" / "objects" / "info" / "alternates").open("a") as file:
            file.write(f"{lent.resolve()}\n")
        git(target, *CHECKOUT, commit)
    return True


def _updated(source: Path, path: str, commit: str) -> None:
    """From where .gitmodules says, which may need a network."""
    try:
        git(source, "submodule", "--quiet", "update", "--init", "--", path)
    except InputError as problem:
        raise InputError(
            f"{_missing_text(path, commit, source)}, and git could not fetch it ({str(problem).rstrip('.')});"
            " run `git submodule update --init --recursive` in the trainer's folder while you are online."
        ) from None


def _missing(path: str, commit: str, repository: Path) -> InputError:
    return InputError(
        f"{_missing_text(path, commit, repository)};"
        " run `git submodule update --init --recursive` in the trainer's folder while you are online."
    )


def _missing_text(path: str, commit: str, where: Path) -> str:
    return f"The submodule {path} of {where} is needed at {commit[:12]}, and no checkout here has it"
