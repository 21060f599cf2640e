"""Memory from outside: trees, cards, counters of Windows, kernels, predictions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from splatmeter.events import Evaluated, Finished, Progress
from splatmeter.lab.executor import Arrival, ProcessEnd
from splatmeter.lab.monitor import kernels, nvml, spill, windows
from splatmeter.lab.monitor.counters import HelperCounters, adapter_counters
from splatmeter.lab.monitor.predict import Planned, predict
from splatmeter.lab.monitor.spill import Context
from splatmeter.lab.monitor.tree import (
    MemorySample,
    Stretch,
    TreeSampler,
    peaks_by_stage,
    resident_bytes,
    tree,
)
from splatmeter.lab.monitor.windows import AdapterMemory, TypeperfParser, cim_line, is_wsl
from splatmeter.lab.session.stage_peaks import memory_record, stretches
from splatmeter.lab.session.watching import Watch, busy_seconds

GIB = 2**30


def test_the_whole_tree_is_seen_from_outside() -> None:
    child = "import sys, time; held = bytearray(60_000_000); print('ready', flush=True); time.sleep(60)"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    process = subprocess.Popen([sys.executable, "-c", parent, child], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        sampler = TreeSampler(process.pid, interval=0.02).start()
        while len(sampler.samples) < 3:
            time.sleep(0.01)
        sampler.stop()
        assert len(tree(process.pid)) == 2
        assert sampler.samples[-1].processes == 2
        assert sampler.samples[-1].resident_bytes > 60_000_000
        assert sampler.samples[-1].device_bytes is None
        assert 0 < sampler.cpu_seconds < sampler.wall_seconds
    finally:
        for pid in reversed(tree(process.pid)):
            subprocess.run(["kill", "-9", str(pid)], check=False)
        process.communicate()
    assert resident_bytes(process.pid) is None


def test_the_sampler_rests_long_enough_to_stay_below_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that costs 4 ms of CPU is followed by at least 2 s of rest: 0.2 %."""
    sampler = TreeSampler(1)
    cpu = iter([0.0, 0.004])
    rests: list[float] = []
    monkeypatch.setattr(time, "thread_time", lambda: next(cpu))
    monkeypatch.setattr(sampler, "take", lambda seconds: MemorySample(seconds, 1, 1))
    monkeypatch.setattr(sampler, "_stop", SimpleNamespace(wait=lambda seconds: rests.append(seconds) or True))
    sampler._run()
    assert rests == [pytest.approx(2.0)]


def test_stages_come_from_the_events_around_a_sample() -> None:
    arrivals = [
        Arrival(1.0, Progress(10, 0.0, 0.1, 5)),
        Arrival(2.0, Progress(20, 1.0, 0.1, 5)),
        Arrival(5.0, Evaluated(20, "test", {})),
        Arrival(6.0, Progress(30, 2.0, 0.1, 5)),
        Arrival(6.5, Finished(30, 2.0, 5)),
    ]
    assert stretches(arrivals) == [
        Stretch("loading", 0.0, 1.0), Stretch("training", 1.0, 2.0), Stretch("evaluation", 2.0, 5.0),
        Stretch("training", 5.0, 6.0),
    ]  # fmt: skip
    samples = [
        MemorySample(0.5, 1, 1),
        MemorySample(1.5, 5, 1),
        MemorySample(3.0, 90, 1),
        MemorySample(5.5, 7, 1),
    ]
    found = peaks_by_stage(samples, stretches(arrivals))
    assert found == {"loading": (1, 1, 1.0), "training": (7, 2, 2.0), "evaluation": (90, 1, 3.0)}


def test_a_trainers_own_high_water_marks_come_before_samples() -> None:
    told = {"training": 100, "training reserved": 300, "evaluation": 50}
    record = memory_record([], None, None, told, stages=True)
    training, evaluation = record["peaks"]
    assert (training.allocated_bytes, training.reserved_bytes, training.process_bytes) == (100, 300, None)
    assert evaluation.process_bytes == 50 and evaluation.samples is None
    assert record["memory"].total_peak_bytes == 50


class Library:
    """A stand-in for pynvml."""

    class NVMLError(Exception):
        pass

    def __init__(
        self, used: int = 8 * GIB, total: int = 16 * GIB, processes: tuple[tuple[int, object], ...] = ()
    ) -> None:
        self.info = SimpleNamespace(used=used, total=total)
        self.processes = [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in processes]

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"RTX 5060 Ti"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return self.info

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:  # noqa: N802
        return self.processes


def test_a_card_tells_what_is_used_on_it() -> None:
    card = nvml.first_card(Library(processes=((5, 3 * GIB), (6, GIB), (7, 2 * GIB))))
    assert card is not None and card.name == "RTX 5060 Ti" and card.used_bytes() == 8 * GIB
    assert card.used_by([5, 6]) == 4 * GIB


@pytest.mark.parametrize("value", [None, 2**64 - 1, 2**63, 40 * GIB, -1])
def test_not_available_is_never_a_number(value: object) -> None:
    card = nvml.first_card(Library(processes=((5, value), (6, GIB))))
    assert card is not None
    assert card.used_by([5, 6]) is None and card.used_by([99]) is None
    assert nvml.first_card(Library(used=2**64 - 1)).used_bytes() is None  # type: ignore[union-attr]


def test_without_a_driver_there_is_no_card() -> None:
    class Broken(Library):
        def nvmlInit(self) -> None:  # noqa: N802
            raise Library.NVMLError

    assert nvml.first_card(Broken()) is None


LUID = "luid_0x00000000_0x0000E1B4_phys_0"


def header(*names: str) -> str:
    return ",".join(['"(PDH-CSV 4.0)"', *(rf'"\\PC\GPU Adapter Memory({LUID})\{name}"' for name in names)])


def test_typeperf_lines_become_memory_by_adapter() -> None:
    parser = TypeperfParser()
    assert parser.line("") == []
    assert parser.line(header("Dedicated Usage", "Shared Usage", "Total Committed")) == []
    line = '"01/27/2026 10:11:12.345","8589934592.000000","134217728.000000","9000000000.000000"'
    assert parser.line(line) == [AdapterMemory(LUID.lower(), 8589934592, 134217728, 9000000000)]
    gone = '"01/27/2026 10:11:13.345","-1"," ","9000000000.000000"'
    assert parser.line(gone) == [AdapterMemory(LUID.lower(), None, None, 9000000000)]
    assert parser.line("Exiting, please wait...") == [] and not parser.localised


def test_a_localised_typeperf_is_noticed() -> None:
    parser = TypeperfParser()
    parser.line(header("Dedizierte Nutzung", "Gemeinsame Nutzung"))
    assert parser.localised and parser.line('"27.01.2026 10:11:12.345","1.0","2.0"') == []


def test_cim_lines_hold_one_adapter_or_several() -> None:
    one = f'{{"Name":"{LUID}","DedicatedUsage":8589934592,"SharedUsage":"134217728","TotalCommitted":null}}'
    assert list(cim_line(one)) == [AdapterMemory(LUID.lower(), 8589934592, 134217728, None)]
    assert len(list(cim_line(f"[{one},{one}]"))) == 2
    assert list(cim_line("At line:1 char:17")) == [] and list(cim_line("3")) == []


def test_wsl_needs_both_signs(tmp_path: Path) -> None:
    release, device = tmp_path / "osrelease", tmp_path / "dxg"
    release.write_text("5.15.167.4-microsoft-standard-WSL2\n")
    assert not is_wsl(release, device)
    device.touch()
    assert is_wsl(release, device)
    release.write_text("6.1.0-generic\n")
    assert not is_wsl(release, device) and not is_wsl(tmp_path / "none", device)
    assert windows.typeperf_command()[0] == "typeperf.exe" and windows.CIM_CLASS in windows.cim_command()[-1]


def adapters(*figures: tuple[int | None, int | None, int | None]) -> list[AdapterMemory]:
    return [AdapterMemory("a", *(None if f is None else int(f * GIB) for f in row)) for row in figures]


def test_spill_over_needs_two_signs() -> None:
    card = Context(16 * GIB, idle_shared=GIB // 8)
    shared_only = adapters((15, 2, 15), (15, 2, 15))
    assert not spill.spill_seen(shared_only, card).spilled
    both = adapters((15, 2, 17), (15, 2, 17))
    found = spill.spill_seen(both, card)
    assert found.spilled and "shared memory rose" in str(found)
    once = adapters((15, 2, 15), (15, 0, 15))
    assert not spill.spill_seen(once, Context(16 * GIB, idle_shared=0, slowdown=4.0)).spilled
    slow = Context(16 * GIB, idle_shared=0, slowdown=4.0)
    assert spill.spill_seen(shared_only, slow).spilled
    moved = adapters((15, 1, 16), (14, 2, 16), (14, 2, 16))
    found = spill.spill_seen(moved, card)
    assert found.spilled and "gave 1.0 GiB to shared memory" in str(found)


def test_what_cannot_be_observed_is_not_zero() -> None:
    found = spill.spill_seen(adapters((None, None, None)), Context(16 * GIB, slowdown=4.0, reserved=20 * GIB))
    assert not found.observable and str(found) == "not observable"


PTXAS = """ptxas info    : 24 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function '_Z5plainPf' for 'sm_80'
ptxas info    : Function properties for _Z5plainPf
    32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 32 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Function properties for _Z6helperf
    4 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function '_Z5otherPf' for 'sm_80'
ptxas info    : Function properties for _Z5otherPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers
"""


def test_registers_and_spills_are_read_per_kernel() -> None:
    first, second = kernels.parse(PTXAS)
    assert first == kernels.Kernel("_Z5plainPf", "sm_80", 255, 32, 8, 12, 1024) and first.spills
    assert second.registers == 18 and not second.spills
    assert kernels.parse("error: no kernel image") == []


def test_two_builds_are_compared_by_kernel() -> None:
    after = PTXAS.replace("255 registers", "128 registers").replace("_Z5otherPf", "_Z3newPf")
    changes = {
        change.name: change for change in kernels.compare_kernels(kernels.parse(PTXAS), kernels.parse(after))
    }
    assert changes["_Z5plainPf"].differs and changes["_Z5plainPf"].after.registers == 128  # type: ignore[union-attr]
    assert changes["_Z5otherPf"].after is None and changes["_Z3newPf"].before is None
    assert set(kernels.readable(changes)) == set(changes)


def test_real_ptxas_output_is_understood(tmp_path: Path) -> None:
    import shutil

    if not shutil.which("nvcc"):
        pytest.skip("no nvcc: real ptxas output was not tried")
    source = tmp_path / "kernel.cu"
    source.write_text("__global__ void __launch_bounds__(256) scale(float* a) { a[threadIdx.x] *= 2.0f; }\n")
    words = ["nvcc", "-Xptxas", "-v", "-arch=sm_80", "-cubin", "-o", str(tmp_path / "k.cubin"), str(source)]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip("nvcc cannot compile here: real ptxas output was not tried")
    (kernel,) = kernels.parse(answer.stdout + answer.stderr)
    assert kernel.architecture == "sm_80" and kernel.registers and kernel.spill_store_bytes == 0


def test_the_prediction_is_the_specs_arithmetic() -> None:
    planned = Planned(1_811_372, 141, 2594, 1681)
    found = predict(planned)
    assert found.gaussians == 1_811_372 * 944 and found.photos == pytest.approx(7.4e9, rel=0.01)
    assert "does not fit" in found.sentence(planned, 2 * GIB) and "not observable" in found.sentence(
        planned, None
    )


def test_the_counters_are_followed_and_a_localised_typeperf_gives_way() -> None:
    head = header("Dedicated Usage", "Shared Usage", "Total Committed").replace("'", "")
    german = header("Dedizierte Nutzung")
    one = f'{{"Name":"{LUID}","DedicatedUsage":8,"SharedUsage":4,"TotalCommitted":12}}'

    def printing(*lines: str) -> tuple[str, ...]:
        return (sys.executable, "-c", f"print({chr(10).join(lines)!r}, flush=True)")

    typeperf = printing(head, '"01/27/2026 10:11:12.345","8.0","4.0","12.0"')
    for commands in ([typeperf], [printing(german), printing(one)], [("/no/typeperf",), printing(one)]):
        counters = HelperCounters(commands).start()
        counters._thread.join(10)
        counters.stop()
        assert counters.busiest() == [AdapterMemory(LUID.lower(), 8, 4, 12)]
    assert adapter_counters() is None or is_wsl()


def test_what_else_the_machine_did_is_told() -> None:
    watch = Watch(sample=False).start(1)
    watch.stop()
    watch._foreign, watch._elapsed = 3.0, 2.0
    record = watch.record(ProcessEnd(0, 2.0, cpu_seconds=1.0), Path())
    assert record["foreign_cpu_share"] == pytest.approx(2.0 / (2.0 * (os.cpu_count() or 1)))
    assert record["shared_memory"] == {"verdict": "not observable"}
    assert busy_seconds() > 0


def test_arms_that_take_turns_are_not_foreign_to_each_other() -> None:
    watch = Watch(sample=False).start(1)
    watch.stop()
    watch._foreign, watch._elapsed = 4.0, 2.0
    record = watch.record(ProcessEnd(0, 2.0, cpu_seconds=1.5), Path(), partners=1.5)
    assert record["foreign_cpu_share"] == pytest.approx(1.0 / (2.0 * (os.cpu_count() or 1)))
    silent = watch.record(ProcessEnd(0, 2.0, cpu_seconds=0.0), Path())  # as on Windows
    assert silent["foreign_cpu_share"] is None
