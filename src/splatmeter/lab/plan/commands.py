"""From a protocol and a phase to the argument list of one run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from splatmeter.lab.plan.phases import Phase, lineage_environment, lineage_options
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.trainers.seeds import SHIM, Seeds, seeds_of


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What differs from run to run."""

    output: Path
    seed: int
    checkpoint: Path | None = None
    python: str = sys.executable
    worktree: Path | None = None
    first: int = 0
    last: int = 0
    evaluations: tuple[int, ...] = ()
    save_all: bool = False
    """Save a model at every evaluation, so that the lab can judge each by itself."""
    lab: Path = field(default_factory=Path)


def arguments(protocol: Protocol, lineage: list[Phase], request: RunRequest) -> tuple[str, ...]:
    """The nearest declared command wins; otherwise the trainer's own flags are written out."""
    template, options = _template(protocol, lineage)
    if template:
        return (
            *(filled for word in template for filled in _template_word(word, protocol, request)),
            *(_filled(word, protocol, request) for word in options),
        )
    if trainer_of(protocol, lineage) in ("mip-splatting", "3dgs"):
        return (*_original(protocol, request), *options)
    return (*_ours(protocol, request), *options, "--events-stdout")


def seeds(protocol: Protocol, lineage: list[Phase]) -> Seeds:
    """Whether and how the seed of a run reaches its trainer."""
    return seeds_of(trainer_of(protocol, lineage), *_template(protocol, lineage), protocol.shift_seeds)


def _template(protocol: Protocol, lineage: list[Phase]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command that is used, empty where the lab writes it itself, and the options after it."""
    template = next((phase.command for phase in reversed(lineage) if phase.command), protocol.command)
    return template, (*protocol.options, *_options_after_command(lineage))


def trainer_of(protocol: Protocol, lineage: list[Phase]) -> str:
    return next((phase.trainer for phase in reversed(lineage) if phase.trainer), protocol.trainer)


def is_plain(protocol: Protocol, lineage: list[Phase]) -> bool:
    """This very splatmeter with other options: what it measures while it trains is what the lab would."""
    another = any(
        p.command or p.revision or p.patch or p.build or "PYTHONPATH" in p.environment for p in lineage
    )
    return trainer_of(protocol, lineage) == "splatmeter" and not another and not protocol.command


def environment(lineage: list[Phase], request: RunRequest) -> Mapping[str, str]:
    """What the phases declare; a worktree must not be hidden by the sources this process runs from."""
    declared = lineage_environment(lineage)
    if request.worktree and "PYTHONPATH" not in declared:
        sources = request.worktree / "src"
        built = request.python != sys.executable
        declared["PYTHONPATH"] = str(sources) if sources.is_dir() and not built else ""
    return declared


def directory(protocol: Protocol, lineage: list[Phase], request: RunRequest) -> Path | None:
    """Foreign trainers run inside their own folder, or inside the worktree built for the phase."""
    if request.worktree and trainer_of(protocol, lineage) != "splatmeter":
        return request.worktree
    if not protocol.directory:
        return None
    stated = Path(protocol.directory).expanduser()
    return stated if stated.is_absolute() else request.lab / stated


def scene_path(protocol: Protocol, request: RunRequest) -> str:
    """Relative scenes are seen from the lab's folder, so that it can be used from anywhere."""
    stated = Path(protocol.scene).expanduser()
    return str(stated if stated.is_absolute() else (request.lab / stated).resolve())


def _options_after_command(lineage: list[Phase]) -> tuple[str, ...]:
    """A phase with a command of its own starts afresh: options of its ancestors belong to their command."""
    newest = max((place for place, phase in enumerate(lineage) if phase.command), default=0)
    return lineage_options(lineage[newest:])


def _template_word(word: str, protocol: Protocol, request: RunRequest) -> tuple[str, ...]:
    """{train} alone becomes everything that our own trainer would be given: for scripts around it."""
    if word == "{train}":
        return (*_flags(protocol, request), "--events-stdout")
    if word == "{evaluations}":  # every step that a run must be evaluated at, as words of their own
        return tuple(map(str, request.evaluations or (request.last,)))
    return (_filled(word, protocol, request),)


def _ours(protocol: Protocol, request: RunRequest) -> tuple[str, ...]:
    return (request.python, "-m", "splatmeter", "train", *_flags(protocol, request))


def _flags(protocol: Protocol, request: RunRequest) -> tuple[str, ...]:
    words = ["-s", scene_path(protocol, request), "-m", str(request.output)]
    words += ["-r", str(protocol.resolution), "--iterations", str(request.last)]
    if protocol.images:
        words += ["-i", protocol.images]
    words += _split(protocol)
    words += ["--test_iterations", *map(str, request.evaluations or (request.last,))]
    saved = request.evaluations if request.save_all else ()
    words += ["--save_iterations", *map(str, saved or (request.last,)), "--seed", str(request.seed)]
    if request.checkpoint:
        words += ["--start_checkpoint", str(request.checkpoint)]
    if request.worktree is None:  # older revisions do not know it, and write none
        words += ["--checkpoint-minutes", "0"]
    return tuple(words)


def _split(protocol: Protocol) -> list[str]:
    if not protocol.eval:
        return []
    chosen = ["--test-count", str(protocol.test_count)] if protocol.test_count else []
    every = [] if protocol.test_every == 8 else ["--test-every", str(protocol.test_every)]
    return ["--eval", *every, *chosen]


def _original(protocol: Protocol, request: RunRequest) -> tuple[str, ...]:
    """The original's train.py has no seed flag: it always uses 0, unless `shift_seeds` shifts that."""
    shim = [str(SHIM), str(request.seed)] if protocol.shift_seeds else []
    words = [request.python, *shim, "train.py"]
    words += ["-s", scene_path(protocol, request), "-m", str(request.output)]
    words += ["-r", str(protocol.resolution), "--iterations", str(request.last)]
    words += ["-i", protocol.images] if protocol.images else []
    words += ["--eval"] if protocol.eval else []
    words += ["--test_iterations", *map(str, request.evaluations or (request.last,))]
    words += ["--save_iterations", *map(str, request.evaluations or (request.last,))]  # each is judged by us
    words += ["--start_checkpoint", str(request.checkpoint)] if request.checkpoint else []
    return tuple(words)


def _filled(word: str, protocol: Protocol, request: RunRequest) -> str:
    """Only these names in braces are replaced; any other brace stays as it is."""
    values = {
        "{python}": request.python,
        "{scene}": scene_path(protocol, request),
        "{output}": str(request.output),
        "{checkpoint}": str(request.checkpoint or ""),
        "{seed}": str(request.seed),
        "{seed_shim}": str(SHIM),
        "{resolution}": str(protocol.resolution),
        "{iterations}": str(request.last),
        "{start}": str(request.first),
        "{evaluate_at}": str(protocol.evaluate_at or request.last),
        "{lab}": str(request.lab.resolve()),
        "{worktree}": str(request.worktree or ""),
    }
    for name, value in values.items():
        word = word.replace(name, value)
    return word
