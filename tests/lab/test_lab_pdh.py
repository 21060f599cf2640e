"""pdh.dll by a stand-in that fills memory as the documentation says; nothing here has seen Windows."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pytest

from splatmeter.lab.monitor import counters
from splatmeter.lab.monitor.counters import PdhCounters, adapter_counters
from splatmeter.lab.monitor.pdh import MORE_DATA, Item, PdhError, PdhQuery, open_query
from splatmeter.lab.monitor.windows import AdapterMemory

CARD = "luid_0x00000000_0x0000E3F7_phys_0"


class Library:
    """Remembers counters by handle; `values` maps the counter's name to (instance, status, value) rows."""

    def __init__(self, values: dict[str, list[tuple[str, int, int]]], refuse: str = "") -> None:
        self.values, self.refuse = values, refuse
        self.paths: list[str] = []
        self.collected = 0
        self.closed = False

    def PdhOpenQueryW(self, source: None, user: Any, query: Any) -> int:  # noqa: N802
        query._obj.value = 77
        return 0

    def PdhAddEnglishCounterW(self, query: Any, path: str, user: Any, handle: Any) -> int:  # noqa: N802
        if self.refuse and self.refuse in path:
            return -1073738824  # 0xC0000BB8, PDH_CSTATUS_NO_OBJECT, as a signed number
        self.paths.append(path)
        handle._obj.value = len(self.paths)
        return 0

    def PdhCollectQueryData(self, query: Any) -> int:  # noqa: N802
        self.collected += 1
        return 0

    def PdhGetFormattedCounterArrayW(  # noqa: N802
        self, handle: Any, form: Any, size: Any, count: Any, buffer: Any
    ) -> int:
        rows = self.values.get(self.paths[handle.value - 1].rpartition("\\")[2], [])
        if not rows:
            return 0
        if buffer is None:
            size._obj.value = len(rows) * ctypes.sizeof(Item) + 400  # names lie behind the items
            return MORE_DATA - 2**32
        items = ctypes.cast(buffer, ctypes.POINTER(Item))
        for place, (name, status, value) in enumerate(rows):
            items[place].name, items[place].value.status, items[place].value.large = name, status, value
        count._obj.value = len(rows)
        return 0

    def PdhCloseQuery(self, query: Any) -> int:  # noqa: N802
        self.closed = True
        return 0


FULL = {
    "Dedicated Usage": [(CARD, 0, 8 << 30), ("_Total", 0, 9 << 30)],
    "Shared Usage": [(CARD, 1, 300 << 20)],
    "Total Committed": [(CARD, 0, 9 << 30)],
}


def test_an_item_has_the_layout_of_the_windows_header() -> None:
    assert ctypes.sizeof(ctypes.c_void_p) != 8 or ctypes.sizeof(Item) == 24


def test_the_three_counters_of_an_adapter_become_one_sample() -> None:
    library = Library(FULL)
    assert PdhQuery(library).sample() == [AdapterMemory(CARD.lower(), 8 << 30, 300 << 20, 9 << 30)]
    assert library.paths[0] == r"\GPU Adapter Memory(*)\Dedicated Usage" and library.collected == 1


def test_a_counter_that_is_gone_or_invalid_is_unknown_and_never_zero() -> None:
    values = {"Dedicated Usage": [(CARD, 0, 5)], "Shared Usage": [(CARD, 0xC0000BBA, 0)]}
    assert PdhQuery(Library(values)).sample() == [AdapterMemory(CARD.lower(), 5, None, None)]


def test_a_machine_without_these_counters_is_refused_and_the_query_closed() -> None:
    library = Library({}, refuse="Shared")
    with pytest.raises(PdhError, match="PdhAddEnglishCounterW says 0xc0000bb8"):
        PdhQuery(library)
    assert library.closed


def test_a_thread_samples_until_it_is_told_to_stop() -> None:
    library = Library(FULL)
    watching = PdhCounters(PdhQuery(library), seconds=0.001).start()
    while len(watching.samples) < 3:
        time.sleep(0.001)
    watching.stop()
    assert watching.busiest()[0].shared == 300 << 20 and library.closed


def test_windows_asks_the_library_before_it_starts_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.sys, "platform", "win32")
    monkeypatch.setattr(counters, "open_query", lambda: PdhQuery(Library(FULL)))
    assert isinstance(adapter_counters(), PdhCounters)


def test_elsewhere_there_is_no_such_library() -> None:
    assert open_query() is None or hasattr(ctypes, "WinDLL")
