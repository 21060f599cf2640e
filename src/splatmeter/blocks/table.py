"""What a division comes to, before anything is trained: photos, points and predicted memory of each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from splatmeter.backend import Backend
from splatmeter.blocks.plan_folder import Plan
from splatmeter.blocks.planning import Division
from splatmeter.blocks.runs import settings_for
from splatmeter.errors import CardUnavailable, NotEnoughMemory
from splatmeter.scene.scene import Scene
from splatmeter.train.assemble import predicted
from splatmeter.train.config import TrainConfig
from splatmeter.train.memory_prediction import Prediction
from splatmeter.units import bytes_text, count_text, duration_text

HEAD = ("block", "photos", "points", "stand-ins", "Gaussians at most", "memory")


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable:
    config: TrainConfig
    scene: Scene
    division: Division
    predictions: tuple[Prediction, ...]

    @classmethod
    def of(
        cls, config: TrainConfig, scene: Scene, division: Division, plan: Plan, engine: Backend
    ) -> BlockTable:
        predictions = tuple(
            predicted(settings_for(config, plan, row), block.scene(scene), engine)
            for block, row in zip(division.blocks, plan.blocks, strict=True)
        )
        return cls(config, scene, division, predictions)

    def require(self) -> None:
        """Refuses what cannot fit, with the block's name."""
        for block, prediction in zip(self.division.blocks, self.predictions, strict=True):
            try:
                prediction.require()
            except (NotEnoughMemory, CardUnavailable) as problem:
                raise type(problem)(f"Block {block.name}: {problem} Or use more blocks.") from None

    def lines(self) -> list[str]:
        rows = [HEAD, *(self._row(number) for number in range(len(self.predictions)))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
        table = [
            "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True)) for row in rows
        ]
        shape = "x".join(map(str, self.division.shape))
        held = f", {len(self.scene.test)} for tests" if self.scene.test else ""
        return [
            f"{self.scene.source.name}: {len(self.scene.train)} photos to train on{held}, "
            f"{count_text(self.scene.points.count)} points",
            f"{shape} blocks, {self._length()}; photos given to them by {self.division.how}",
            *table,
        ]

    def record(self) -> dict[str, Any]:
        rows = [
            {
                "block": block.name,
                "train_images": block.train,
                "test_images": block.test,
                "points": block.inside,
                "own_points": block.own,
                "stand_ins": block.stand_ins,
                "load": block.load,
                "predicted_memory": prediction.told(),
            }
            for block, prediction in zip(self.division.blocks, self.predictions, strict=True)
        ]
        return {"division": self.division.record(), "photos_by": self.division.how, "blocks": rows}

    def _length(self) -> str:
        if self.config.seconds is None:
            return f"{self.config.iterations} steps each"
        return f"{duration_text(self.config.seconds / len(self.predictions))} each"

    def _row(self, number: int) -> tuple[str, ...]:
        block, prediction = self.division.blocks[number], self.predictions[number]
        low, high = prediction.expected_bytes
        return (
            block.name,
            str(len(block.train)),
            count_text(block.inside),
            count_text(block.stand_ins),
            " to ".join(map(count_text, prediction.expected_gaussians)),
            f"{bytes_text(low)} to {bytes_text(high)}",
        )
