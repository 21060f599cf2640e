"""LPIPS v0.1 in plain torch functions: both pictures walk through the network side by side.

Going stage by stage, only the two current activations are in memory, not all five taps of both pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError, MissingExtra
from splatmeter.evaluate.lpips_weights import Weights

SHIFT = (-0.030, -0.088, -0.188)
SCALE = (0.458, 0.448, 0.450)
"""ImageNet's mean and deviation for inputs in [-1, 1]."""

# Stage: (pooling window before it or 0, [(layer number, stride, padding), ...]); every stage ends in a tap.
_STAGES: dict[str, list[tuple[int, list[tuple[int, int, int]]]]] = {
    "vgg": [
        (0, [(0, 1, 1), (2, 1, 1)]),
        (2, [(5, 1, 1), (7, 1, 1)]),
        (2, [(10, 1, 1), (12, 1, 1), (14, 1, 1)]),
        (2, [(17, 1, 1), (19, 1, 1), (21, 1, 1)]),
        (2, [(24, 1, 1), (26, 1, 1), (28, 1, 1)]),
    ],
    "alex": [
        (0, [(0, 4, 2)]),
        (3, [(3, 1, 2)]),
        (3, [(6, 1, 1)]),
        (0, [(8, 1, 1)]),
        (0, [(10, 1, 1)]),
    ],
}
_SMALLEST_SIDE = {"vgg": 16, "alex": 31}


def distance_function(
    weights: Weights, convention: str
) -> Callable[[NDArray[np.uint8], NDArray[np.uint8]], float]:
    """(picture [3, H, W], picture [3, H, W]) -> LPIPS, 0 for equal ones."""
    import torch

    layers = _load(weights.backbone)
    heads = _load(weights.heads)
    stages = _STAGES[weights.network]
    _check(weights, layers, heads)

    def distance(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
        if min(one.shape[1:]) < _SMALLEST_SIDE[weights.network]:
            raise InputError(
                f"LPIPS needs pictures of at least {_SMALLEST_SIDE[weights.network]} pixels a side."
            )
        with torch.inference_mode():
            pair = [_prepare(pixels, convention) for pixels in (one, other)]
            total = 0.0
            for number, (pool, convolutions) in enumerate(stages):
                pair = [_stage(image, pool, convolutions, layers) for image in pair]
                head = heads[f"lin{number}.model.1.weight"].reshape(1, -1, 1, 1)
                gap = _unit(pair[0]).sub_(_unit(pair[1])).square_()
                total += float((gap * head).sum(dim=1).mean())
            return total

    return distance


def _prepare(pixels: NDArray[np.uint8], convention: str) -> Any:
    import torch

    image = torch.from_numpy(np.ascontiguousarray(pixels)).float().unsqueeze(0) / 255  # [1, 3, H, W]
    if convention == "signed":
        image = image * 2 - 1
    return (image - torch.tensor(SHIFT).view(1, 3, 1, 1)) / torch.tensor(SCALE).view(1, 3, 1, 1)


def _stage(image: Any, pool: int, convolutions: list[tuple[int, int, int]], layers: dict[str, Any]) -> Any:
    from torch.nn import functional

    if pool:
        image = functional.max_pool2d(image, pool, stride=2)
    for number, stride, padding in convolutions:
        weight, bias = layers[f"features.{number}.weight"], layers[f"features.{number}.bias"]
        image = functional.conv2d(image, weight, bias, stride=stride, padding=padding).relu_()
    return image


def _unit(image: Any) -> Any:
    return image / (image.square().sum(dim=1, keepdim=True).sqrt() + 1e-10)


def _load(path: Path) -> dict[str, Any]:
    """Float32 tensors by name; .pth files may hold tensors only, never code."""
    import torch

    safe = _safetensors_reader() if path.suffix == ".safetensors" else None
    try:
        found = safe(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
        return {name: value.float() for name, value in found.items() if not name.startswith("classifier")}
    except Exception as problem:  # damaged files make the two libraries raise many kinds
        raise InputError(f"The LPIPS weights {path} cannot be read ({problem}); get them again.") from problem


def _check(weights: Weights, layers: dict[str, Any], heads: dict[str, Any]) -> None:
    numbers = [number for _, convolutions in _STAGES[weights.network] for number, _, _ in convolutions]
    wanted = {f"features.{number}.{part}" for number in numbers for part in ("weight", "bias")}
    if not wanted <= layers.keys():
        raise InputError(f"{weights.backbone} is not the {weights.network} backbone of torchvision.")
    if any(f"lin{number}.model.1.weight" not in heads for number in range(5)):
        raise InputError(f"{weights.heads} does not hold the five LPIPS v0.1 heads.")


def _safetensors_reader() -> Callable[[Path], dict[str, Any]]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise MissingExtra("Reading LPIPS weights from .safetensors", "torch") from None
    return load_file
