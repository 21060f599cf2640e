"""An engine that pretends, a child process that is none, and photos to try things with."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatmeter.capture.child import Hear
from splatmeter.capture.engine import CameraGuess, Model, Tell
from splatmeter.capture.job import CleanPhoto, Job
from splatmeter.capture.pairs import Pair
from splatmeter.capture.stages import run_stages
from splatmeter.capture.work import Work
from splatmeter.ops import Pinhole
from splatmeter.scene.camera_files import centered, focal_of_angle
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.demo import TARGET, looking_at, photograph
from splatmeter.scene.points import PointCloud


class PretendEngine:
    """Keeps what it was told in a file, as a database would; all photos but the `lost` find a place."""

    def __init__(
        self, work: Work, lost: Sequence[int] = (), apart: Sequence[int] = (), features: int = 1000
    ) -> None:
        self.work, self.lost, self.apart, self.features = work, set(lost), set(apart), features
        self.calls: list[str] = []

    def _database(self) -> dict[str, Any]:
        path = self.work.database
        return json.loads(path.read_text()) if path.exists() else {"features": {}, "pairs": [], "cameras": []}

    def extract(self, camera: CameraGuess, tell: Tell) -> None:
        self.calls.append("extract")
        database = self._database()
        database["features"].update({str(photo.number): self.features for photo in camera.photos})
        database["cameras"].append([camera.width, camera.height, camera.focal, camera.known])
        self.work.database.write_text(json.dumps(database))
        tell(len(camera.photos), len(camera.photos))

    def feature_counts(self) -> dict[int, int]:
        return {int(number): count for number, count in self._database()["features"].items()}

    def descriptors(self, number: int) -> NDArray[np.uint8]:
        return np.random.default_rng(number).integers(0, 255, (50, 128)).astype(np.uint8)

    def match(self, pairs: Sequence[Pair]) -> None:
        self.calls.append("match")
        database = self._database()
        database["pairs"] += [list(pair) for pair in pairs]
        self.work.database.write_text(json.dumps(database))

    def inliers(self) -> dict[Pair, int]:
        return {
            (one, other): 5 if {one, other} & self.lost else 300 for one, other in self._database()["pairs"]
        }

    def reconstruct(self, total: int, tell: Tell) -> list[Model]:
        self.calls.append("reconstruct")
        numbers = sorted(set(self.feature_counts()) - self.lost - self.apart)
        models = [Model("0", tuple(numbers), 500, 0.5, ("PINHOLE 320x240, focal length 300 px",))]
        if self.apart:
            models.append(Model("1", tuple(sorted(self.apart)), 50, 0.6))
        return models if len(numbers) >= 2 else []

    def undistort(self, model: Model, photos: Sequence[CleanPhoto], tell: Tell) -> None:
        self.calls.append("undistort")
        shutil.rmtree(self.work.scene, ignore_errors=True)
        placed = [photo for photo in photos if photo.number in model.numbers]
        for photo in placed:
            target = self.work.scene / "images" / photo.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.work.photos / photo.file, target)
        rotation = np.eye(3)
        cameras = [
            Pinhole(
                rotation,
                np.array([p.number, 0.0, 0.0]),
                300,
                300,
                p.width / 2,
                p.height / 2,
                p.width,
                p.height,
            )
            for p in placed
        ]
        points = PointCloud(np.random.default_rng(0).random((20, 3), np.float32), np.zeros((20, 3), np.uint8))
        write_colmap(self.work.scene, cameras, [photo.name for photo in placed], points)


class InProcess:
    """Takes the place of the child process; `engine` is there to be asked afterwards."""

    def __init__(
        self,
        lost: Sequence[int] = (),
        apart: Sequence[int] = (),
        stop_in: str = "",
        features: int = 1000,
    ) -> None:
        self.lost, self.apart, self.stop_in, self.features = lost, apart, stop_in, features
        self.engine: PretendEngine | None = None

    def __call__(self, task: str, work: Work, hear: Hear) -> None:
        job = Job.from_json(json.loads(work.job.read_text("utf-8"))["job"])
        self.engine = PretendEngine(work, self.lost, self.apart, self.features)

        def heard(message: dict[str, Any]) -> None:
            hear(message)
            if message.get("stage") == self.stop_in:
                raise KeyboardInterrupt

        run_stages(job, work, lambda: self.engine, heard)  # type: ignore[arg-type, return-value]


def textured(seed: int = 0, width: int = 320, height: int = 240) -> Image.Image:
    """Something sharp that no two seeds share."""
    coarse = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3)).astype(np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.NEAREST)


def folder_of_photos(folder: Path, count: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        textured(number).save(folder / f"IMG_{number}.jpg", quality=92)
    return folder


def arc(count: int, degrees: float, width: int, height: int) -> list[Pinhole]:
    """Steps around the built-in garden that neighbours recognise each other from."""
    lens = centered(focal_of_angle(math.radians(55), width), width, height)
    cameras = []
    for number in range(count):
        angle = math.radians(degrees) * number
        eye = np.array([3.8 * math.cos(angle), 3.8 * math.sin(angle), 1.6 + 0.25 * math.sin(2.1 * angle)])
        rotation = looking_at(eye, TARGET)
        cameras.append(Pinhole(rotation, -rotation @ eye, lens.fx, lens.fy, lens.cx, lens.cy, width, height))
    return cameras


def garden_photos(cameras: Sequence[Pinhole]) -> list[Image.Image]:
    return [Image.fromarray(photograph(camera, samples=4, seed=0, threads=2)) for camera in cameras]
