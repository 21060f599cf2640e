"""The camera that everybody uses, and ways to build one that refuse what is no camera.

Conventions, once for all: camera axes are OpenCV's and COLMAP's (x right, y down, z forward); the centre of
the first pixel lies at (0.5, 0.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from splatmeter.camera.lens import Intrinsics, lens, side
from splatmeter.camera.passed_numbers import F64, kind, vector
from splatmeter.camera.pose import rigid, unit
from splatmeter.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Camera:
    """An undistorted camera: its place, its direction, and its lens at the size of the picture.

    Axes are OpenCV's and COLMAP's: x to the right, y down, z forward along the optical axis. A point p of the
    world lies at ``rotation @ p + translation`` in these axes, and falls on the pixel coordinates
    ``(fx * x / z + cx, fy * y / z + cy)``; the centre of the first pixel is (0.5, 0.5).

    Build one with `from_camera_to_world`, `from_world_to_camera` or `look_at`, or take a scene's own:

    >>> camera = Camera.look_at((4, 0, 2), (0, 0, 0), up=(0, 0, 1), width=128, height=96, field_of_view=55)
    >>> camera.position.round(6).tolist()
    [4.0, 0.0, 2.0]
    """

    rotation: F64
    """World to camera, [3, 3]: its rows are the camera's axes in the world."""
    translation: F64
    """World to camera, [3]. Where the camera stands is `position`."""
    fx: float
    """Focal length in pixels, across."""
    fy: float
    """Focal length in pixels, down."""
    cx: float
    """Where the optical axis meets the picture, in pixels from its left edge."""
    cy: float
    """The same from its upper edge."""
    width: int
    """Size of the picture in pixels."""
    height: int
    """Size of the picture in pixels."""

    # ---- building one -------------------------------------------------------------------------------------
    @classmethod
    def from_camera_to_world(
        cls,
        pose: ArrayLike,
        *,
        width: int,
        height: int,
        fx: float | None = None,
        fy: float | None = None,
        cx: float | None = None,
        cy: float | None = None,
        field_of_view: float | None = None,
    ) -> Camera:
        """From a pose that takes camera coordinates to the world: its last column is the camera's place.

        `pose` is a matrix of 4x4 or 3x4 numbers: a rotation and a translation, without scale or mirroring, in
        OpenCV axes. A pose in OpenGL axes (NeRF, Blender: y up, z backward) becomes one by
        ``pose @ np.diag([1, -1, -1, 1])``.

        The lens is `fx` (and `fy`, by default the same) in pixels, or `field_of_view`, the angle from the
        left edge to the right one in degrees. `cx` and `cy` are the picture's middle unless given.

        >>> import numpy as np
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = (0, 0, -2)
        >>> Camera.from_camera_to_world(pose, width=64, height=48, fx=60)
        Camera(at (0, 0, -2) looking (0, 0, 1), 64x48, fx 60, fy 60, cx 32, cy 24)
        """
        rotation, place = rigid(pose)
        optics = lens(width, height, fx, fy, cx, cy, field_of_view)
        return cls(rotation.T.copy(), -rotation.T @ place, **optics)

    @classmethod
    def from_world_to_camera(
        cls,
        pose: ArrayLike,
        *,
        width: int,
        height: int,
        fx: float | None = None,
        fy: float | None = None,
        cx: float | None = None,
        cy: float | None = None,
        field_of_view: float | None = None,
    ) -> Camera:
        """From a pose that takes world coordinates to the camera, as COLMAP and OpenCV's "extrinsics" do.

        Everything else is as in `from_camera_to_world`; one pose is the inverse of the other.

        >>> import numpy as np
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = (0, 0, 2)
        >>> Camera.from_world_to_camera(pose, width=64, height=48, field_of_view=90)
        Camera(at (0, 0, -2) looking (0, 0, 1), 64x48, fx 32, fy 32, cx 32, cy 24)
        """
        rotation, translation = rigid(pose)
        return cls(rotation, translation, **lens(width, height, fx, fy, cx, cy, field_of_view))

    @classmethod
    def look_at(
        cls,
        position: ArrayLike,
        target: ArrayLike,
        up: ArrayLike,
        *,
        width: int,
        height: int,
        fx: float | None = None,
        fy: float | None = None,
        cx: float | None = None,
        cy: float | None = None,
        field_of_view: float | None = None,
    ) -> Camera:
        """From a place to stand, a point to look at and the direction that is up in the picture.

        Worlds differ in what is up: a scene tells it as `scene.up`, and as `scene.focus` the point that its
        photos look at. The lens is given as in `from_camera_to_world`; that of another camera is
        ``**camera.intrinsics``.

        >>> lens = {"width": 64, "height": 48, "field_of_view": 90}
        >>> Camera.look_at((3, 0, 0), (0, 0, 0), up=(0, 0, 1), **lens)
        Camera(at (3, 0, 0) looking (-1, 0, 0), 64x48, fx 32, fy 32, cx 32, cy 24)
        """
        place, aim, upward = vector("position", position), vector("target", target), vector("up", up)
        forward = unit(aim - place, "position and target are one point, so there is no direction to look in.")
        sideways = np.cross(forward, upward)
        right = unit(sideways, "up is zero or points along the line of sight: choose another direction.")
        rotation = np.stack([right, np.cross(forward, right), forward])  # [3, 3] world to camera
        return cls(rotation, -rotation @ place, **lens(width, height, fx, fy, cx, cy, field_of_view))

    def resized(self, width: int) -> Camera:
        """The same view in a picture of another width; the height follows.

        >>> camera = Camera.look_at((3, 0, 0), (0, 0, 0), (0, 0, 1), width=64, height=48, fx=60)
        >>> camera.resized(128)
        Camera(at (3, 0, 0) looking (-1, 0, 0), 128x96, fx 120, fy 120, cx 64, cy 48)
        """
        across = side("width", width)
        height = max(1, round(self.height * across / self.width))
        x, y = across / self.width, height / self.height
        optics = (self.fx * x, self.fy * y, self.cx * x, self.cy * y)
        return Camera(self.rotation, self.translation, *optics, across, height)

    # ---- looking at it ------------------------------------------------------------------------------------
    @property
    def position(self) -> F64:
        """Where the camera stands in the world, [3]."""
        return -self.rotation.T @ self.translation  # [3] world

    @property
    def world_to_camera(self) -> F64:
        """The pose as a matrix, [4, 4]: from world coordinates to the camera's, OpenCV axes."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation, self.translation
        return pose

    @property
    def camera_to_world(self) -> F64:
        """The pose as a matrix, [4, 4]: from camera coordinates (OpenCV axes) to the world's."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation.T, self.position
        return pose

    @property
    def intrinsics(self) -> Intrinsics:
        """The lens, to be passed on: ``Camera.look_at(position, target, up, **camera.intrinsics)``."""
        return Intrinsics(
            fx=self.fx, fy=self.fy, cx=self.cx, cy=self.cy, width=self.width, height=self.height
        )

    def __repr__(self) -> str:
        place, way = (_short(values) for values in (self.position, self.rotation[2]))
        lens = f"fx {self.fx:g}, fy {self.fy:g}, cx {self.cx:g}, cy {self.cy:g}"
        return f"Camera(at {place} looking {way}, {self.width}x{self.height}, {lens})"


def checked(camera: object) -> Camera:
    """The camera itself where it is one; UsageError with the way to one where it is something else."""
    if not isinstance(camera, Camera):
        raise UsageError(f"A Camera is needed, but this is {kind(camera)}. {_remedy(camera)}")
    pose = np.zeros((3, 4))
    try:
        pose[:, :3], pose[:, 3] = camera.rotation, camera.translation
    except (TypeError, ValueError):
        raise UsageError(
            "This Camera's rotation must have 3x3 and its translation 3 numbers; "
            "Camera.from_world_to_camera checks that, and more."
        ) from None
    rigid(pose)
    lens(**camera.intrinsics)
    return camera


def _remedy(thing: object) -> str:
    if isinstance(getattr(thing, "camera", None), Camera):
        return "Pass its .camera instead."
    return (
        "Build one with Camera.from_camera_to_world(pose, ...) or Camera.from_world_to_camera(pose, ...), "
        "depending on what the matrix does, or take a view's: scene.test[0].camera."
    )


def _short(values: F64) -> str:
    return "(" + ", ".join(f"{float(value) + 0.0:.4g}" for value in np.round(values, 6)) + ")"
