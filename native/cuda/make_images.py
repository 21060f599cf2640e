"""Kernels to images with the pinned compiler, NVRTC 12.8 (pip install 'nvidia-cuda-nvrtc-cu12==12.8.*').

    python native/cuda/make_images.py            # PTX into src/splatmeter/backends/cuda/images, which is kept
    python native/cuda/make_images.py --check    # fails if the kept PTX is not what the source gives
    python native/cuda/make_images.py --cubins OUT  # for wheels: one for each architecture, not kept

PTX carries the version of its compiler: 12.8 writes what every driver takes that knows an RTX 50 (R570 on).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNELS = HERE / "kernels"
IMAGES = HERE.parents[1] / "src" / "splatmeter" / "backends" / "cuda" / "images"
PTX = (75, 80)
"""80 has redux.sync, which makes the blending kernels' branches uniform; 75 is the oldest card we take."""
CUBINS = (75, 86, 89, 90, 120)
VERSION = (12, 8)
FLAGS = ("--std=c++17", "--use_fast_math")
TOOL_MISSING = 77


class CompilerMissing(Exception):
    pass


def compiler() -> ctypes.CDLL:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for path in Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.12"):
            library = ctypes.CDLL(str(path))
            major, minor = ctypes.c_int(), ctypes.c_int()
            library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
            if (major.value, minor.value) == VERSION:
                return library
    raise CompilerMissing("NVRTC 12.8 is missing: pip install 'nvidia-cuda-nvrtc-cu12==12.8.*'")


def compiled(
    library: ctypes.CDLL, architecture: str, options: tuple[str, ...] = FLAGS, log: list[str] | None = None
) -> bytes:
    """PTX for 'compute_75', a cubin for 'sm_75'; what the compiler says goes into `log`."""
    program = ctypes.c_void_p()
    source = b'#include "all.cu"\n'
    _must(library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None))
    flags = [*options, f"--gpu-architecture={architecture}", f"--include-path={KERNELS}"]
    pointers = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    if library.nvrtcCompileProgram(program, len(flags), pointers):
        raise SystemExit(_text(library, program, "ProgramLog").decode())
    if log is not None:
        log.append(_text(library, program, "ProgramLog").decode())
    return _text(library, program, "PTX" if architecture.startswith("compute") else "CUBIN")


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _must(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _must(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw.rstrip(b"\0") if what != "CUBIN" else buffer.raw


def _must(code: int) -> None:
    if code:
        raise SystemExit(f"NVRTC failed with {code}")


def ptx(library: ctypes.CDLL, capability: int) -> str:
    """Without comments, which name the build of the compiler, and with registers numbered as they come: the
    compiler's own numbers depend on where its memory lies."""
    lines = compiled(library, f"compute_{capability}").decode("ascii").splitlines()
    kept = [line.split("//")[0].rstrip() for line in lines]
    text = "\n".join(line for line in kept if line) + "\n"
    return "".join(_renumbered(kernel) for kernel in re.split(r"(?=\.visible \.entry )", text))


def _renumbered(kernel: str) -> str:
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()

    def name_of(found: re.Match[str]) -> str:
        if found.group(0) not in names:
            counts[found.group(1)] += 1
            names[found.group(0)] = f"%{found.group(1)}{counts[found.group(1)]}"
        return names[found.group(0)]

    return re.sub(r"%(rd|rs|fd|f|p|r)\d+\b", name_of, kernel)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cubins", type=Path)
    arguments = parser.parse_args()
    try:
        library = compiler()
    except CompilerMissing as problem:
        print(problem, file=sys.stderr)
        return TOOL_MISSING
    if arguments.cubins:
        arguments.cubins.mkdir(parents=True, exist_ok=True)
        for capability in CUBINS:
            (arguments.cubins / f"sm_{capability}.cubin").write_bytes(compiled(library, f"sm_{capability}"))
        return 0
    differs = []
    for capability in PTX:
        path, text = IMAGES / f"compute_{capability}.ptx", ptx(library, capability)
        if arguments.check:
            if not path.exists() or path.read_text("ascii") != text:
                differs.append(path.name)
        else:
            IMAGES.mkdir(exist_ok=True)
            path.write_text(text, "ascii")
    for name in differs:
        print(f"{name} is not what the source gives: run python native/cuda/make_images.py", file=sys.stderr)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
