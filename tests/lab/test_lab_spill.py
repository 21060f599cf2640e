"""Spill-over on Windows and WSL2, told as stories of one run each: counters from before its start to after
its end, as the lab's watch keeps them. Each of the first four was misjudged once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from splatmeter.lab.log.log_contents import _shared
from splatmeter.lab.monitor.counters import AdapterCounters, HelperCounters, PdhCounters
from splatmeter.lab.monitor.windows import AdapterMemory
from splatmeter.lab.record.result import RunResult
from splatmeter.lab.samples.run_sample import RatePoint
from splatmeter.lab.session.watching import Told, Watch

GIB = 2**30
Reading = tuple[float, float, float, float]
"""Seconds since the start, then GiB: dedicated, shared, committed."""
RUN_SECONDS = 60.0


class _Card:
    total_bytes = 16 * GIB

    def record(self, folder: Path) -> dict[str, Any]:
        return {"name": "stand-in"}


def watched(*readings: Reading, last_step: float | None = RUN_SECONDS, **told: Any) -> dict[str, Any]:
    """What the lab records of a run of a minute with these readings on a card of 16 GiB."""
    watch = Watch(sample=False)
    watch.card = _Card()  # type: ignore[assignment]
    watch._counters = counters = AdapterCounters()
    watch._begin, watch._elapsed = 1000.0, RUN_SECONDS
    for seconds, *sizes in readings:
        figures = (int(size * GIB) for size in sizes)
        counters.samples.append(AdapterMemory("luid", *figures, seconds=1000.0 + seconds))
    said = Told(told.get("peak_bytes", {}), told.get("rates", ()), last_step)
    return watch.record(None, Path(), told=said)["shared_memory"]


IDLE: Reading = (-1.0, 0.5, 0.1, 0.6)


def test_pinned_memory_is_no_spill() -> None:
    """Photos are pinned while the card has room; later its cache is emptied once, and filled again."""
    found = watched(
        IDLE,
        (5, 1, 5.1, 6),
        (10, 12, 5.1, 17.1),
        (20, 15, 5.1, 20.1),
        (30, 13, 5.1, 18.1),
        (40, 15, 5.1, 20.1),
    )
    assert found["verdict"] == "none seen"


def test_an_emptied_cache_is_no_spill() -> None:
    """Shared memory grows a little beside a full card; what leaves the card is freed, not moved."""
    found = watched(IDLE, (10, 15, 0.4, 15.4), (20, 15, 0.4, 15.4), (30, 12, 0.4, 12.4), (40, 15, 0.4, 15.4))
    assert found["verdict"] == "none seen"


def test_the_end_of_a_run_is_no_spill() -> None:
    """The process ends between two samples: dedicated memory falls by gigabytes while nobody trains."""
    readings = ((10, 15, 0.4, 15.4), (50, 15, 0.4, 15.4), (61, 0.5, 0.4, 0.9), (62, 0.5, 0.1, 0.6))
    found = watched(IDLE, *readings)
    assert found["verdict"] == "none seen" and found["samples"] == 2
    ending = watched(IDLE, (10, 15, 0.4, 15.4), (50, 15, 0.4, 15.4), (59, 3, 0.4, 3.4), last_step=55.0)
    assert ending["verdict"] == "none seen" and ending["samples"] == 2


def test_a_spill_at_the_first_sample_is_seen() -> None:
    """A checkpoint is loaded within a second: the first sample of the run is as bad as all others."""
    full = [(float(seconds), 15.5, 4.0, 19.5) for seconds in (1, 20, 40, 59)]
    found = watched(IDLE, *full)
    assert found["verdict"].startswith(
        "shared memory rose by 3.9 GiB; 19.5 GiB committed on a card of 16.0 GiB"
    )
    assert found["idle_shared_bytes"] == int(0.1 * GIB)
    blind = watched(*full)  # nobody looked before it began
    assert blind["verdict"] == "not observable"
    begun_with_room = watched((1, 2, 0.1, 2.1), *full[1:])
    assert begun_with_room["verdict"].startswith("shared memory rose")


def test_a_spill_is_seen_though_memory_is_pinned_and_the_cache_emptied() -> None:
    found = watched(
        IDLE,
        (5, 2, 3.1, 5.1),
        (10, 15.5, 3.1, 18.6),
        (20, 15.5, 5.1, 20.6),
        (30, 15.5, 5.1, 20.6),
        (40, 9, 3.1, 12),
    )
    assert found["verdict"].startswith("shared memory rose by 2.0 GiB; 20.6 GiB committed")


def test_what_the_trainer_itself_tells_is_a_sign_too() -> None:
    readings = (IDLE, (10, 15.5, 0.8, 15.9), (20, 15.5, 0.8, 15.9))
    assert watched(*readings)["verdict"] == "none seen"
    reserved = watched(*readings, peak_bytes={"training reserved": 17 * GIB})
    assert "17.0 GiB reserved on a card of 16.0 GiB" in reserved["verdict"]
    fast = tuple(RatePoint(step, 1000, 100.0) for step in range(10, 110, 10))
    slow = tuple(RatePoint(step, 1000, 10.0) for step in range(110, 210, 10))
    assert "10.0 times slower" in watched(*readings, rates=(*fast, *slow))["verdict"]
    assert watched(*readings, rates=fast)["verdict"] == "none seen"


def test_without_counters_or_a_known_card_nothing_is_observable() -> None:
    assert watched()["verdict"] == "not observable"
    bare = Watch(sample=False).start(1)
    bare.stop()
    assert bare.record(None, Path())["shared_memory"] == {"verdict": "not observable"}


@pytest.mark.parametrize(
    ("kind", "words"), [(PdhCounters, "never run on Windows"), (HelperCounters, "printed lines only")]
)
def test_code_that_never_ran_says_so_in_the_log(kind: type[AdapterCounters], words: str) -> None:
    record = RunResult(shared_memory={"verdict": "none seen", "caveat": kind.caveat}, on_a_card=True)
    assert _shared([record]).startswith("none seen (") and words in _shared([record])


def test_on_wsl_the_log_says_what_could_not_be_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splatmeter.lab.session.watching.is_wsl", lambda: True)
    silent = RunResult(shared_memory=watched(), on_a_card=True)
    assert _shared([silent]) == "not observable (no counters of Windows answered)"
    full = [(float(seconds), 15.5, 4.0, 19.5) for seconds in (1, 20, 40)]
    late = RunResult(shared_memory=watched(*full), on_a_card=True)
    assert _shared([late]) == "not observable (nothing was read before it began)"
    assert _shared([replace(silent, on_a_card=False)]) == ""
    spilled = RunResult(shared_memory=watched(IDLE, *full), on_a_card=True)
    assert _shared([silent, spilled]).startswith("shared memory rose")


def test_a_reading_is_taken_before_the_program_starts() -> None:
    """The helper is asked first and waited for; where it says nothing the run begins all the same."""
    import sys

    one = '{"Name":"luid_0x0_0x1_phys_0","DedicatedUsage":8,"SharedUsage":4,"TotalCommitted":12}'
    counters = HelperCounters([(sys.executable, "-c", f"print({one!r}, flush=True); input()")])
    counters.start()
    counters.wait_for_the_first(20.0)
    assert counters.samples[0].shared == 4 and counters.samples[0].seconds > 0
    counters.stop()
    silent = HelperCounters([("/no/such/program",)])
    silent.start()
    silent.wait_for_the_first(20.0)
    assert silent.samples == []
