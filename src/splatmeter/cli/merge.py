"""`splatmeter merge`: blocks of a scene that were trained anywhere, as one model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splatmeter.blocks.join import join
from splatmeter.blocks.pieces import gathered
from splatmeter.cli import arguments
from splatmeter.cli.train_blocks import joined_lines
from splatmeter.errors import OutputError
from splatmeter.scene.scene import load_scene
from splatmeter.train.output_folder import holds_run

DESCRIPTION = """Join the blocks of a scene into one model.

`splatmeter train --blocks` joins what it has trained by itself. This is for blocks that were trained on other
machines or at other times, each with `splatmeter train -m OUT --resume --only-block 1-2`: name the folders of
all their runs. Every Gaussian comes from the block in whose own cell it lies; the model goes into a folder
that eval, render, export and view take like any other.

Examples:
  splatmeter merge output/city/blocks/*/ -o output/city
  splatmeter merge node1/1-1 node2/1-2 -o joined -s scenes/city"""

SHORT = {"-o": "--output", "-s": "--source-path"}


@dataclass(frozen=True)
class MergeArguments:
    runs: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN")]]
    """Folders of the blocks' runs: all blocks of one division, each once."""
    output: Annotated[Path, tyro.conf.arg(metavar="OUT")]
    """Folder for the joined model."""
    source_path: Path | None = None
    """Folder of the whole scene; by default where it was when it was divided."""
    overwrite: bool = False
    """Replace the model that is in OUT."""
    threads: int | None = None
    """Threads of the engine; by default one per processor this process may use."""


def run(words: Sequence[str]) -> int:
    from splatmeter.backends import registry

    chosen = arguments.parse(MergeArguments, "splatmeter merge", words, DESCRIPTION, SHORT)
    out = chosen.output.expanduser()
    runs = [path.expanduser() for path in chosen.runs]
    _require_apart(out, runs)
    if holds_run(out) and not chosen.overwrite:
        raise OutputError(f"{out} already holds a model. Replace it (--overwrite), or choose another -o.")
    pieces = gathered(runs)
    first = pieces.pieces[0]
    source = chosen.source_path or first.described.whole()
    config = dataclasses.replace(
        first.config,
        source_path=source.expanduser().absolute(),
        model_path=out,
        experiment_name="",
        max_gaussians=None if first.config.densification != "mcmc" else first.config.max_gaussians,
        densify_region=None,
        seconds=None,
        resume=False,
        overwrite=False,
    )
    scene = load_scene(config.scene_options())
    engine = registry.backend("native", registry.checked_threads(chosen.threads))
    record = join(pieces, scene, config, engine)
    print(joined_lines(record, out, bool(scene.test)).strip())
    return 0


def _require_apart(out: Path, runs: Sequence[Path]) -> None:
    """The model must not take the place of what it is made of."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Choose a folder for the joined model (-o).")
    for run in runs:
        if run.resolve() in (out.resolve(), *out.resolve().parents):
            raise OutputError(f"{out} is, or lies in, the run {run} that is to be joined. Choose another -o.")
