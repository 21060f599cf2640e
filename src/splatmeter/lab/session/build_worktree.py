"""Builds a worktree and keeps what the build prints: compilers tell there what they made of a kernel."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from splatmeter.errors import InputError, MissingFile
from splatmeter.lab.plan.build_steps import BuildStep, build_steps

PTXAS_TELLS = "-Xptxas -v"
"""nvcc takes this from NVCC_APPEND_FLAGS: registers and spills are told whatever the build's own flags are,
and the code that comes out is the same.
"""
_ERROR = re.compile(r"\berror\b|\bfatal\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where a build happens and what it uses."""

    source: Path
    environment: Path
    python: Path
    log: Path


def build(words: tuple[str, ...], shop: Workshop) -> None:
    """Everything printed goes to the log; a build that fails leaves its log under another name."""
    unfinished = shop.log.with_name("build.failed.log")
    with unfinished.open("wb") as file:
        for step in build_steps(words):
            arguments = _arguments(step, shop)
            file.write(f"$ {' '.join(step.arguments)}\n".encode("utf-8", "surrogateescape"))
            file.flush()
            code = _run(arguments, shop, file.fileno(), step.variables)
            if code:
                raise InputError(
                    f"The build `{' '.join(step.arguments)[:100]}` ended with {code}:"
                    f" {_complaint(unfinished)}; all that it printed is in {unfinished}."
                )
    unfinished.replace(shop.log)


def _arguments(step: BuildStep, shop: Workshop) -> tuple[str, ...]:
    """`python` and `pip` are those of the phase's own environment: another's would change all arms."""
    python = str(shop.python)
    first, *rest = (word.replace("{python}", python) for word in step.arguments)
    if first in ("pip", "pip3"):
        return (python, "-m", "pip", *rest)
    return (python if first in ("python", "python3") else first, *rest)


def _run(arguments: tuple[str, ...], shop: Workshop, output: int, variables: Mapping[str, str]) -> int:
    try:
        answer = subprocess.run(
            arguments,
            cwd=shop.source,
            env=_environment(shop) | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as problem:
        raise MissingFile(
            f"{arguments[0]} cannot be started in {shop.source}: {problem.strerror};"
            " correct the phase's build."
        ) from None
    return answer.returncode


def _environment(shop: Workshop) -> dict[str, str]:
    """pip hides what a compiler prints unless it is told not to."""
    known = dict(os.environ)
    known.setdefault("PIP_VERBOSE", "1")
    known["VIRTUAL_ENV"] = str(shop.environment)
    known["PATH"] = os.pathsep.join([str(shop.python.parent), known.get("PATH", os.defpath)])
    flags = known.get("NVCC_APPEND_FLAGS", "")
    known["NVCC_APPEND_FLAGS"] = flags if "ptxas" in flags else f"{flags} {PTXAS_TELLS}".strip()
    return known


def _complaint(log: Path) -> str:
    """The first line that speaks of an error, else the last line."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and not line.startswith("$ ")]
    return (errors[:1] or lines[-1:])[0][:300]
