"""Cards through nvidia-ml-py, where both exist; what cannot be observed is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from splatmeter.lab.monitor.clocks import CardState

NOT_AVAILABLE = 2**63
"""NVML says "not available" as 2^64 - 1; no card holds half of that."""
GRAPHICS, MEMORY = 0, 2
"""NVML_CLOCK_GRAPHICS and NVML_CLOCK_MEM."""
CORE_SENSOR = 0
INSTALL = "nvidia-ml-py is not installed: pip install 'splatmeter[gpu]'"


@dataclass(frozen=True, slots=True)
class CardMemory:
    used_bytes: int | None
    total_bytes: int | None


def plausible(value: Any, total: int | None = None) -> int | None:
    """The number, unless it is NVML's way of saying that there is none, or more than twice the card."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value >= NOT_AVAILABLE:
        return None
    return None if total and value > 2 * total else value


class Nvml:
    """The library, opened; `module` is pynvml (or a stand-in in tests)."""

    def __init__(self, module: Any) -> None:
        self._module = module
        mismatch = getattr(module, "NVMLLibraryMismatchError", module.NVMLError)
        self._refusals: tuple[type[Exception], ...] = (module.NVMLError, mismatch, UnicodeDecodeError)

    def ask(self, name: str, *arguments: Any) -> Any:
        """None where this driver, this package or this card has no answer."""
        function = getattr(self._module, name, None)
        if function is None:
            return None
        try:
            answer = function(*arguments)
        except self._refusals:
            return None
        return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer

    def close(self) -> None:
        self.ask("nvmlShutdown")

    def versions(self) -> dict[str, str]:
        """Versions of the driver and of the CUDA it speaks."""
        found: dict[str, str] = {}
        driver = self.ask("nvmlSystemGetDriverVersion")
        if driver:
            found["driver"] = str(driver)
        cuda = self.ask("nvmlSystemGetCudaDriverVersion_v2") or self.ask("nvmlSystemGetCudaDriverVersion")
        if plausible(cuda):
            found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
        return found


class Card:
    """One card or one part of a card (MIG), which has memory of its own but shares clocks and power."""

    def __init__(self, library: Nvml, handle: Any, index: int | None = None, of: int = 1) -> None:
        self._library = library
        self._handle = handle
        self._whole = library.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle) or handle
        self.index = index
        self.of = of
        self.name = str(library.ask("nvmlDeviceGetName", handle) or "unknown card")
        self.uuid = str(library.ask("nvmlDeviceGetUUID", handle) or "")

    def memory(self) -> CardMemory:
        info = self._library.ask("nvmlDeviceGetMemoryInfo", self._handle)
        total = plausible(getattr(info, "total", None)) or None
        return CardMemory(plausible(getattr(info, "used", None), total), total)

    def used_bytes(self) -> int | None:
        return self.memory().used_bytes

    def used_by(self, pids: Iterable[int]) -> int | None:
        """Never available under WDDM and WSL2; None as soon as one of the processes has no figure."""
        wanted = set(pids)
        total = self.memory().total_bytes
        figures = [
            plausible(getattr(item, "usedGpuMemory", None), total)
            for item in self._processes()
            if item.pid in wanted
        ]
        known = [figure for figure in figures if figure is not None]
        return sum(known) if known and len(known) == len(figures) else None

    def runs(self, pids: Iterable[int]) -> bool:
        """Whether one of these processes computes here; False also where the driver does not list them."""
        return bool({item.pid for item in self._processes()} & set(pids))

    def _processes(self) -> list[Any]:
        """A driver older than the package knows only an older version of the call."""
        for name in ("", "_v3", "_v2"):
            found = self._library.ask(f"nvmlDeviceGetComputeRunningProcesses{name}", self._handle)
            if found is not None:
                return list(found)
        return []

    def facts(self) -> dict[str, Any]:
        """What does not change while a run lasts; a setting that somebody changes between two arms shows."""
        clocks = {
            f"{kind}_{name}_mhz": plausible(self._asked(f"nvmlDeviceGet{function}", number))
            for kind, function in (
                ("max", "MaxClockInfo"),
                ("application", "ApplicationsClock"),
                ("default", "DefaultApplicationsClock"),
            )
            for name, number in (("graphics", GRAPHICS), ("memory", MEMORY))
        }
        # the limit that somebody set: the enforced one moves by itself on laptops
        limit = plausible(self._asked("nvmlDeviceGetPowerManagementLimit"))
        mig = self._asked("nvmlDeviceGetMigMode")
        found = {
            "name": self.name,
            "uuid": self.uuid,
            "index": self.index,
            "of": self.of,
            "memory_bytes": self.memory().total_bytes,
            **self._library.versions(),
            **clocks,
            "power_limit_watts": limit / 1000 if limit else None,
            "mig": bool(mig[0]) if mig else None,
        }
        return {key: value for key, value in found.items() if value not in (None, "")}

    def state(self, seconds: float) -> CardState:
        """As it is at this moment."""
        reasons = plausible(self._asked("nvmlDeviceGetCurrentClocksEventReasons"))
        if reasons is None:  # its name before driver 535
            reasons = plausible(self._asked("nvmlDeviceGetCurrentClocksThrottleReasons"))
        power = plausible(self._asked("nvmlDeviceGetPowerUsage"))
        busy = self._asked("nvmlDeviceGetUtilizationRates")
        return CardState(
            seconds,
            graphics_mhz=plausible(self._asked("nvmlDeviceGetClockInfo", GRAPHICS)),
            memory_mhz=plausible(self._asked("nvmlDeviceGetClockInfo", MEMORY)),
            celsius=plausible(self._asked("nvmlDeviceGetTemperature", CORE_SENSOR)),
            watts=None if power is None else power / 1000,
            reasons=reasons,
            busy=plausible(getattr(busy, "gpu", None)),
        )

    def _asked(self, name: str, *arguments: Any) -> Any:
        return self._library.ask(name, self._whole, *arguments)


@dataclass(slots=True)
class Cards:
    """All cards of this machine, or why none can be seen."""

    found: tuple[Card, ...] = ()
    reason: str = ""
    library: Nvml | None = None

    def by_uuid(self, uuid: str) -> Card | None:
        """Also by the beginning of it, as CUDA allows; parts of a card are known only by their whole name."""
        same = [card for card in self.found if card.uuid and card.uuid.startswith(uuid)]
        if len(same) == 1 or self.library is None:
            return same[0] if same else None
        handle = self.library.ask("nvmlDeviceGetHandleByUUID", uuid)
        return Card(self.library, handle) if handle is not None and not same else None

    def close(self) -> None:
        if self.library:
            self.library.close()
            self.library = None


def cards(module: Any = None) -> Cards:
    """Whoever asks closes them."""
    if module is None:
        try:
            import pynvml as module  # type: ignore[no-redef]
        except ImportError:
            return Cards(reason=INSTALL)
    library = Nvml(module)
    try:
        module.nvmlInit()
    except module.NVMLError as problem:
        return Cards(reason=f"NVIDIA's driver does not answer: {problem}")
    count = plausible(library.ask("nvmlDeviceGetCount")) or 0
    handles = [(index, library.ask("nvmlDeviceGetHandleByIndex", index)) for index in range(count)]
    found = tuple(Card(library, handle, index, count) for index, handle in handles if handle is not None)
    if not found:
        library.close()
        return Cards(reason="NVIDIA's driver sees no card")
    return Cards(found, "", library)


def first_card(module: Any = None) -> Card | None:
    """None without a card, a driver, or the package."""
    found = cards(module).found
    return found[0] if found else None
