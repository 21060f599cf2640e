"""Where a new scene may be put, and how it gets there at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from splatmeter.errors import OutputError


def refuse_place(out: Path, source: Path) -> None:
    """Neither inside the other: photos would be found twice, or be written over."""
    one, other = out.resolve(), source.resolve()
    if one == other:
        raise OutputError(f"{out} is where the photos are. Choose another folder for the scene.")
    if one in other.parents:
        raise OutputError(f"{out} holds the photos. Choose another folder for the scene.")
    if other in one.parents:
        raise OutputError(f"{out} lies inside {source}. Choose a folder beside it.")


def refuse_to_overwrite(out: Path) -> None:
    if out.is_dir() and not any(out.iterdir()):
        return
    if out.exists() or out.is_symlink():
        raise OutputError(
            f"{out} exists and is not the scene of this command. Choose another folder, or remove it."
        )


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Makes the folder above `out`; failures to write there become one sentence."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise OutputError(f"{out} cannot be made ({problem.strerror}). Choose another folder.") from None


def put_in_place(scene: Path, out: Path) -> None:
    """One rename; an empty folder gives way."""
    if out.is_dir():
        out.rmdir()
    scene.rename(out)
