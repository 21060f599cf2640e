"""Which instruction set is used, how to ask for one, and what is said about it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from splatmeter.backends.native import native_backend, native_kernels
from splatmeter.errors import SplatmeterError

_native = pytest.importorskip("splatmeter._native", reason="the native module is not built: no choice")

ALL = ("avx512", "avx2", "baseline", "neon")


@pytest.mark.parametrize("name", [name for name in ALL if name not in _native.instruction_sets()])
def test_an_instruction_set_the_machine_lacks_is_refused(name: str) -> None:
    with pytest.raises(SplatmeterError, match=f"'{name}' cannot run here; this machine has: "):
        native_kernels(1, instruction_set=name)


def test_what_was_chosen_is_one_of_those_there_are() -> None:
    description = native_backend(1).facts.details
    assert description["instruction_set"] in _native.instruction_sets()
    assert description.get("note", "said something") != ""


def test_a_fresh_process_takes_the_best_unless_a_note_says_why_not() -> None:
    ask = "print(_native.instruction_set(), _native.instruction_set_note(), sep='|')"
    code = f"from splatmeter import _native; {ask}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    chosen, note = done.stdout.strip().split("|")
    best = _native.instruction_sets()[0]
    assert chosen == best if not note else note.startswith(f"{best} is not used: in its self-test ")
