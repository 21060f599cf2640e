"""Our trainer with the evaluation loop that the user's fork had before its Phase 2d.

Every render becomes a torch tensor that wants gradients, and nothing says `torch.no_grad()`: autograd keeps
the render, its photo and every intermediate map of L1, PSNR and SSIM until the last view is done. The figures
are the trainer's own, so that only memory differs. Arguments are those of `splatmeter train`, after at most
one of --share-photos, --without-similarity and --no-grad: what was tried to make it hold less (memory.toml).
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from splatmeter.cli import main
from splatmeter.evaluate.protocol import Report, evaluate_views
from splatmeter.train import judge

WINDOW = 11


SHARE, WITHOUT_SIMILARITY, NO_GRAD = "--share-photos", "--without-similarity", "--no-grad"


def graph_of(picture: np.ndarray, photo: np.ndarray, similarity: bool = True) -> tuple[Any, ...]:
    """Losses with everything behind them alive; [3, H, W] each."""
    import torch

    torch.set_num_threads(1)  # torch's idle threads would spin on the trainer's cores
    render = (torch.from_numpy(np.ascontiguousarray(picture)).float() / 255).requires_grad_()
    target = torch.from_numpy(np.ascontiguousarray(photo)).float() / 255
    difference = render - target
    l1 = difference.abs().mean()
    psnr = -10 * torch.log10((difference**2).mean())
    if not similarity:
        return render, target, l1, psnr

    def blurred(image: Any) -> Any:
        return torch.nn.functional.avg_pool2d(image[None], WINDOW, stride=1, padding=WINDOW // 2)[0]

    mean_a, mean_b = blurred(render), blurred(target)
    variance_a = blurred(render * render) - mean_a * mean_a
    variance_b = blurred(target * target) - mean_b * mean_b
    covariance = blurred(render * target) - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
    structure = (2 * covariance + 9e-4) / (variance_a + variance_b + 9e-4)
    return render, target, l1, psnr, (luminance * structure).mean()


class Keeping:
    """As `evaluate_views`, and holding on to all of it; `tried` is what shall make it hold less."""

    def __init__(self, tried: str = "") -> None:
        self.tried = tried
        self.photos: dict[str, np.ndarray] = {}

    def __call__(self, views: Any, render: Any, photos: Any, similarity: Any, **options: Any) -> Report:
        kept: list[tuple[Any, ...]] = []
        observe = options.pop("observe", None)

        def hold(number: int, view: Any, picture: np.ndarray, photo: np.ndarray) -> None:
            if self.tried == SHARE:
                photo = self.photos.setdefault(view.name, photo)
            kept.append(self.losses(picture, photo))
            if self.tried == NO_GRAD:
                kept[:-1] = [()] * (len(kept) - 1)  # nothing refers to them any more
            if observe is not None:
                observe(number, view, picture, photo)

        report = evaluate_views(views, render, photos, similarity, observe=hold, **options)
        assert len(kept) == len(report.per_view)
        kept.clear()
        give_back()
        return report

    def losses(self, picture: np.ndarray, photo: np.ndarray) -> tuple[Any, ...]:
        if self.tried != NO_GRAD:
            return graph_of(picture, photo, similarity=self.tried != WITHOUT_SIMILARITY)
        import torch

        with torch.no_grad():
            return graph_of(picture, photo)


keeping = Keeping()


def give_back() -> None:
    """As the original's torch.cuda.empty_cache() after evaluations: training inherits none of its memory."""
    with suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = words[0] if words and words[0] in (SHARE, WITHOUT_SIMILARITY, NO_GRAD) else ""
    judge.evaluate_views = Keeping(chosen)
    sys.exit(main.main(["train", *words[bool(chosen) :]]))
