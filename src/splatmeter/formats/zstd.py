"""zstd, of Python itself where it has one (3.14), else of the package zstandard."""

from __future__ import annotations

import importlib
import io
from typing import Any

from splatmeter.errors import MissingExtra

LEVEL = 12  # what the SPZ library takes


def compress(data: bytes) -> bytes:
    module, own = _module()
    return module.compress(data, level=LEVEL) if own else module.ZstdCompressor(level=LEVEL).compress(data)


def decompress(data: bytes, size: int) -> bytes:
    """Exactly `size` bytes, never more in memory; ValueError for anything else."""
    module, own = _module()
    try:
        if own:
            decoder = module.ZstdDecompressor()
            found = decoder.decompress(data, max_length=size + 1)
            ended = decoder.eof or len(found) > size
        else:
            found = module.ZstdDecompressor().stream_reader(io.BytesIO(data)).read(size + 1)
            ended = True
    except module.ZstdError as problem:
        raise ValueError(f"zstd: {problem}") from None
    if len(found) != size or not ended:
        raise ValueError(f"a stream holds {len(found)} bytes, not {size}")
    return found


def _module() -> tuple[Any, bool]:
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name), name == "compression.zstd"
        except ImportError:
            continue
    note = " (zstandard); version 3, --format spz3, is written and read without"
    raise MissingExtra("SPZ version 4", "spz", note)
