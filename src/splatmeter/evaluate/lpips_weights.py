"""Where LPIPS weights may lie: not with us. Backbones are torchvision's, heads the lpips package's."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from splatmeter.errors import MissingFile, UsageError

VARIABLE = "SPLATMETER_LPIPS_WEIGHTS"
NETWORKS = ("vgg", "alex")

_BACKBONES = {
    "vgg": ("vgg16_features.safetensors", "vgg16-397923af.pth"),
    "alex": ("alexnet_features.safetensors", "alexnet-owt-7be5be79.pth"),
}
_HEADS = {
    "vgg": ("lpips_v0.1_vgg_heads.safetensors", "vgg.pth"),
    "alex": ("lpips_v0.1_alex_heads.safetensors", "alex.pth"),
}


@dataclass(frozen=True, slots=True)
class Weights:
    network: str
    backbone: Path
    heads: Path


def find(network: str, folder: Path | None = None) -> Weights:
    """The first place that has each file; MissingFile tells how to get them."""
    if network not in NETWORKS:
        raise UsageError(f"{network!r} is no LPIPS network; choose vgg or alex.")
    if folder is not None and not folder.is_dir():
        raise MissingFile(f"The folder of LPIPS weights {folder} does not exist.")
    backbone = _first(network, _BACKBONES, [*_folders(folder), _hub()])
    heads = _first(network, _HEADS, [*_folders(folder), *_package()])
    if backbone is None or heads is None:
        lacking = " and ".join(
            names[network][0] for names, found in ((_BACKBONES, backbone), (_HEADS, heads)) if found is None
        )
        raise MissingFile(
            f"LPIPS ({network}) has no weights: {lacking} not found. Put torchvision's "
            f"{_BACKBONES[network][1]} (download.pytorch.org/models) and the lpips package's weights/v0.1/"
            f"{_HEADS[network][1]} into a folder and pass --lpips-weights or set {VARIABLE}."
        )
    return Weights(network, backbone, heads)


def _first(network: str, names: dict[str, tuple[str, ...]], folders: list[Path]) -> Path | None:
    return next(
        (folder / name for folder in folders for name in names[network] if (folder / name).is_file()), None
    )


def _folders(explicit: Path | None) -> Iterator[Path]:
    if explicit is not None:
        yield explicit
        return
    if os.environ.get(VARIABLE):
        yield Path(os.environ[VARIABLE])
    yield Path(__file__).resolve().parents[4] / "shared" / "data" / "weights"  # beside a source checkout


def _hub() -> Path:
    home = os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "torch"
    return Path(home).expanduser() / "hub" / "checkpoints"


def _package() -> list[Path]:
    """The heads inside an installed lpips package, found without importing it."""
    found = importlib.util.find_spec("lpips")
    return (
        [Path(place) / "weights" / "v0.1" for place in (found.submodule_search_locations or ())]
        if found
        else []
    )
