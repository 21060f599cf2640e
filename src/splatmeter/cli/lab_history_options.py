"""What `lab history` can be asked for; apart from its work, because `lab --help` imports nothing heavy."""

from __future__ import annotations

import argparse


def history_options(history: argparse.ArgumentParser) -> None:
    history.add_argument("--phase", default="", help="only sessions in which this phase was measured")
    history.add_argument("--now", action="store_true", help="only by the protocol as it is now")
    history.add_argument(
        "--last", type=int, default=0, metavar="N", help="the newest N sessions of each track (default: all)"
    )
    history.add_argument(
        "--csv", metavar="FILE", help="write every arm of every session as a row instead; -: standard output"
    )
    history.add_argument(
        "--mlflow",
        default="",
        metavar="FOLDER_OR_URI",
        help="write them as runs of MLflow instead (extra: mlflow); repeated, it adds only what is new",
    )
