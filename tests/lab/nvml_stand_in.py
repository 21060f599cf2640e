"""NVIDIA's library as a stand-in below the real `pynvml`: names, structures, exceptions and conversions are
the package's own, only the C functions are invented. One that is not listed is missing, as on an old driver.
"""

# ruff: noqa: N802, N815

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

GIB = 2**30
SUCCESS, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE, INVALID = 0, 3, 6, 7, 2
NOT_AVAILABLE = 2**64 - 1


@dataclass
class StandInCard:
    name: bytes = b"NVIDIA GeForce RTX 5060 Ti"
    uuid: bytes = b"GPU-11111111-aaaa-bbbb-cccc-222222222222"
    total: int = 16 * GIB
    used: int = 8 * GIB
    processes: tuple[tuple[int, int], ...] = ()
    lists_processes: bool = True
    clocks: list[int] = field(default_factory=lambda: [2400])
    """One after the other, the last for ever."""
    application: int | None = None
    default: int | None = None
    reasons: int = 0
    celsius: int = 60
    milliwatts: int = 150_000
    busy: int = 99
    mig_of: StandInCard | None = None
    mig: bool = False


class StandInLibrary:
    """What `ctypes.CDLL` would be; functions get references as C functions do."""

    def __init__(self, *cards: StandInCard, missing: tuple[str, ...] = (), init: int = SUCCESS) -> None:
        self.cards = list(cards)
        self.missing = missing
        self.init = init
        self.shut = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name in self.__dict__["missing"] or not name.startswith("nvml"):
            raise AttributeError(name)
        method = getattr(type(self), f"_{name}", None)
        if method is None:
            raise AttributeError(name)
        return lambda *arguments: method(self, *arguments)

    def _nvmlInitWithFlags(self, flags: int) -> int:
        return self.init

    def _nvmlShutdown(self) -> int:
        self.shut += 1
        return SUCCESS

    def _nvmlErrorString(self, value: Any) -> bytes:
        return b"stand-in"

    def _nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> int:
        text.value = b"570.86.10"
        return SUCCESS

    def _nvmlSystemGetCudaDriverVersion_v2(self, number: Any) -> int:
        number._obj.value = 12080
        return SUCCESS

    def _nvmlDeviceGetCount_v2(self, number: Any) -> int:
        number._obj.value = len(self.cards)
        return SUCCESS

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        return self._point(handle, self.cards[index.value])

    def _nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:
        wanted = uuid.value if hasattr(uuid, "value") else uuid
        parts = [part for card in self.cards for part in (card, *_parts(card))]
        found = next((card for card in parts if card.uuid == wanted), None)
        return NOT_FOUND if found is None else self._point(handle, found)

    def _nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Any, whole: Any) -> int:
        card = _card(handle)
        return INVALID if card.mig_of is None else self._point(whole, card.mig_of)

    def _point(self, handle: Any, card: StandInCard) -> int:
        _KEPT[id(card)] = card
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = ctypes.c_void_p(id(card))
        return SUCCESS

    def _nvmlDeviceGetName(self, handle: Any, text: Any, size: Any) -> int:
        text.value = _card(handle).name
        return SUCCESS

    def _nvmlDeviceGetUUID(self, handle: Any, text: Any, size: Any) -> int:
        text.value = _card(handle).uuid
        return SUCCESS

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, info: Any) -> int:
        info._obj.total, info._obj.used = _card(handle).total, _card(handle).used
        return SUCCESS

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int:
        card = _card(handle)
        if not card.lists_processes:
            return NOT_SUPPORTED
        if processes is None:
            count._obj.value = len(card.processes)
            return INSUFFICIENT_SIZE if card.processes else SUCCESS
        for place, (pid, size) in enumerate(card.processes):
            processes[place].pid, processes[place].usedGpuMemory = pid, size
        count._obj.value = len(card.processes)
        return SUCCESS

    _nvmlDeviceGetComputeRunningProcesses_v2 = _nvmlDeviceGetComputeRunningProcesses_v3

    def _nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, number: Any) -> int:
        card = _card(handle)
        if card.mig_of:
            return INVALID
        if kind.value == 2:
            number._obj.value = 14001
        else:
            number._obj.value = card.clocks.pop(0) if len(card.clocks) > 1 else card.clocks[0]
        return SUCCESS

    def _nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any, number: Any) -> int:
        number._obj.value = 14001 if kind.value == 2 else 3090
        return SUCCESS

    def _nvmlDeviceGetApplicationsClock(self, handle: Any, kind: Any, number: Any) -> int:
        return self._given(_card(handle).application, number)

    def _nvmlDeviceGetDefaultApplicationsClock(self, handle: Any, kind: Any, number: Any) -> int:
        return self._given(_card(handle).default, number)

    def _given(self, value: int | None, number: Any) -> int:
        if value is None:
            return NOT_SUPPORTED
        number._obj.value = value
        return SUCCESS

    def _nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, number: Any) -> int:
        return self._given(_card(handle).reasons, number)

    _nvmlDeviceGetCurrentClocksThrottleReasons = _nvmlDeviceGetCurrentClocksEventReasons

    def _nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, number: Any) -> int:
        return self._given(_card(handle).celsius, number)

    def _nvmlDeviceGetPowerUsage(self, handle: Any, number: Any) -> int:
        return self._given(_card(handle).milliwatts, number)

    def _nvmlDeviceGetPowerManagementLimit(self, handle: Any, number: Any) -> int:
        return self._given(180_000, number)

    def _nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        card = _card(handle)
        if card.mig:  # a card that is cut into parts does not tell it
            return NOT_SUPPORTED
        rates._obj.gpu = card.busy
        return SUCCESS

    def _nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int:
        current._obj.value = pending._obj.value = int(_card(handle).mig)
        return SUCCESS if _card(handle).mig else NOT_SUPPORTED


_KEPT: dict[int, StandInCard] = {}
PARTS: dict[int, list[StandInCard]] = {}
"""Parts of a card, by its identity."""


def _parts(card: StandInCard) -> list[StandInCard]:
    return PARTS.get(id(card), [])


def _card(handle: Any) -> StandInCard:
    """A handle is a pointer to a structure that only the library knows."""
    return _KEPT[ctypes.cast(handle, ctypes.c_void_p).value or 0]


@contextmanager
def driver(library: StandInLibrary) -> Iterator[Any]:
    """The real package, with this library instead of the driver's."""
    pynvml = importlib.import_module("pynvml")
    before = pynvml.nvmlLib
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.nvmlLib = library
    try:
        yield pynvml
    finally:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = before
