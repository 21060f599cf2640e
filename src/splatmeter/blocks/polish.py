"""A few more steps with the joined model, as an ordinary run in its folder.

Where a place is far away, photos hardly tell how far: two blocks may each have put it into the other's cell,
and joined it is missing. A run over the whole scene sees that at once. It needs the memory of a run with all
Gaussians, which is what blocks are there to avoid: so it is done only where it fits.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from splatmeter.backend import Backend, OptimizerState
from splatmeter.blocks.plan_folder import JOINED
from splatmeter.blocks.runs import model_at
from splatmeter.gaussians import ply
from splatmeter.ops import empty_table
from splatmeter.scene.scene import Scene
from splatmeter.train import checkpoint_names
from splatmeter.train.config import TrainConfig
from splatmeter.train.losses import Losses
from splatmeter.train.output_folder import OutputFolder
from splatmeter.train.state import TrainingState, view_sampler
from splatmeter.units import bytes_text, count_text


@dataclasses.dataclass(frozen=True, slots=True)
class Polish:
    config: TrainConfig
    out: Path
    joined_at: int
    gaussians: int

    @property
    def done(self) -> bool:
        return model_at(self.out, self.config.iterations) is not None

    def too_large(self, scene: Scene, backend: Backend) -> str:
        """A sentence where it does not fit; photos give way to Gaussians."""
        pixels = max(view.camera.width * view.camera.height for view in scene.train)
        needed, free = backend.memory.predicted(self.gaussians, pixels, 0), backend.memory.available()
        if needed <= free:
            return ""
        return (
            f"Not polished: {count_text(self.gaussians)} Gaussians in one run need about "
            f"{bytes_text(needed)}, and {bytes_text(free)} are free. The joined model is whole as it is."
        )

    def begin(self, scene: Scene, backend: Backend) -> None:
        """A checkpoint to go on from, where there is none yet: the optimizer begins anew."""
        if checkpoint_names.newest(self.out) is not None:
            return
        file = self.out / "point_cloud" / f"iteration_{self.joined_at}" / "point_cloud.ply"
        read = ply.read_model(file).table
        table = empty_table(read.count)
        table.geometry[:], table.harmonics[:] = read.geometry, read.harmonics
        del read
        state = TrainingState(
            model=backend.upload(table, OptimizerState(momentum=self.config.optimizer_momentum)),
            losses=Losses(self.config.lambda_dssim),
            sampler=view_sampler(scene, self.config),
            step=self.joined_at,
            grown=self.joined_at,
            sh_degree=self.config.sh_degree,
        )
        with OutputFolder(self.config) as output:
            output.save_checkpoint(state, scene, backend.facts, 0.0, safety=True)


def polish_of(config: TrainConfig, steps: int) -> Polish:
    """For the model that was joined in config.model_path."""
    out = config.model_path
    assert out is not None
    record = json.loads((out / JOINED).read_text("utf-8"))
    end = record["step"] + steps
    settings = dataclasses.replace(
        config,
        iterations=end,
        densification="none",
        progressive="none",
        max_gaussians=None,
        seconds=None,
        save_iterations=(end,),
        test_iterations=(),
        resume=True,
        overwrite=False,
    )
    return Polish(settings, out, record["step"], record["gaussians"])
