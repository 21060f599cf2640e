"""The front door: picks a command, and turns expected failures into one sentence and an exit code."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from time import perf_counter

from splatmeter import __version__
from splatmeter.cli.nearest import suggestion, unknown_option
from splatmeter.errors import NotEnoughMemory, SplatmeterError, UsageError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "make the built-in scene, train it, measure one optimisation: start here"),
    "make": ("make", "turn photos or a video into a page to share, all in one command"),
    "train": ("train", "train a scene from photos with poses"),
    "merge": ("merge", "join separately trained blocks of a scene into one model"),
    "eval": ("eval", "judge a trained model on held-out and training photos"),
    "render": ("render", "render test views, training views or a camera path"),
    "export": ("export", "write a model for viewers and other tools"),
    "view": ("view", "show a model in the browser"),
    "info": ("info", "show what is in a model file or checkpoint"),
    "scene": ("scene", "make a scene from photos or a video; undistort or describe one"),
    "lab": ("lab", "measure, compare and judge optimisation phases, and write the log"),
    "profile": ("profile", "show where the time of a training step goes, and how close it is to the limits"),
    "selftest": ("selftest", "compare a graphics card's operations with the CPU's"),
    "doctor": ("doctor", "check this installation and machine"),
}
"""Name -> (module in this package, one line of help). Modules are imported only when chosen."""


def parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS)) + 2
    listing = "\n".join(f"  {name:<{width}}{text}" for name, (_, text) in COMMANDS.items())
    top = argparse.ArgumentParser(
        prog="splatmeter",
        description="Train Mip-Splatting scenes, and prove every speed-up.",
        epilog=f"commands:\n{listing}\n\n`splatmeter COMMAND --help` explains one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="splatmeter COMMAND [options]",
    )
    top.add_argument("--version", action="version", version=f"splatmeter {__version__}")
    top.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="one of the commands below")
    return top


began: float | None = None
"""When the command that is carried out did, before its modules were imported."""


def carried_out(words: Sequence[str]) -> int:
    """A command and its arguments; what goes wrong is the caller's to tell."""
    global began
    began = perf_counter()
    module = importlib.import_module(f"splatmeter.cli.{COMMANDS[words[0]][0]}")
    return module.run(list(words[1:]))


def one_line(text: str) -> str:
    """Names of files may hold line feeds and escape codes; a terminal must not obey them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        parser().print_help()
        return 64
    if unknown := _unknown(words[0]):
        print(f"splatmeter: {unknown} See splatmeter --help", file=sys.stderr)
        return UsageError.exit_code
    chosen = parser().parse_args(words[:1]).command
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that this terminal cannot show is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return carried_out([chosen, *words[1:]])
    except SplatmeterError as problem:
        print(f"splatmeter {chosen}: {one_line(str(problem))}", file=sys.stderr)
        return problem.exit_code
    except MemoryError:
        print(f"splatmeter {chosen}: memory ran out. Close other programs, or ask for less.", file=sys.stderr)
        return NotEnoughMemory.exit_code
    except KeyboardInterrupt:
        print(f"splatmeter {chosen}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141


def _unknown(word: str) -> str:
    if word.startswith("-"):
        return unknown_option([word], ("--help", "-h", "--version"))
    return "" if word in COMMANDS else f"There is no command {word[:60]}.{suggestion(word, COMMANDS)}"


if __name__ == "__main__":
    sys.exit(main())
