"""`splatmeter lab`: one parser for all its commands; the modules beside it do the work, loaded when
chosen.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
from pathlib import Path
from typing import NoReturn

from splatmeter.cli.lab_cluster import add_job_options
from splatmeter.cli.lab_history_options import history_options
from splatmeter.cli.nearest import suggestion, unknown_option
from splatmeter.errors import UsageError


class _Parser(argparse.ArgumentParser):
    """Wrong usage is exit code 64: `lab gate` needs argparse's 2 for *undecided*."""

    def error(self, message: str) -> NoReturn:
        wrong = _INVALID.search(message)
        if wrong:
            message = f"There is no {wrong[1]!r}.{suggestion(wrong[1], _WORD.findall(wrong[2]))}"
        raise UsageError(
            f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} See {self.prog} --help"
        )


_INVALID = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")
_WORD = re.compile(r"'?([^',]+)'?(?:, |$)")


def run(arguments: list[str]) -> int:
    """Everything after a bare `--` is a command to run, whatever it looks like."""
    from splatmeter.lab.plan.build_steps import words_after_build

    arguments, command = words_after_build(arguments)
    top = parser()
    if not arguments:
        top.print_help()
        return 64
    chosen, extra = top.parse_known_args(arguments)
    if extra:
        used = _used_parser(top, arguments)
        told = (
            unknown_option(extra, set(used._option_string_actions)) or f"{extra[0]!r} is one word too many."
        )
        if "--build" in arguments:
            told = f'If {extra[0]} belongs to --build, quote it: --build "pip install -e .". {told}'
        raise UsageError(f"{told} See {used.prog} --help")
    chosen.foreign = tuple(command)
    handler = getattr(importlib.import_module(f"splatmeter.cli.{chosen.module}"), chosen.handler)
    if chosen.module in _RUNS_SOMETHING:
        return handler(chosen)
    from splatmeter.lab.record.index import synced_once

    with synced_once():
        return handler(chosen)


def _used_parser(top: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    """The parser of the command among these words, or of its part."""
    for word in words:
        for action in top._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                top = action.choices[word]
    return top


_RUNS_SOMETHING = ("lab_run", "lab_replay")
"""Modules whose commands add runs and must see them; every other command looks at one state of the lab."""


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="splatmeter lab",
        description="Measure, compare and judge optimisation phases of any trainer, and write the log.",
        epilog="The usual way: init, prepare, phase add NAME -- OPTIONS, run (or ab), verdict, log.",
    )
    top.add_argument(
        "--lab", type=Path, default=None, help="the lab's folder (default: $SPLATMETER_LAB, . or ./lab)"
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _plan_commands(commands)
    _run_commands(commands)
    _quality_command(commands)
    _store_commands(commands)
    history_options(_add(commands, "history", "lab_history", "figures over sessions, with changes marked"))
    _judge_commands(commands)
    _monitor_commands(commands)
    return top


def lab_folder(chosen: argparse.Namespace) -> Path:
    if chosen.lab is not None:
        return chosen.lab
    if os.environ.get("SPLATMETER_LAB"):
        return Path(os.environ["SPLATMETER_LAB"])
    return Path() if Path("protocol.toml").exists() else Path("lab")


def _add(commands: argparse._SubParsersAction, name: str, module: str, text: str) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    added.set_defaults(module=module, handler=name.replace("-", "_").replace("import", "import_log"))
    return added


def _plan_commands(commands: argparse._SubParsersAction) -> None:
    init = _add(
        commands, "init", "lab_plan", "write a protocol: -r 4, iterations 3000 to 4000, evaluated at 3100"
    )
    init.add_argument(
        "--scene", required=True, action="append", help="scene folder; several times: blocks run each of them"
    )
    init.add_argument(
        "--trainer", default="splatmeter", help="splatmeter, mip-splatting, 3dgs, or another with a command"
    )
    init.add_argument("--directory", default="", help="where the foreign trainer's train.py lies")
    for name, kind in (
        ("resolution", int),
        ("start", int),
        ("iterations", int),
        ("evaluate-at", int),
        ("blocks", int),
    ):
        init.add_argument(f"--{name}", type=kind, help=f"instead of the user's own {name}")
    init.add_argument("--seeds", type=int, help="how many seeds the blocks go through")
    init.add_argument(
        "--shift-seeds", action="store_true", default=None,
        help="give seeds to mip-splatting and 3dgs, which set their own: a shim starts train.py",
    )  # fmt: skip
    init.add_argument("--title", help="what the benchmark is called in the log")
    _add(commands, "prepare", "lab_plan", "make the start checkpoint, once")
    phase = _add(commands, "phase", "lab_plan", "add, change or list phases")
    actions = phase.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=_Parser)
    actions.add_parser("list", help="all phases with state and verdict")
    add = actions.add_parser("add", help="add a phase; after -- its trainer options, or another command")
    add.add_argument("name")
    add.add_argument(
        "--parent",
        default=None,
        help="the phase it builds on (default: the newest adopted one, else the baseline)",
    )
    _phase_options(add)
    change = actions.add_parser("set", help="change title, note, state or reason of a phase")
    change.add_argument("name")
    change.add_argument(
        "--pin", action="store_true", help="the code as it is now is what this phase, the baseline, means"
    )
    _phase_options(change)


def _phase_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", help="what the log calls it")
    parser.add_argument("--note", help="a person's words; they survive everything")
    parser.add_argument("--state", choices=("planned", "on hold", "recorded", "measured"))
    parser.add_argument("--reason", help="why it is planned or on hold")
    parser.add_argument(
        "--change", action="append", help="declare an aspect it changes: gaussians, split, quality ..."
    )
    parser.add_argument(
        "--aim", help="what it shall gain: speed, memory, both, time-to-quality or quality-after-time"
    )
    parser.add_argument("--variable", action="append", metavar="NAME=VALUE", help="environment variable")
    parser.add_argument("--revision", help="git revision, built in its own worktree")
    parser.add_argument("--patch", help="patch file, applied in its own worktree")
    parser.add_argument(
        "--build", nargs="+", metavar="COMMAND",
        help="how the worktree is built: a quoted command, several with &&, or -- and its words",
    )  # fmt: skip
    parser.add_argument("--code-change", action="append", help="a line for the log")
    parser.add_argument("--trainer", help="whose output the command after -- prints")


def _run_commands(commands: argparse._SubParsersAction) -> None:
    run = _add(
        commands, "run", "lab_run", "measure a phase against its parent and the baseline, or -- COMMAND"
    )
    run.add_argument("phase")
    run.add_argument("--record", action="store_true", help="a single run: all figures, no speed verdict")
    run.add_argument("--trainer", help="whose output the command after -- prints")
    ab = _add(commands, "ab", "lab_run", "measure two phases against each other")
    ab.add_argument("reference")
    ab.add_argument("candidate")
    aa = _add(commands, "aa", "lab_run", "measure a phase against itself: the noise floor")
    aa.add_argument("phase")
    overhead = _add(commands, "overhead", "lab_run", "measure the lab's own monitor: off against on")
    overhead.add_argument("phase")
    run.add_argument("--iterations", type=int, help="of a --record run, instead of the protocol's")
    for parser in (run, ab, aa, overhead):
        parser.add_argument(
            "--blocks",
            type=int,
            default=0,
            help="default: the protocol's; 10 for claims below 5 %%; at most, with --until-decided",
        )
        parser.add_argument(
            "--until-decided",
            action="store_true",
            help="stop when an anytime-valid interval of the speed decides",
        )
        parser.add_argument("--slices", type=float, nargs="?", const=3.0, default=0.0, metavar="SECONDS",
                            help="both processes live and take turns")  # fmt: skip
        parser.add_argument(
            "--order-seed", type=int, default=None, help="of the order of arms (recorded anyway)"
        )
        parser.add_argument("--no-priming", action="store_true", help="skip the unmeasured first runs")
        parser.add_argument("--no-monitor", action="store_true", help="do not sample memory")
        parser.add_argument("--keep-models", action="store_true", help="keep the model of every run")
        add_job_options(parser)
    _again_commands(commands)


def _again_commands(commands: argparse._SubParsersAction) -> None:
    replay = _add(commands, "replay", "lab_replay", "carry out a whole plan: phases, sessions, log, report")
    replay.add_argument("plan", type=Path, help="a TOML file such as benchmarks/story/story.toml")
    replay.add_argument(
        "--scene", action="append", default=[], help="scene folder; several times: blocks run each of them"
    )
    replay.add_argument("--start", type=Path, help="start checkpoint to use instead of making one")
    replay.add_argument("--quick", action="store_true", help="with the plan's [quick] sizes")
    replay.add_argument("--results", type=Path, help="also write the table of results here")
    replay.add_argument("--log", type=Path, help="write the log here (default: LOG.md in the lab)")
    resume = _add(commands, "resume", "lab_run", "go on with a session that was interrupted")
    resume.add_argument("session", nargs="?", default="")
    resume.add_argument(
        "--anew", action="store_true", help="give up its blocks and begin again with the code as it is now"
    )


def _quality_command(commands: argparse._SubParsersAction) -> None:
    quality = _add(commands, "quality", "lab_run", "more seeds for quality: pairs of runs that nobody times")
    quality.add_argument("phase")
    quality.add_argument("--against", default="", help="default: its parent")
    quality.add_argument("--pairs", type=int, default=6, help="each with a seed of its own (default 6)")


def _store_commands(commands: argparse._SubParsersAction) -> None:
    listing = _add(commands, "ls", "lab_store", "sessions and runs")
    listing.add_argument("--runs", action="store_true", help="every run, also the failed ones")
    show = _add(commands, "show", "lab_store", "everything about a run, a session or a phase")
    show.add_argument("name")
    export = _add(commands, "export", "lab_store", "all runs as JSON or CSV")
    export.add_argument("--format", choices=("json", "csv"), default="json")
    export.add_argument("--out", type=Path, help="default: standard output")
    sql = _add(commands, "sql", "lab_store", "ask the index with SQL (read-only)")
    sql.add_argument("query")
    _add(commands, "rebuild", "lab_store", "build the index anew from the run folders")
    merge = _add(commands, "merge", "lab_cluster", "take in the evidence of labs from other machines")
    merge.add_argument("labs", type=Path, nargs="+", metavar="LAB", help="folder of another lab; only read")


def _judge_commands(commands: argparse._SubParsersAction) -> None:
    compare = _add(
        commands, "compare", "lab_judge", "ratio with interval, quality, audit: all phases, or two"
    )
    compare.add_argument("reference", nargs="?", default="")
    compare.add_argument("candidate", nargs="?", default="")
    for name, text in (
        ("verdict", "the verdict on a phase, with its reasons"),
        ("gate", "the verdict as an exit code"),
    ):
        parser = _add(commands, name, "lab_judge", text)
        parser.add_argument("phase")
        parser.add_argument("--against", default="", help="default: its parent")
    commands.choices["gate"].add_argument(
        "--require",
        choices=("faster", "leaner", "sooner", "better", "verified"),
        help="exit with 2 unless the evidence has come this far, and for this",
    )
    adopt = _add(commands, "adopt", "lab_judge", "make a verified phase the one that later phases build on")
    adopt.add_argument("phase")
    adopt.add_argument("--anyway", default="", metavar="REASON", help="adopt it without that evidence")
    for parser in (compare, commands.choices["verdict"], commands.choices["gate"]):
        parser.add_argument("--session", default="", help="default: the newest with both arms")
        parser.add_argument("--json", action="store_true", help="for programs")
    log = _add(commands, "log", "lab_judge", "write the Markdown log; notes in an existing one survive")
    log.add_argument("file", type=Path, nargs="?", default=None, help="default: LOG.md in the lab's folder")
    _report_command(commands)
    taken = _add(commands, "import", "lab_judge", "read a hand-kept log into phases")
    taken.add_argument("file", type=Path)
    audit = _add(
        commands, "audit", "lab_judge", "what a log's numbers contradict; without FILE: all measured phases"
    )
    audit.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=None,
        help="a log in Markdown or plain text; exit code 3: it contradicts itself, 4: not understood",
    )


def _report_command(commands: argparse._SubParsersAction) -> None:
    report = _add(commands, "report", "lab_report", "write everything as one HTML page with charts")
    report.add_argument("file", type=Path, nargs="?", default=None, help="default: report.html in the lab")
    report.add_argument("--views", type=int, default=3, help="how many views to show against photos")
    report.add_argument("--render", action="store_true", help="first render the models that were kept")
    report.add_argument(
        "--renders", action="append", default=[], metavar="PHASE=FOLDER", help="renders made elsewhere"
    )
    report.add_argument(
        "--page", type=Path, metavar="FILE", help="a page made by `export`, to link instead of the best arm's"
    )
    report.add_argument("--page-note", default="", metavar="TEXT", help="what to say about it")


def _monitor_commands(commands: argparse._SubParsersAction) -> None:
    watch = _add(commands, "watch", "lab_monitor", "show the memory of -- COMMAND while it runs")
    watch.add_argument("--interval", type=float, default=0.5, help="seconds between samples")
    kernels = _add(
        commands, "kernels", "lab_monitor", "registers and spills from ptxas -v output; two files: compared"
    )
    kernels.add_argument("file", type=Path)
    kernels.add_argument("other", type=Path, nargs="?", default=None)
    predict = _add(commands, "predict", "lab_monitor", "what a run will need, against what there is")
    predict.add_argument("--gaussians", type=int, required=True)
    predict.add_argument("--photos", type=int, default=0)
    predict.add_argument("--size", default="0x0", help="of a photo, as WIDTHxHEIGHT")
    predict.add_argument("--trainer", default="mip-splatting")
    predict.add_argument(
        "--card", default="", help="memory of the card, such as 16G (default: what is there)"
    )
