"""`splatmeter make`: photos or a video in, a page out; it only drives the other commands."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from splatmeter.capture.from_photos import planned
from splatmeter.capture.job import Settings
from splatmeter.capture.listing import refuse_unreadable
from splatmeter.capture.place import refuse_place, writing
from splatmeter.capture.work import alone
from splatmeter.cli import make_steps
from splatmeter.cli.arguments import options_of, parse
from splatmeter.cli.make_folder import Folder
from splatmeter.cli.make_steps import Step, Task
from splatmeter.cli.scene_photos import PhotoOptions
from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.scene import nerfstudio
from splatmeter.scene.scene import SceneOptions, fingerprint, load_scene
from splatmeter.shell import command_text
from splatmeter.units import duration_text

DESCRIPTION = """A page to show around, of your photos or your video, in one command.

Four steps, each an ordinary command that is printed as it starts, so that you can go on by hand:

  scene from-photos   finds out where each photo was taken (needs: pip install 'splatmeter[photos]')
  train               trains with --preset fast; every 8th photo is held out, if there are 8 or more
  eval                compares renders with those photos: PSNR, and OUT/contact_sheet.png
  export              writes OUT/scene.html, one file that any browser shows

Stopped by Ctrl-C, a power cut or kill -9, the same command goes on where it was; finished, it does nothing.
Walk around the subject and take 30 to 200 photos that overlap by two thirds: docs/photos.md says more. PHOTOS
may also be a scene that has its places already (COLMAP, NeRF-synthetic, nerfstudio): then the first step is
left out.

Examples:
  splatmeter make my_photos -o my_garden
  splatmeter make walk.mp4 -o my_street --frames 150
  splatmeter make my_photos -o small --max-size 800 --dry-run"""

SHORT = {"-o": "--output"}
PLACELESS = ("device", "threads")
"""Options that change how fast a result comes, not which."""


@dataclass(frozen=True)
class MakeArguments(PhotoOptions):
    photos: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="PHOTOS")]]
    """Folder of photos (sub-folders too), or a video."""
    output: Annotated[Path, tyro.conf.arg(metavar="OUT")]
    """Folder for everything; it must not exist yet, be empty, or come from this command."""
    device: str = "auto"
    """Where training happens: cpu, cuda, cuda:1, ... or auto."""
    dry_run: bool = False
    """Print the commands that are still to be run, and run none."""


def run(words: Sequence[str]) -> int:
    chosen = parse(MakeArguments, "splatmeter make", words, DESCRIPTION, SHORT)
    made_of, task = planned_task(chosen)
    kept = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(PhotoOptions)}
    options = {name: _plain(value) for name, value in kept.items() if name not in PLACELESS}
    told = task.folder.check(made_of, options)
    if told:
        print(told)
    if chosen.dry_run:
        print("\n".join(dry(make_steps.steps(task))))
        return 0
    begin = time.perf_counter()
    with ExitStack() as stack:
        with writing(task.folder.out):
            stack.enter_context(alone(task.folder.out.absolute()))
            task.folder.take(made_of, options)
        try:
            code = carried_through(task)
        except KeyboardInterrupt:
            code = 130
    if code:
        print(f"splatmeter make: stopped. Go on with: {command_text(['make', *words])}", file=sys.stderr)
        return code
    print(summary(task, time.perf_counter() - begin))
    return 0


def planned_task(chosen: MakeArguments) -> tuple[str, Task]:
    """And a fingerprint of what it is made of. What can be wrong with photos or places is found here."""
    settings, source, out = chosen.settings(), chosen.photos.expanduser(), chosen.output.expanduser()
    engine = options_of(chosen, {"device": "auto", "threads": None})
    if is_scene(source):
        given = options_of(chosen, photo_defaults())
        if given:
            raise UsageError(f"{source} is a scene already, so {given[0]} has no meaning. Leave it out.")
        made_of, job = f"scene {fingerprint(load_scene(SceneOptions(source)))}", None
    else:
        job = planned(source, settings, chosen.masks)
        made_of = planned(source, Settings(), chosen.masks).fingerprint()
    refuse_place(out.absolute(), source.absolute())
    threads = options_of(chosen, {"threads": None})
    task = Task(source, Folder(out), job, [*options_of(chosen, photo_defaults()), *threads], engine)
    return made_of, task


def is_scene(source: Path) -> bool:
    refuse_unreadable(source)
    files = ("transforms_train.json", nerfstudio.FILE)
    return (source / "sparse").is_dir() or any((source / name).is_file() for name in files)


def photo_defaults() -> dict[str, Any]:
    return {f.name: f.default for f in dataclasses.fields(PhotoOptions) if f.name not in PLACELESS}


def carried_through(task: Task) -> int:
    """Every step whose result is not there yet; the code of the first that was stopped."""
    ordered = make_steps.steps(task)
    for number, step in enumerate(ordered, start=1):
        head = f"[{number}/{len(ordered)}] {step.title}"
        if step.whole():
            print(f"{head}: done already", flush=True)
            continue
        print(f"\n{head}\n  {command_text(step.words())}", flush=True)
        begin = time.perf_counter()
        try:
            code = step.run()
        except SplatmeterError:
            task.folder.give_up()
            raise
        finally:
            task.folder.spent(step.name, time.perf_counter() - begin)
        if code:
            return code
    return 0


def dry(ordered: Sequence[Step]) -> list[str]:
    """Lines for a shell; what is finished is a comment."""
    lines: list[str] = []
    for number, step in enumerate(ordered, start=1):
        done = step.whole()
        lines.append(f"# {number}/{len(ordered)} {step.title}{': done already' if done else ''}")
        lines += [] if done else [command_text(step.words())]
    return lines


def summary(task: Task, seconds: float) -> str:
    ordered = make_steps.steps(task)
    took = task.folder.record.seconds
    width = max(len(step.name) for step in ordered)
    spent = [duration_text(took[step.name]) if step.name in took else "" for step in ordered]
    column = max(map(len, spent))
    lines = [
        f"  {step.name:<{width}}  {time_:>{column}}  {step.told()}"
        for step, time_ in zip(ordered, spent, strict=True)
    ]
    return "\n".join(
        [
            f"\nDone in {duration_text(seconds)}.",
            *lines,
            f"\nPhoto, render and difference side by side: {task.folder.sheet}",
            f"Open the page in a browser: {task.folder.page.absolute().as_uri()}",
            "It is one file, and needs no network: send it to whom you like.",
        ]
    )


def _plain(value: object) -> object:
    return str(value.expanduser().absolute()) if isinstance(value, Path) else value
