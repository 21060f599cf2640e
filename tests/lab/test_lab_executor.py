"""Child processes: everything captured, arrival times, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from splatmeter.errors import MissingFile
from splatmeter.events import Evaluated, Failed, Finished, Progress
from splatmeter.lab.executor import (
    Arrival,
    ChildProcess,
    Command,
    Hooks,
    LineSplitter,
    ProcessEnd,
    Scripted,
)
from splatmeter.lab.trainers.adapter import EventLines
from splatmeter.lab.trainers.original import Fork, Original

STAND_IN = str(Path(__file__).parent / "stand_in.py")


def command(*words: str) -> Command:
    return Command((sys.executable, STAND_IN, *words))


def test_a_child_speaks_and_everything_it_prints_is_kept(tmp_path: Path) -> None:
    outcomes: list[ProcessEnd] = []
    arrivals = list(
        ChildProcess().run(
            command("events", "--steps", "30"), EventLines(), tmp_path, Hooks(ended=outcomes.append)
        )
    )
    assert isinstance(arrivals[-1].event, Finished)
    assert [a.event.step for a in arrivals if isinstance(a.event, Progress)] == [10, 20, 30]
    assert [a.seconds for a in arrivals] == sorted(a.seconds for a in arrivals)
    assert (tmp_path / "stdout.txt").read_text().count('"event"') == len(arrivals)
    assert outcomes[0].code == 0
    assert outcomes[0].largest_resident_bytes > 1_000_000


def test_frames_on_stderr_and_reports_on_stdout_come_together(tmp_path: Path) -> None:
    words = (
        "original",
        "--start",
        "3000",
        "--steps",
        "100",
        "--evaluate-at",
        "3050",
        "--output",
        str(tmp_path / "out"),
    )
    arrivals = list(
        ChildProcess().run(command(*words), Original(3000, 3100, tmp_path / "out"), tmp_path, Hooks())
    )
    events = [arrival.event for arrival in arrivals]
    assert [e.step for e in events if isinstance(e, Progress)][-1] == 3100
    assert {e.split for e in events if isinstance(e, Evaluated)} == {"test", "train"}
    assert isinstance(events[-1], Finished) and events[-1].gaussians == 4321


def test_the_richer_console_is_understood_from_a_real_process() -> None:
    words = ("fork", "--start", "3000", "--steps", "100", "--evaluate-at", "3050")
    events = [a.event for a in ChildProcess().run(command(*words), Fork(3000, 3100), None, Hooks())]
    assert [e.step for e in events if isinstance(e, Progress)][-1] == 3100
    assert next(e for e in events if isinstance(e, Evaluated)).metrics["lpips"] == 0.2412


def test_leaving_early_ends_the_child_and_its_children(tmp_path: Path) -> None:
    """The child starts a grandchild that ignores SIGTERM; both must be gone."""
    code = (
        "import subprocess, sys, time, signal\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import signal, time;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'],"
        " stdout=subprocess.PIPE)\n"
        "grandchild.stdout.readline()\n"
        'print(\'{"event": "warned", "message": "%d"}\' % grandchild.pid, flush=True)\n'
        "time.sleep(600)\n"
    )
    pids: list[int] = []
    stream = ChildProcess().run(
        Command((sys.executable, "-c", code)), EventLines(), tmp_path, Hooks(pids.append)
    )
    grandchild = int(next(stream).event.message)  # type: ignore[union-attr]
    stream.close()  # type: ignore[attr-defined]
    for pid in (pids[0], grandchild):
        assert _gone(pid)


def test_what_a_child_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        'print(\'{"event": "warned", "message": "%d"}\' % p.pid, flush=True)\n'
    )
    arrivals = list(
        ChildProcess().run(Command((sys.executable, "-c", code)), EventLines(), tmp_path, Hooks())
    )
    assert isinstance(arrivals[-1].event, Failed)
    assert _gone(int(arrivals[0].event.message))  # type: ignore[union-attr]


def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return False


def test_a_crash_is_a_failed_event_with_the_exit_code() -> None:
    arrivals = list(ChildProcess().run(command("events", "--fail-at", "15"), EventLines(), None, Hooks()))
    assert isinstance(arrivals[-1].event, Failed) and "exit code 3" in arrivals[-1].event.message


def test_a_command_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(MissingFile, match="no_such_trainer"):
        list(ChildProcess().run(Command(("/no_such_trainer",)), EventLines(), None, Hooks()))
    with pytest.raises(MissingFile, match="nowhere"):
        list(ChildProcess().run(Command((sys.executable,), Path("/nowhere")), EventLines(), None, Hooks()))


def test_arguments_are_never_a_shell_string(tmp_path: Path) -> None:
    nasty = "; touch " + str(tmp_path / "ran")
    words = (sys.executable, "-c", "import sys; print(sys.argv[1])", nasty)
    list(ChildProcess().run(Command(words), EventLines(), tmp_path, Hooks()))
    assert (tmp_path / "stdout.txt").read_text().strip() == nasty
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals need POSIX: not tested here")
def test_a_trainer_that_hides_its_bar_can_have_a_terminal(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdout.isatty(), sys.stderr.isatty())"
    words = Command((sys.executable, "-c", code), terminal=True)
    list(ChildProcess().run(words, EventLines(), tmp_path, Hooks()))
    assert (tmp_path / "stdout.txt").read_text().strip() == "True True"


def test_lines_end_at_line_feeds_and_carriage_returns_wherever_chunks_are_cut() -> None:
    text = "é one\rtwo\r\nthree\n\nfour".encode()
    for cut in range(len(text)):
        splitter = LineSplitter()
        found = [*splitter.feed(text[:cut]), *splitter.feed(text[cut:]), *splitter.rest()]
        assert found == ["é one", "two", "three", "four"]


def test_the_scripted_executor_has_no_clock() -> None:
    script = [Arrival(1.0, Progress(10, 1.0, 0.5, 5)), Arrival(2.0, Finished(10, 1.0, 5))]
    outcomes: list[ProcessEnd] = []
    executor = Scripted(lambda command: script)
    assert list(executor.run(Command(("x",)), EventLines(), None, Hooks(ended=outcomes.append))) == script
    assert outcomes == [ProcessEnd(0, 2.0, 2.0)] and executor.commands[0].arguments == ("x",)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv: orphans of a killed lab were not tried")
def test_a_killed_lab_takes_even_a_stopped_trainer_with_it(tmp_path: Path) -> None:
    """The child prints nothing more, so no broken pipe would ever end it; and it is stopped, as slices do."""
    code = (
        "import os, signal, sys, time\n"
        "from splatmeter.lab.executor import ChildProcess, Command, Hooks\n"
        "from splatmeter.lab.trainers.adapter import EventLines\n"
        "def started(pid):\n"
        "    time.sleep(0.3); os.killpg(pid, signal.SIGSTOP); print(pid, flush=True)\n"
        "sleeper = Command((sys.executable, '-c', 'import time; time.sleep(600)'))\n"
        "list(ChildProcess().run(sleeper, EventLines(), None, Hooks(started)))\n"
    )
    lab = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert lab.stdout is not None
    child = int(lab.stdout.readline())
    time.sleep(0.05)
    lab.kill()
    lab.communicate()
    assert _gone(child)
