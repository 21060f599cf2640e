"""Everything that can go wrong for a reason a person can do something about.

SplatmeterError
├── UsageError          64  the command line asks for something that makes no sense
├── InputError          65  a scene, photo, model or checkpoint cannot be used as it is
│   ├── CheckpointError     it is cut off, of another version, or of another scene
│   └── CodeChanged         the program behind an arm is not the one its session began with
├── MissingFile         66  something named does not exist
├── MissingExtra        69  an optional package is needed; the message names the install command
├── CardUnavailable     69  no card, driver or card too old, too little memory there, or a failed self-test
├── NotEnoughMemory     71  predicted before the start rather than met in the middle
├── OutputError         73  the output folder is in use, holds another run, or cannot be written
└── Diverged             1  training met a non-finite loss; the last good checkpoint is named

A message says what, where, and what to do. Exit codes follow sysexits.h where one fits.
"""

from __future__ import annotations


class SplatmeterError(Exception):
    """Base of all expected failures: shown as one sentence, never as a traceback."""

    exit_code = 70


class UsageError(SplatmeterError):
    exit_code = 64


class InputError(SplatmeterError):
    exit_code = 65


class CheckpointError(InputError):
    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(f"{what} {instead}" if instead else what)
        self.what = what
        """Without what a person may do instead, for callers that begin anew by themselves."""


class CodeChanged(InputError):
    """The program behind an arm of a comparison is another one than when the comparison began."""


class MissingFile(SplatmeterError):
    exit_code = 66


class MissingExtra(SplatmeterError):
    exit_code = 69

    def __init__(self, feature: str, extra: str, note: str = "") -> None:
        install = f"pip install 'splatmeter[{extra}]'"
        super().__init__(f"{feature} needs an optional package{note}. Install it with: {install}")


class CardUnavailable(SplatmeterError):
    exit_code = 69


class CardBroken(CardUnavailable):
    """There is a card, but it fails, or it failed its self-test."""


class NotEnoughMemory(SplatmeterError):
    exit_code = 71


class OutputError(SplatmeterError):
    exit_code = 73


class Diverged(SplatmeterError):
    exit_code = 1
