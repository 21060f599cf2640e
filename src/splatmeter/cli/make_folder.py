"""The folder that `splatmeter make` fills: where its results lie, and a record of what they were made of."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.capture.place import writing
from splatmeter.capture.work import write_whole
from splatmeter.errors import OutputError
from splatmeter.models.run_settings import run_config
from splatmeter.train.output_folder import holds_run

NAME = "make.json"
MADE_BY = "splatmeter make"


@dataclass
class Record:
    """make.json: enough to tell whether the next start means the same, and what the steps took."""

    made_of: str
    """Fingerprint of the photos, the video or the scene."""
    options: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)
    """Time of each step, over all starts together."""
    judged: dict[str, Any] = field(default_factory=dict)
    made_by: str = MADE_BY


class Folder:
    def __init__(self, out: Path) -> None:
        self.out = out
        self.scene, self.model = out / "scene", out / "model"
        self.page, self.sheet = out / "scene.html", out / "contact_sheet.png"
        self.record = Record("", {})
        self._made = False

    def check(self, made_of: str, options: Mapping[str, Any]) -> str:
        """A sentence where earlier work cannot be used, empty where it can; what it would cost is refused."""
        earlier = self._read()
        if earlier is None:
            if not self._free():
                raise OutputError(
                    f"{self.out} exists and was not made by this command. Choose another folder with -o."
                )
            return ""
        changed = _changes(earlier, made_of, options)
        if not changed:
            self.record = earlier
            return ""
        if self.scene.exists() or holds_run(self.model):
            raise OutputError(
                f"{self.out} was made otherwise: {changed}. Choose another folder with -o, or remove it."
            )
        return f"Beginning anew: {changed}."

    def take(self, made_of: str, options: Mapping[str, Any]) -> None:
        """After `check`: from here on a killed run can go on."""
        self._made = not self.out.exists()
        self.out.mkdir(parents=True, exist_ok=True)
        if not self.record.made_of:
            self.record = Record(made_of, dict(options))
            try:
                self.save()
            except OutputError:
                if self._made:
                    self.out.rmdir()
                raise

    def save(self) -> None:
        with writing(self.out / NAME):
            write_whole(self.out / NAME, json.dumps(asdict(self.record), indent=1) + "\n")

    def spent(self, step: str, seconds: float) -> None:
        """Whether the step came to its end or not; a folder that was given up stays away."""
        self.record.seconds[step] = self.record.seconds.get(step, 0.0) + seconds
        if (self.out / NAME).exists():
            self.save()

    def give_up(self) -> None:
        """Nothing has come of it: leaves nothing behind. Where anything has, all of it stays."""
        if [path.name for path in self.out.iterdir()] != [NAME]:
            return
        with contextlib.suppress(OSError):
            (self.out / NAME).unlink()
            if self._made:
                self.out.rmdir()

    # ---- what is there ------------------------------------------------------------------------------------
    def model_file(self) -> Path | None:
        """The one of the last step that this run was told to do; fused.ply is written after it."""
        config = run_config(self.model) if self.model.is_dir() else None
        if config is None:
            return None
        saved = self.model / "point_cloud" / f"iteration_{config.iterations}"
        whole = (saved / "point_cloud.ply").is_file() and (saved / "fused.ply").is_file()
        return saved / "point_cloud.ply" if whole else None

    def older_than_model(self, path: Path) -> bool:
        """True also where one of them is missing."""
        model = self.model_file()
        return model is None or not path.is_file() or path.stat().st_mtime_ns < model.stat().st_mtime_ns

    def model_stamp(self) -> list[int]:
        """Equal as long as nobody wrote another model."""
        model = self.model_file()
        return [] if model is None else [model.stat().st_size, model.stat().st_mtime_ns]

    def _read(self) -> Record | None:
        path = self.out / NAME
        try:
            record = Record(**json.loads(path.read_text("utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError):
            raise OutputError(f"{path} cannot be read. Choose another folder with -o.") from None
        if record.made_by != MADE_BY:
            raise OutputError(f"{path} is of another program. Choose another folder with -o.")
        return record

    def _free(self) -> bool:
        """Nothing there, or half a record: a start that was killed at once."""
        if not self.out.exists() and not self.out.is_symlink():
            return True
        return self.out.is_dir() and {path.name for path in self.out.iterdir()} <= {f"{NAME}.new"}


def _changes(earlier: Record, made_of: str, options: Mapping[str, Any]) -> str:
    """What differs, as a part of a sentence; empty where nothing does."""
    for name, value in options.items():
        before = earlier.options.get(name)
        if before != value:
            option = "--" + name.replace("_", "-")
            return f"{option} was {_told(before)} and is now {_told(value)}"
    return "" if earlier.made_of == made_of else "of other photos, or the photos have changed since"


def _told(value: object) -> str:
    return {None: "not given", True: "on", False: "off"}.get(value, str(value))  # type: ignore[call-overload]
