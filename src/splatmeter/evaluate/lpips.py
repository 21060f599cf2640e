"""LPIPS for a process that must stay small: torch lives in a child, whose memory never counts as ours."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

import splatmeter
from splatmeter.errors import InputError, MissingExtra, UsageError
from splatmeter.evaluate.lpips_weights import find
from splatmeter.evaluate.metrics import Pixels
from splatmeter.evaluate.renders import write_png
from splatmeter.files.locks import IN_USE, Hold

CONVENTIONS = ("unit", "signed")
"""'unit': pictures in [0, 1], as the original feeds them; 'signed': [-1, 1], as LPIPS was trained."""

PREFIX = "splatmeter-lpips-"
"""Begins the names of folders that hand pictures to the child; a killed process leaves one behind."""
ROLES = ("render", "photo")


def left_behind() -> list[tuple[Path, list[Path]]]:
    """Such folders of this user, also those in use, and what we put into each."""
    places = sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
    ours = [place for place in places if _is_ours(place)]
    names = (*(f"{role}.png" for role in ROLES), IN_USE)
    return [(place, [place / name for name in names if _is_plain(place / name)]) for place in ours]


def _is_ours(place: Path) -> bool:
    owner = getattr(os, "getuid", lambda: 0)()
    return not place.is_symlink() and place.is_dir() and place.stat().st_uid == owner


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


class Lpips:
    """A callable on two pictures [3, H, W]; close it, or use it as a context, to end the child.

    A forgotten one ends its child when it is collected or when the program leaves.

    Raises at once, before any rendering, when weights or torch are not there.
    """

    def __init__(self, network: str = "vgg", convention: str = "unit", weights: Path | None = None) -> None:
        if convention not in CONVENTIONS:
            raise UsageError(f"{convention!r} is no LPIPS convention; choose unit or signed.")
        self.weights = find(network, weights)
        if not torch_is_there():
            raise MissingExtra("LPIPS", "torch")
        self.name = f"lpips {network} ({convention})"
        self.peak_memory_bytes = 0
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        hold = Hold(self._folder)
        self._child = _start()
        self._end = weakref.finalize(self, _finish, self._child, self._folder, hold)
        try:
            request = {"network": network, "convention": convention}
            paths = {"backbone": str(self.weights.backbone), "heads": str(self.weights.heads)}
            self._ask(request | paths)
        except BaseException:
            self.close()
            raise

    def __call__(self, render: Pixels, photo: Pixels) -> float:
        paths = {role: self._folder / f"{role}.png" for role in ROLES}
        write_png(paths["render"], render)
        write_png(paths["photo"], photo)
        return self.of_files(paths["render"], paths["photo"])

    def of_files(self, render: Path, photo: Path) -> float:
        answer = self._ask({"render": str(render), "photo": str(photo)})
        self.peak_memory_bytes = max(self.peak_memory_bytes, int(answer["peak_memory_bytes"]))
        return float(answer["lpips"])

    def close(self) -> None:
        self._end()

    def __enter__(self) -> Lpips:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = self._child.poll()
            raise InputError(
                f"The LPIPS process ended unexpectedly (code {code}); it may have run out of memory. "
                "Use --lpips none or smaller pictures."
            )
        answer = json.loads(line)
        if "error" in answer:
            raise InputError(f"LPIPS failed: {answer['error']}")
        return answer


def torch_is_there() -> bool:
    """Without importing it: this process stays small."""
    return importlib.util.find_spec("torch") is not None


def _start() -> subprocess.Popen[str]:
    """The child finds this very package, wherever the parent took it from."""
    package = str(Path(splatmeter.__file__).parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "splatmeter.evaluate.lpips_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # Ctrl-C is meant for the parent, which ends the child when it is done
    )


def _finish(child: subprocess.Popen[str], folder: Path, hold: Hold) -> None:
    """Ends the child by ending its input; a child that does not listen is killed."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # it died with our last words unread
                continue
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    shutil.rmtree(folder, ignore_errors=True)
    hold.release()
