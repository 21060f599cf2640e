"""The machine and software a run saw: enough to doubt a comparison, and nothing secret.

Environment variables are taken by an allow-list, arguments that look like credentials are masked,
the git remote is never read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from splatmeter.lab.order_of_time import utc_now

ALLOWED_VARIABLES = (
    "CONDA_DEFAULT_ENV", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY", "KMP_BLOCKTIME", "LANG", "LC_ALL", "LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_CONF",
    "MKL_NUM_THREADS", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "SPLATMETER_BACKEND", "SPLATMETER_ISA", "SPLATMETER_THREADS", "TORCH_CUDA_ARCH_LIST",
    "TORCH_CUDNN_V8_API_DISABLED",
)  # fmt: skip
"""Names that change speed or numbers. Nothing else is ever written down."""

PACKAGES = ("splatmeter", "numpy", "pillow", "safetensors", "torch", "gsplat", "lpips", "nvidia-ml-py")
_SECRET = re.compile(r"token|password|passwd|secret|api[-_]?key|credential", re.IGNORECASE)
LARGEST_DIFF = 1 << 20


def collect(directory: Path | None = None, declared: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`facts` must agree between two arms; `circumstances` may change from minute to minute."""
    return {
        "machine": machine_identity(),
        "facts": {
            "cpu": cpu(),
            "system": {
                "system": platform.system(),
                "release": platform.release(),
                "machine": platform.machine(),
            },
            "limits": limits(),
            "versions": versions(),
            "variables": variables(declared or {}),
        },
        "circumstances": circumstances(),
        "git": git_state(directory or Path.cwd()),
    }


@functools.cache
def cpu() -> dict[str, Any]:
    import psutil

    return {
        "model": _cpu_model(),
        "logical": psutil.cpu_count() or 0,
        "physical": psutil.cpu_count(logical=False) or 0,
        "caches": _caches(Path("/sys/devices/system/cpu/cpu0/cache")),
        "memory_bytes": int(psutil.virtual_memory().total),
    }


@functools.cache
def machine_identity() -> str:
    """Stable for one machine, and tells nobody its name."""
    import psutil

    facts = (
        _cpu_model(),
        psutil.cpu_count(),
        psutil.virtual_memory().total >> 28,
        platform.node(),
        platform.machine(),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


@functools.cache
def host_identity() -> str:
    """Tells two machines of one name and kind apart, as far as the system knows, and names neither."""
    import uuid

    known = [_text(Path(name)) for name in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid")]
    number = uuid.getnode()
    known += [f"{number:x}"] if not number >> 40 & 1 else []  # that bit says: invented for want of a card
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12] if any(known) else ""


def boot_identity() -> str:
    """Changes when the machine is started again; the same inside containers."""
    text = _text(Path("/proc/sys/kernel/random/boot_id"))
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ""


@functools.cache
def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def variables(declared: Mapping[str, str]) -> dict[str, str]:
    """What a phase declares is named even off the list, but then without its value."""
    merged = os.environ | dict(declared)
    found = {name: merged[name] for name in ALLOWED_VARIABLES if name in merged}
    hidden = {name: "(declared by the phase; value not recorded)" for name in declared if name not in found}
    return found | hidden


def circumstances() -> dict[str, Any]:
    """Load and clocks when the run began: covariates, never a reason to drop a run afterwards."""
    import psutil

    found: dict[str, Any] = {"time": utc_now()}
    with contextlib.suppress(OSError, AttributeError):
        found["load"] = [round(value, 2) for value in os.getloadavg()]
    found["available_bytes"] = int(psutil.virtual_memory().available)
    governor = _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    if governor:
        found["governor"] = governor
    throttled = _text(Path("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"))
    if throttled:
        found["throttle_count"] = int(throttled)
    return found


def limits() -> dict[str, Any]:
    """What a container or a scheduler leaves of the machine."""
    found: dict[str, Any] = {}
    if hasattr(os, "sched_getaffinity"):
        found["usable_cpus"] = len(os.sched_getaffinity(0))
    for name, *paths in (
        ("cpu_quota", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        ("memory_limit", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ):
        text = next(filter(None, (_text(Path(path)) for path in paths)), "")
        if text:
            found[name] = text
    return found


def git_state(directory: Path) -> dict[str, Any]:
    """Revision and difference of the working tree; {} outside a repository. `diff` goes into a file of its
    own.
    """
    revision = _git(directory, "rev-parse", "HEAD").strip()
    if not revision:
        return {}
    diff = _git(directory, "diff", "--no-ext-diff", "--no-textconv", "HEAD")
    untracked = _git(directory, "ls-files", "--others", "--exclude-standard").splitlines()
    return {
        "revision": revision,
        "dirty": bool(diff),
        "diff_sha256": hashlib.sha256(diff.encode("utf-8", "replace")).hexdigest() if diff else "",
        "untracked": len(untracked),
        "diff": diff[:LARGEST_DIFF],
    }


def masked(arguments: Sequence[str]) -> list[str]:
    """The command as it may be written down: the value of anything that calls itself a secret is left out."""
    found: list[str] = []
    hide = False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            found.append("(not recorded)")
        elif word.startswith("-") and _SECRET.search(name) and equals:
            found.append(f"{name}=(not recorded)")
        else:
            found.append(word)
        hide = word.startswith("-") and bool(_SECRET.search(name)) and not equals
    return found


def _git(directory: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, timeout=30, stdin=subprocess.DEVNULL,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "replace") if answer.returncode == 0 else ""


def _cpu_model() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith(("model name", "Hardware")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caches(folder: Path) -> dict[str, str]:
    """{'L1 Data': '32K', ...} of the first core."""
    found: dict[str, str] = {}
    for entry in sorted(folder.glob("index*")):
        level, kind, size = (_text(entry / name) for name in ("level", "type", "size"))
        if level and size:
            found[f"L{level} {kind}"] = size
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
