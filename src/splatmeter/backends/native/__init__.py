"""The C++ engine as a backend."""

from __future__ import annotations

import os
from typing import Any

from splatmeter.backend import Backend, Facts, OptimizerState
from splatmeter.backends.host_model import host_memory
from splatmeter.backends.kernels import Kernels
from splatmeter.backends.native.engine import Engine
from splatmeter.backends.native.model import NativeModel
from splatmeter.backends.native.threads import usable_threads
from splatmeter.errors import SplatmeterError

__all__ = ["native_backend", "native_engine", "native_kernels", "usable_threads"]

BYTES_PER_GAUSSIAN = 1010
"""The table's 736, and the more of two: while rows move, one array twice (192) and where each row goes (41);
in a step, what is visible (104) and for each tile that it touches a pair with its gradient (85), 2 a Gaussian
where they are large for their number."""

BYTES_PER_PAIR = 85
"""Pair, items, gradient: of one Gaussian in one tile."""

BYTES_PER_PIXEL = 110
"""Images of a step (28), pairs of the largest Gaussians (24), and what an evaluation adds."""

PROCESS_BYTES = 72 * 2**20
"""Python with its packages, the scene, and small arrays; a thread takes a fifth of a MiB. It does not go with
their number: with --memory they must not change how many Gaussians fit."""

_NEW = OptimizerState()


def native_engine(threads: int | None = None, instruction_set: str | None = None) -> Engine:
    """`SPLATMETER_ISA` (or the argument) forces an instruction set, to test each on one machine."""
    module = _extension()
    wanted = instruction_set or os.environ.get("SPLATMETER_ISA")
    if wanted:
        if wanted not in module.instruction_sets():
            known = ", ".join(module.instruction_sets())
            raise SplatmeterError(f"Instruction set {wanted!r} cannot run here; this machine has: {known}.")
        module.force_instruction_set(wanted)
    return Engine(module, threads or usable_threads())


def native_kernels(threads: int | None = None, instruction_set: str | None = None) -> Kernels:
    """The operations one by one, for tests and experiments."""
    return native_engine(threads, instruction_set).kernels()


def native_backend(threads: int | None = None, instruction_set: str | None = None) -> Backend:
    return backend_of(native_engine(threads, instruction_set))


def backend_of(engine: Engine) -> Backend:
    kernels = engine.kernels()
    held = host_memory(
        BYTES_PER_GAUSSIAN,
        BYTES_PER_PIXEL,
        PROCESS_BYTES,
        lambda: engine.native.workspace_bytes,
        BYTES_PER_PAIR,
    )
    return Backend(
        facts=_facts(engine.native.threads),
        memory=held,
        upload=lambda table, optimizer=_NEW: NativeModel(engine, kernels, held, table, optimizer),
        photo=lambda pixels: pixels,
        similarity=engine.similarity,
        neighbour_distance=engine.neighbour_distance,
        morton_order=engine.morton_order,
        timings=engine.timings,
        exposes=True,
        knows_regions=True,
    )


def _facts(threads: int) -> Facts:
    """Asking for the instruction set chooses it, and AVX-512 must pass its self-test for that."""
    module = _extension()
    instruction_set = module.instruction_set()
    details = {"instruction_set": instruction_set, "threads": threads, "compiler": module.compiler}
    note = module.instruction_set_note()
    return Facts(
        name="native",
        device="cpu",
        arithmetic=f"native {instruction_set}",
        deterministic=True,
        fused=True,
        details=details | {"note": note} if note else details,
    )


def _extension() -> Any:
    try:
        from splatmeter import _native  # type: ignore[attr-defined]
    except ImportError as problem:
        raise SplatmeterError(
            f"The native engine is not built ({problem}). Install splatmeter with: pip install ."
        ) from None
    return _native
