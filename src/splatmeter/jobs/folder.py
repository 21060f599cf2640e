"""A job's folder on storage that all machines share: what was asked, where it ran and how it ended, as JSON.

NAME.TRY/  job.json        what was asked, written before it is submitted
           submitted.json  the scheduler's number for it
           started.json    which node took it, written there; a second start of this job finds it and stops
           ended.json      exit code, written there; a job without it that the scheduler no longer knows died
           cancelled.json  we asked it to end; it did not die
           stdout.txt  stderr.txt  submitit/ (for the scheduler; we never read a pickle back)
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.files.atomic import write_text

_NAME = re.compile(r"(?P<name>.+)\.(?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done by one job, on one node, from its beginning to its end."""

    name: str
    """Names the folders of its tries, so no slashes."""
    arguments: tuple[str, ...]
    directory: str = ""
    """Where it is started; empty: where the job is submitted from."""


@dataclass(frozen=True, slots=True)
class JobFolder:
    """One try at a task."""

    path: Path

    @property
    def number(self) -> str:
        """The scheduler's; empty until it has one."""
        return str(self.read("submitted").get("id", ""))

    @property
    def ended(self) -> bool:
        return bool(self.read("ended"))

    @property
    def died(self) -> bool:
        """For a job that is over: it did not end by itself, and we did not ask it to."""
        ended = self.read("ended")
        return not self.read("cancelled") and (not ended or bool(ended.get("signalled")))

    @property
    def code(self) -> int:
        """Exit code of an ended job."""
        code = self.read("ended").get("code")
        return code if isinstance(code, int) else 1

    def read(self, name: str) -> dict[str, Any]:
        """{} for what is missing or not whole."""
        try:
            record = json.loads((self.path / f"{name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Whole or not at all; a name that exists is replaced."""
        text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
        write_text(self.path / f"{name}.json", text, durable=False)

    def write_once(self, name: str, record: Mapping[str, Any]) -> bool:
        """False if somebody was here before: whoever makes the name first has it, on any machine."""
        target = self.path / f"{name}.json"
        part = target.with_name(f".{name}.{os.getpid()}.part")
        part.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")
        try:
            os.link(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        return True

    def last_words(self) -> str:
        """The last line that the job, or else its scheduler, wrote to standard error, if any."""
        for path in (self.path / "stderr.txt", *sorted(self.path.glob("submitit/*_log.err"))):
            with contextlib.suppress(OSError):
                lines = path.read_text("utf-8", "replace").replace("\r", "\n").split("\n")
                told = next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
                if told:
                    return told
        return ""


def new_try(root: Path, task: Task, record: Mapping[str, Any]) -> JobFolder:
    """The next number that no try of this task has had; nobody but us may write into it."""
    root.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(found.path.name.rpartition(".")[2]) for found in tries(root, task.name)), default=0)
    folder = root / f"{task.name}.{number}"
    folder.mkdir(mode=0o700)
    made = JobFolder(folder)
    made.write("job", {"arguments": list(task.arguments), "directory": task.directory, **record})
    return made


def tries(root: Path, name: str) -> list[JobFolder]:
    """All tries at a task so far, oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in root.glob("*.*") if path.is_dir()]
    mine = [(int(match["number"]), path) for match, path in found if match and match["name"] == name]
    return [JobFolder(path) for _, path in sorted(mine)]
