"""pycolmap behind the engine's few words. Only the child process loads that library: it may abort."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatmeter import process_memory
from splatmeter.capture.engine import CameraGuess, Model, Tell
from splatmeter.capture.job import CleanPhoto, Settings
from splatmeter.capture.pairs import Pair
from splatmeter.capture.prepare import JPEG_QUALITY
from splatmeter.capture.work import Work

FEATURES_AT = 1600
"""Pixels of the longer side at which features are sought; memory of one thread follows from it."""
BYTES_A_THREAD = 800 * 2**20
"""What one extracting thread takes at 1600x1600, measured (750 MB), rounded up."""
CHUNK = 8
"""Photos extracted in one call: what is lost at most when the process is killed."""
SMALLEST_MODEL = 3
ALMOST_ZERO = 1e-6
LOOKS_A_SECOND = 2


class ColmapEngine:
    def __init__(self, work: Work, settings: Settings) -> None:
        import pycolmap

        self._colmap: Any = pycolmap
        self._work, self._settings = work, settings
        self._known: dict[int, int] = {}
        pycolmap.logging.minloglevel = 1  # warnings and errors, into the log file
        pycolmap.set_random_seed(settings.seed)

    def extract(self, camera: CameraGuess, tell: Tell) -> None:
        known = self._numbers_with_features()
        done = sum(photo.number in known for photo in camera.photos)
        identity = next((known[photo.number] for photo in camera.photos if photo.number in known), None)
        for hidden in (False, True):
            left = [p for p in camera.photos if p.number not in known and p.hidden == hidden]
            for start in range(0, len(left), CHUNK):
                chunk = left[start : start + CHUNK]
                identity = self._extract(chunk, camera, identity, hidden)
                done += len(chunk)
                tell(done, len(camera.photos))

    def _extract(
        self, photos: Sequence[CleanPhoto], camera: CameraGuess, identity: int | None, hidden: bool
    ) -> int:
        """One chunk with one lens; gives the lens's number in the database."""
        reader = self._colmap.ImageReaderOptions(camera_model=self._settings.camera_model)
        if hidden:
            reader.mask_path = self._feature_masks(photos)
        if identity is not None:
            reader.existing_camera_id = identity
        options = self._colmap.FeatureExtractionOptions(
            max_image_size=FEATURES_AT, num_threads=extracting_threads(self._settings.threads), use_gpu=False
        )
        mode = self._colmap.CameraMode.SINGLE
        names = [photo.file for photo in photos]
        self._colmap.extract_features(
            self._work.database, self._work.photos, names, mode, reader, options, self._colmap.Device.cpu
        )
        with self._database() as database:
            found = database.read_image_with_name(photos[0].file).camera_id
            if identity is None:
                lens = self._colmap.Camera.create_from_model_name(
                    found, self._settings.camera_model, camera.focal, camera.width, camera.height
                )
                lens.has_prior_focal_length = camera.known
                database.update_camera(lens)
        return found

    def _feature_masks(self, photos: Sequence[CleanPhoto]) -> Path:
        """Named as COLMAP wants them: the photo's whole name and .png."""
        folder = self._work.root / "feature_masks"
        folder.mkdir(exist_ok=True)
        for photo in photos:
            shutil.copyfile(self._work.masks / str(photo.mask), folder / f"{photo.file}.png")
        return folder

    def _numbers_with_features(self) -> dict[int, int]:
        """Number of the photo -> its lens."""
        if not self._work.database.exists():
            return {}
        with self._database() as database:
            return {
                _number(image.name): image.camera_id
                for image in database.read_all_images()
                if database.exists_keypoints(image.image_id) and database.exists_descriptors(image.image_id)
            }

    def feature_counts(self) -> dict[int, int]:
        with self._database() as database:
            images = database.read_all_images()
            return {_number(i.name): database.num_keypoints_for_image(i.image_id) for i in images}

    def descriptors(self, number: int) -> NDArray[np.uint8]:  # [n, 128]
        with self._database() as database:
            if number not in self._known:
                self._known = self._identities(database)
            identity = self._known[number]
            return np.asarray(database.read_descriptors(identity).data, np.uint8)

    def match(self, pairs: Sequence[Pair]) -> None:
        with self._database() as database:
            names = {_number(image.name): image.name for image in database.read_all_images()}
        listed = self._work.root / "pairs.txt"
        listed.write_text("".join(f"{names[one]} {names[other]}\n" for one, other in pairs), "utf-8")
        matching = self._colmap.FeatureMatchingOptions(num_threads=self._settings.threads, use_gpu=False)
        verification = self._colmap.TwoViewGeometryOptions()
        verification.ransac.random_seed = self._settings.seed
        pairing = self._colmap.ImportedPairingOptions(match_list_path=listed)
        self._colmap.match_image_pairs(
            self._work.database, matching, pairing, verification, self._colmap.Device.cpu
        )

    def inliers(self) -> dict[Pair, int]:
        with self._database() as database:
            numbers = {identity: number for number, identity in self._identities(database).items()}
            keys, counts = database.read_two_view_geometry_num_inliers()
        found: dict[Pair, int] = {}
        for key, count in zip(keys, counts, strict=True):
            one, other = (numbers[identity] for identity in self._colmap.pair_id_to_image_pair(key))
            if count:
                found[min(one, other), max(one, other)] = count
        return found

    def reconstruct(self, total: int, tell: Tell) -> list[Model]:
        shutil.rmtree(self._work.sparse, ignore_errors=True)
        self._work.sparse.mkdir()
        options = self._colmap.IncrementalPipelineOptions(
            num_threads=self._settings.threads, random_seed=self._settings.seed, min_model_size=SMALLEST_MODEL
        )
        placed = 0

        def begin() -> None:
            nonlocal placed
            placed = 2
            tell(placed, total)

        def another() -> None:
            nonlocal placed
            placed = min(placed + 1, total)
            tell(placed, total)

        found = self._colmap.incremental_mapping(
            self._work.database,
            self._work.photos,
            self._work.sparse,
            options,
            initial_image_pair_callback=begin,
            next_image_callback=another,
        )
        models = [self._model(str(key), piece) for key, piece in found.items()]
        return sorted(models, key=lambda model: (-len(model.numbers), -model.points))

    def _model(self, folder: str, piece: Any) -> Model:
        numbers = sorted(_number(piece.images[identity].name) for identity in piece.reg_image_ids())
        lenses = [piece.cameras[identity] for identity in sorted(piece.cameras)]
        used = {piece.images[identity].camera_id for identity in piece.reg_image_ids()}
        words = tuple(
            f"{lens.model_name} {lens.width}x{lens.height}, focal length {lens.mean_focal_length():.0f} px"
            for lens in lenses
            if lens.camera_id in used
        )
        error = float(piece.compute_mean_reprojection_error()) if piece.num_points3D() else 0.0
        return Model(folder, tuple(numbers), int(piece.num_points3D()), error, words)

    def undistort(self, model: Model, photos: Sequence[CleanPhoto], tell: Tell) -> None:
        for folder in (self._work.flat, self._work.scene):
            shutil.rmtree(folder, ignore_errors=True)
        options, source = self._colmap.UndistortCameraOptions(), self._work.flat / "distorted"
        source.mkdir(parents=True)
        distorted = self._colmap.Reconstruction(self._work.sparse / model.folder)
        for lens in distorted.cameras.values():
            self._say_what_it_is(lens)
        distorted.write(source)
        with _watched(self._work.flat / "images", len(model.numbers), tell):
            self._colmap.undistort_images(
                self._work.flat,
                source,
                self._work.photos,
                undistort_options=options,
                jpeg_quality=JPEG_QUALITY,
                num_threads=self._settings.threads,
            )
        flat = self._colmap.Reconstruction(self._work.flat / "sparse")
        by_file = {photo.file: photo for photo in photos}
        lenses = {image.name: image.camera for image in distorted.images.values()}
        for image in flat.images.values():
            photo = by_file[image.name]
            _move(self._work.flat / "images" / photo.file, self._work.scene / "images" / photo.name)
            if photo.mask is not None:
                self._undistort_mask(photo, options, lenses[image.name])
            image.name = photo.name
        sparse = self._work.scene / "sparse" / "0"
        sparse.mkdir(parents=True)
        flat.write(sparse)

    def _say_what_it_is(self, lens: Any) -> None:
        """The library copies photos whose coefficients are all zero as they are, with their old lens.

        For a fisheye that is wrong, so it gets a coefficient that changes nothing; others are pinholes.
        """
        if not lens.is_undistorted() or lens.model_name in ("PINHOLE", "SIMPLE_PINHOLE"):
            return
        across, down = lens.focal_length_x, lens.focal_length_y
        plain = [across, down, lens.principal_point_x, lens.principal_point_y]
        if lens.is_perspective_fisheye():
            lens.model, lens.params = (
                self._colmap.CameraModelId.OPENCV_FISHEYE,
                [*plain, ALMOST_ZERO, 0, 0, 0],
            )
        else:
            lens.model, lens.params = self._colmap.CameraModelId.PINHOLE, plain

    def _undistort_mask(self, photo: CleanPhoto, options: Any, lens: Any) -> None:
        with Image.open(self._work.masks / str(photo.mask)) as image:
            grey = np.ascontiguousarray(image.convert("L"))  # [h, w]
        if not lens.is_undistorted():
            bitmap, _ = self._colmap.undistort_image(options, self._colmap.Bitmap.from_array(grey), lens)
            grey = np.asarray(bitmap.to_array(), np.uint8)
            grey = grey.reshape(grey.shape[:2]) if grey.ndim == 2 or grey.shape[2] == 1 else grey[..., 0]
        target = self._work.scene / "masks" / Path(photo.name).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(grey).save(target)

    @contextmanager
    def _database(self) -> Iterator[Any]:
        database = self._colmap.Database.open(self._work.database)
        try:
            yield database
        finally:
            database.close()

    def _identities(self, database: Any) -> dict[int, int]:
        return {_number(image.name): image.image_id for image in database.read_all_images()}


def extracting_threads(asked: int) -> int:
    """As many as were asked for and as free memory has room for, never none."""
    return max(1, min(asked, int(process_memory.available_bytes() * 0.7) // BYTES_A_THREAD))


def _number(file: str) -> int:
    return int(file.partition(".")[0])


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


@contextmanager
def _watched(folder: Path, total: int, tell: Tell) -> Iterator[None]:
    """The library does not tell how far it is; files do."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(1 / LOOKS_A_SECOND):
            if folder.is_dir():
                tell(min(total, sum(1 for _ in folder.iterdir())), total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    tell(total, total)
