"""Cards, through the real nvidia-ml-py over a library of our own: there is no card where these tests run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed: cards were not tried")

from nvml_stand_in import GIB, NOT_AVAILABLE, PARTS, StandInCard, StandInLibrary, driver
from scripted_lab import make_lab

from splatmeter.cli.lab import run as lab_command
from splatmeter.lab.audit.rules import audit
from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.monitor import clocks, nvml
from splatmeter.lab.monitor.clocks import CardState
from splatmeter.lab.monitor.which_card import which_card
from splatmeter.lab.samples.finding import Severity
from splatmeter.lab.samples.run_sample import Arm, RunSample
from splatmeter.lab.session.card_watch import CardWatch

OTHER = b"GPU-33333333-aaaa-bbbb-cccc-444444444444"


@pytest.fixture
def one() -> Iterator[StandInCard]:
    card = StandInCard()
    with driver(StandInLibrary(card)):
        yield card


def test_without_the_package_the_reason_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "splatmeter[gpu]" in nvml.cards().reason and nvml.first_card() is None


def test_a_driver_that_refuses_or_sees_nothing_is_a_reason() -> None:
    with driver(StandInLibrary(init=9)):
        assert nvml.cards().reason == "NVIDIA's driver does not answer: Driver Not Loaded"
    library = StandInLibrary()
    with driver(library):
        assert "sees no card" in nvml.cards().reason and library.shut == 1


def test_facts_of_a_card(one: StandInCard) -> None:
    one.application, one.default = 2100, 2407
    card = nvml.first_card()
    assert card is not None
    assert card.facts() == {
        "name": "NVIDIA GeForce RTX 5060 Ti", "uuid": one.uuid.decode(), "index": 0, "of": 1,
        "memory_bytes": 16 * GIB, "driver": "570.86.10", "cuda": "12.8", "max_graphics_mhz": 3090,
        "max_memory_mhz": 14001, "application_graphics_mhz": 2100, "application_memory_mhz": 2100,
        "default_graphics_mhz": 2407, "default_memory_mhz": 2407, "power_limit_watts": 180.0,
    }  # fmt: skip
    text = clocks.card_text(card.facts())
    assert text.startswith("NVIDIA GeForce RTX 5060 Ti, 17.2 GB, GPU-11111111, driver 570.86.10, CUDA 12.8")
    assert "set to 2100 MHz" in text and "180 W" in text


def test_what_an_old_driver_or_a_card_does_not_tell_is_left_out() -> None:
    old = (
        "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
    )  # fmt: skip
    with driver(StandInLibrary(StandInCard(reasons=4, processes=((5, GIB),)), missing=old)):
        card = nvml.first_card()
        assert card is not None and "max_graphics_mhz" not in card.facts() and "cuda" not in card.facts()
        state = card.state(1.0)
        assert (state.reasons, state.watts, state.busy) == (4, None, None) and state.works
        assert card.used_by([5]) == GIB and card.runs([5])
    with driver(StandInLibrary(StandInCard(), missing=(*old, "nvmlDeviceGetComputeRunningProcesses_v2"))):
        card = nvml.first_card()
        assert card is not None and card.used_by([5]) is None and not card.runs([5])


def test_wsl_lists_no_processes_and_not_available_is_no_number(one: StandInCard) -> None:
    one.processes = ((5, NOT_AVAILABLE), (6, GIB))
    card = nvml.first_card()
    assert card is not None and card.used_by([5, 6]) is None and card.used_by([6]) == GIB
    one.lists_processes = False
    assert card.used_by([6]) is None and card.used_bytes() == 8 * GIB
    one.used = NOT_AVAILABLE
    assert card.used_bytes() is None


def test_a_part_of_a_card_has_its_own_memory_and_its_cards_clocks() -> None:
    whole = StandInCard(b"NVIDIA A100", mig=True, clocks=[1410], total=80 * GIB)
    part = StandInCard(b"NVIDIA A100 MIG 1g.10gb", b"MIG-55555555", total=10 * GIB, mig_of=whole)
    PARTS[id(whole)] = [part]
    with driver(StandInLibrary(whole)):
        cards = nvml.cards()
        choice = which_card(cards, {"CUDA_VISIBLE_DEVICES": "MIG-55555555"})
        assert choice.card is not None and choice.certain
        facts = choice.card.facts()
        assert (facts["name"], facts["memory_bytes"], facts["mig"]) == (part.name.decode(), 10 * GIB, True)
        state = choice.card.state(0.0)
        assert (state.graphics_mhz, state.busy) == (1410, None) and state.works


@pytest.mark.parametrize(
    ("variables", "words", "uuid", "certain"),
    [
        ({}, (), "GPU-1", False),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, (), "GPU-1", True),
        ({"CUDA_VISIBLE_DEVICES": "1"}, (), "GPU-3", False),
        ({"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ("--device", "cuda:1"),
         "GPU-1", True),
        ({"CUDA_VISIBLE_DEVICES": "GPU-33"}, (), "GPU-3", True),
        ({"CUDA_VISIBLE_DEVICES": ""}, (), None, True),
        ({"CUDA_VISIBLE_DEVICES": "-1,0"}, (), None, True),
        ({"CUDA_VISIBLE_DEVICES": "GPU-99,0"}, (), None, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, ("--device=cuda:1",), None, True),
    ],
)  # fmt: skip
def test_the_rules_of_cuda_choose_the_card(
    variables: dict[str, str], words: tuple[str, ...], uuid: str | None, certain: bool
) -> None:
    with driver(StandInLibrary(StandInCard(), StandInCard(b"NVIDIA RTX A2000", OTHER))):
        choice = which_card(nvml.cards(), variables, words)
        assert (choice.card.uuid[:5] if choice.card else None, choice.certain) == (uuid, certain)


def test_where_the_rules_leave_a_doubt_the_process_decides() -> None:
    second = StandInCard(b"NVIDIA RTX A2000", OTHER, total=6 * GIB, used=GIB)
    with driver(StandInLibrary(StandInCard(), second)):
        watch = CardWatch()
        watch.begin(lambda: [77])
        assert watch.look() == 8 * GIB
        second.processes = ((77, GIB),)
        watch._looked -= 2.0
        assert watch.look() == GIB and watch.total_bytes == 6 * GIB
        assert watch.seen and "was seen on it" in watch.because
        watch.close()


def states(*clock: int, reasons: int = 0, busy: int = 99) -> list[CardState]:
    return [CardState(float(i), mhz, 14001, 60, 150.0, reasons, busy) for i, mhz in enumerate(clock)]


def test_clocks_that_move_and_cards_held_back_are_warned_of() -> None:
    assert clocks.card_warnings(clocks.card_summary(states(2400, 2400, 2385))) == []
    (moving,) = clocks.card_warnings(clocks.card_summary(states(2400, 1800)))
    assert "not locked" in moving and "1800 and 2400 MHz" in moving
    capped = clocks.card_summary([*states(2400, 2400, 2400), *states(2400, reasons=4)])
    assert clocks.card_warnings(capped) == ["the card was held back: power cap in 25 % of the samples"]
    assert not clocks.slowed_by_heat(capped)
    assert clocks.slowed_by_heat(clocks.card_summary(states(2400, reasons=0x40))) == "heat (hardware)"


def test_an_idle_card_says_nothing_about_a_run() -> None:
    idle = [*states(210, reasons=1), *states(210, busy=0)]
    record = clocks.card_summary([*idle, *states(2400, 2400)])
    assert record["graphics_mhz"] == {"low": 2400, "median": 2400, "high": 2400}
    assert clocks.card_warnings(record) == [] and record["working_samples"] == 2
    assert clocks.card_summary(idle) == {"samples": 2, "working_samples": 0}
    assert clocks.card_summary([CardState(0.0)]) == {"samples": 1, "working_samples": 1}
    assert clocks.state_text(clocks.card_summary([CardState(0.0)])) == ""


def test_what_a_card_did_is_a_note_of_the_audit_once_an_arm() -> None:
    warned = [
        RunSample(Arm("fast"), block, 0, 1.0, 100, 5, 5, f"run {block}", card_warnings=("it was held back",))
        for block in range(2)
    ]
    found = [finding for finding in audit(warned) if finding.kind == "card"]
    assert [(finding.sentence, finding.severity) for finding in found] == [
        ("run 0: it was held back.", Severity.NOTE)
    ]


STAND_IN = Path(__file__).parent / "stand_in.py"


def test_record_log_and_terminal_tell_of_the_card(
    tmp_path: Path, one: StandInCard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in a process of its own; the card's clock falls while it works."""
    monkeypatch.setattr("splatmeter.lab.session.card_watch.LOOK_SECONDS", 0.0)
    one.clocks = [2400, 2400, 2100]
    one.reasons = 4
    words = (sys.executable, str(STAND_IN), "original", "--steps", "200", "--seconds", "0.002",
             "--evaluate-at", "100")  # fmt: skip
    lab = make_lab(tmp_path / "lab", trainer="mip-splatting", command=words, directory="", scene="garden")
    command = ["--lab", str(lab.root)]
    assert lab_command([*command, "run", "baseline", "--record", "--no-priming"]) == 0
    told = capsys.readouterr().err
    assert told.count("warning: the card was held back: power cap in 100 %") == 1
    (result,) = (json.loads(path.read_text()) for path in lab.sessions.glob("*/blocks/*/*/result.json"))
    assert result["card_used"] and result["card"]["driver"] == "570.86.10"
    assert result["card"]["chosen_by"].startswith("the only card")
    assert result["facts"]["card"]["uuid"] == one.uuid.decode() and result["card_bytes"] == 16 * GIB
    (folder,) = lab.sessions.glob("*/blocks/*/0-*")
    assert (folder / "card.csv").read_text().startswith("seconds,graphics_mhz,")
    assert lab_command([*command, "log"]) == 0
    text = (lab.root / "LOG.md").read_text()
    assert "- Graphics card: NVIDIA GeForce RTX 5060 Ti, 17.2 GB" in text
    assert "- **Card:** 2" in text and "held back by power cap 100 %" in text
    assert "Shared GPU memory" not in text  # on Linux a card that is full refuses
    assert not [finding for finding in audit_log(parse_log(text)) if "MHz" in finding.sentence]


def test_a_run_on_the_processor_says_nothing_of_an_idle_card(tmp_path: Path, one: StandInCard) -> None:
    one.reasons = 4
    words = (sys.executable, str(STAND_IN), "events", "--steps", "200", "--evaluate-at", "100")
    lab = make_lab(tmp_path / "lab", trainer="events", command=words)
    assert lab_command(["--lab", str(lab.root), "run", "baseline", "--record", "--no-priming"]) == 0
    lab_command(["--lab", str(lab.root), "log"])
    text = (lab.root / "LOG.md").read_text()
    assert "Graphics card" not in text and "**Card:**" not in text and "held back" not in text


def test_a_trainer_on_a_card_that_nobody_sees_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    words = (sys.executable, str(STAND_IN), "original", "--steps", "200", "--seconds", "0.002",
             "--evaluate-at", "100")  # fmt: skip
    lab = make_lab(tmp_path / "lab", trainer="mip-splatting", command=words, directory="")
    assert lab_command(["--lab", str(lab.root), "run", "baseline", "--record", "--no-priming"]) == 0
    lab_command(["--lab", str(lab.root), "log"])
    assert "- Graphics card: not observed (nvidia-ml-py is not installed" in (lab.root / "LOG.md").read_text()


def test_watching_a_command_names_the_card(one: StandInCard, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_command(["watch", "--", sys.executable, "-c", "print('hello')"]) == 0
    said: Any = capsys.readouterr()
    assert "used by everybody on NVIDIA GeForce RTX 5060 Ti" in said.err and "(the only card)" in said.err
