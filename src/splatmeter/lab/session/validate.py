"""Asks our trainer, before anything runs, whether it understands its options and has the memory for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from splatmeter.errors import NotEnoughMemory, UsageError
from splatmeter.units import bytes_text


def dry_run(
    name: str, arguments: tuple[str, ...], directory: Path | None, environment: Mapping[str, str]
) -> int | None:
    """Predicted bytes; None if the trainer does not predict. Foreign trainers are not asked: they have no
    dry run.
    """
    if arguments[1:4] != ("-m", "splatmeter", "train"):
        return None
    words = [word for word in arguments if word != "--events-stdout"]
    answer = _asked([*words, "--dry-run", "--json"], directory, environment)
    if answer.returncode and b"--json" in answer.stderr:  # an earlier revision, whose dry run is JSON anyway
        answer = _asked([*words, "--dry-run"], directory, environment)
    if answer.returncode:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
        raise UsageError(
            f"The trainer refuses the options of {name}: {lines[-1].rstrip('.')}. Nothing was run."
        )
    try:
        memory = json.loads(answer.stdout)["predicted_memory"]
        needed, available = int(memory["planned_bytes"]), int(memory["available_bytes"])
    except (ValueError, KeyError, TypeError):
        return None
    if needed > available:
        raise NotEnoughMemory(
            f"{name} will need about {bytes_text(needed)} and {bytes_text(available)} are available;"
            " shrink the photos with a larger resolution factor or limit the Gaussians."
        )
    return needed


def _asked(
    words: list[str], directory: Path | None, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words,
        cwd=directory,
        env=os.environ | dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
