"""What the original mip-splatting and 3DGS print, and the richer console of a fork of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from splatmeter.events import Evaluated, Event, Saved
from splatmeter.lab.trainers.adapter import Foreign

NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
_BAR = re.compile(r"Training progress:.*?(\d+)/(\d+) \[")
_LOSS = re.compile(rf"Loss=({NUMBER})")
_EVALUATED = re.compile(
    rf"\[ITER (\d+)\] Evaluating (\w+)\s*: L1 (?:tensor\()?({NUMBER}).*?PSNR (?:tensor\()?({NUMBER})"
)
_SAVING = re.compile(r"\[ITER (\d+)\] Saving (Gaussians|Checkpoint)")
_POINTS = re.compile(r"Number of points at initiali[sz]ation\s*:\s*(\d+)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Original(Foreign):
    """mip-splatting and 3DGS: a tqdm bar on stderr every ten iterations, [ITER n] lines on stdout."""

    def __init__(self, start_step: int = 0, end_step: int = 0, output: Path | None = None) -> None:
        super().__init__(start_step, end_step)
        self.output = output

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        if bar := _BAR.search(text):
            if loss := _LOSS.search(text):
                self.loss = float(loss[1])
            yield from self.progress(self.absolute(int(bar[1]), int(bar[2])), seconds)
        elif found := _EVALUATED.search(text):
            self.clock.cut()
            metrics = {"l1": float(found[3]), "psnr": float(found[4])}
            yield Evaluated(int(found[1]), found[2].lower(), metrics)
        elif found := _SAVING.search(text):
            self.clock.cut()
            yield self._saved(int(found[1]), found[2] == "Gaussians")
        elif found := _POINTS.search(text):
            self.gaussians = int(found[1])

    def end(self, code: int, seconds: float) -> Iterator[Event]:
        self.gaussians = self._counted() or self.gaussians
        yield from super().end(code, seconds)

    def _saved(self, step: int, model: bool) -> Saved:
        if model:
            return Saved(step, str(self._model(step)), "model")
        return Saved(step, str((self.output or Path()) / f"chkpnt{step}.pth"), "checkpoint")

    def _model(self, step: int) -> Path:
        return (self.output or Path()) / "point_cloud" / f"iteration_{step}" / "point_cloud.ply"

    def _counted(self) -> int:
        """The bar does not tell how many Gaussians there are; the header of the last model does."""
        return vertex_count(self._model(self.end_step)) if self.output else 0


_FRAME = re.compile(rf"(?:^|\s)\d+%\s+(\d+)/(\d+)\s+L:({NUMBER})")
_ROW = re.compile(r"[│|]\s*(TEST|TRAIN)\s*[│|](.*)[│|]", re.IGNORECASE)
_COUNT = re.compile(r"(?:Gaussians|points)\s*[:=]\s*([\d,]+)", re.IGNORECASE)
_COLUMNS = ("l1", "psnr", "ssim", "lpips")


class Fork(Original):
    """`17% 5000/30001 L:0.0762 3.6it/s V:62%/9.9GB` frames and box-drawn tables of metrics."""

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        text = _ANSI.sub("", text)
        if frame := _FRAME.search(text):
            self.loss = float(frame[3])
            total = int(frame[2])
            resumed = self.start_step > 0 and total - 1 == self.end_step - self.start_step
            step = int(frame[1]) + self.start_step if resumed else self.absolute(int(frame[1]), total)
            yield from self.progress(step, seconds)
        elif row := _ROW.search(text):
            self.clock.cut()
            yield from self._metrics(row[1].lower(), row[2])
        else:
            if count := _COUNT.search(text):
                self.gaussians = int(count[1].replace(",", ""))
            yield from super().read(stream, text, seconds)

    def _metrics(self, split: str, cells: str) -> Iterator[Event]:
        values: list[float] = []
        for cell in re.split("[│|]", cells):
            if number := re.search(NUMBER, cell):
                values.append(float(number[0]))
        if len(values) >= 2:
            yield Evaluated(self.step, split, dict(zip(_COLUMNS, values, strict=False)))


def vertex_count(path: Path) -> int:
    """Gaussians in a PLY file, from its header alone; 0 if there is none."""
    try:
        with path.open("rb") as file:
            header = file.read(8192)
    except OSError:
        return 0
    found = re.search(rb"^element vertex (\d+)\s*$", header.split(b"end_header")[0], re.MULTILINE)
    return int(found[1]) if header.startswith(b"ply") and found else 0
