r"""The card's counters on Windows itself, through pdh.dll: a tenth of a millisecond a sample and no helper.

`PdhAddEnglishCounterW` takes English names on every system, however it is localised. Tested here with a
stand-in for the library; it has not run on Windows.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from splatmeter.lab.monitor.windows import COUNTERS, AdapterMemory

LARGE_NUMBER = 0x400
"""PDH_FMT_LARGE: 64-bit integers."""
MORE_DATA = 0x800007D2
"""PDH_MORE_DATA: the buffer is too small, and its wanted size has been told."""
VALID = (0, 1)
"""PDH_CSTATUS_VALID_DATA and PDH_CSTATUS_NEW_DATA; any other status has no number."""
_INSTANCE = re.compile(r"luid_0x[0-9a-f]+_0x[0-9a-f]+_phys_\d+", re.IGNORECASE)


class _Value(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE with its largest member; ctypes aligns it as the compiler does."""

    _fields_ = [("status", ctypes.c_uint32), ("large", ctypes.c_int64)]


class Item(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE_ITEM_W: one instance of a counter with a wildcard."""

    _fields_ = [("name", ctypes.c_wchar_p), ("value", _Value)]


class PdhError(OSError):
    """The library refused; its status is in the text."""


class PdhQuery:
    """The three counters of all adapters; `library` is pdh.dll, or a stand-in in tests."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._query = ctypes.c_void_p()
        self._counters: dict[str, ctypes.c_void_p] = {}
        self._call("PdhOpenQueryW", None, ctypes.c_size_t(0), ctypes.byref(self._query))
        try:
            for counter, field in COUNTERS.items():
                handle = ctypes.c_void_p()
                path = rf"\GPU Adapter Memory(*)\{counter}"
                where = (self._query, path, ctypes.c_size_t(0), ctypes.byref(handle))
                self._call("PdhAddEnglishCounterW", *where)
                self._counters[field] = handle
        except PdhError:
            self.close()
            raise

    def sample(self) -> list[AdapterMemory]:
        """One value of each adapter; a counter that has gone is None, never 0."""
        self._call("PdhCollectQueryData", self._query)
        found: dict[str, dict[str, Any]] = {}
        for field, handle in self._counters.items():
            for adapter, value in self._values(handle):
                found.setdefault(adapter, {})[field] = value
        return [AdapterMemory(adapter, **values) for adapter, values in found.items()]

    def close(self) -> None:
        self._library.PdhCloseQuery(self._query)

    def _values(self, handle: ctypes.c_void_p) -> list[tuple[str, int | None]]:
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        where = (handle, ctypes.c_uint32(LARGE_NUMBER), ctypes.byref(size), ctypes.byref(count))
        status = self._library.PdhGetFormattedCounterArrayW(*where, None) & 0xFFFFFFFF
        if status != MORE_DATA:
            return []  # no adapter has this counter now
        buffer = ctypes.create_string_buffer(size.value)
        if self._library.PdhGetFormattedCounterArrayW(*where, buffer) & 0xFFFFFFFF:
            return []  # an adapter appeared in between: the next sample has it
        items = ctypes.cast(buffer, ctypes.POINTER(Item))
        return [_value(items[i]) for i in range(count.value) if _INSTANCE.fullmatch(items[i].name or "")]

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments) & 0xFFFFFFFF
        if status:
            raise PdhError(f"{name} says {status:#010x}")


def _value(item: Item) -> tuple[str, int | None]:
    known = item.value.status in VALID and item.value.large >= 0
    return item.name.lower(), int(item.value.large) if known else None


def open_query() -> PdhQuery | None:
    """None where there is no pdh.dll, or no such counters: everywhere but on Windows with a card."""
    load = getattr(ctypes, "WinDLL", None)
    if load is None:
        return None
    try:
        return PdhQuery(load("pdh.dll"))
    except OSError:
        return None
