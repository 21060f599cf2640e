"""The rows of one element of a PLY file, binary of both byte orders or text, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.files.ply_header import Header

ROWS = 4096
"""Rows of a block: about 1 MiB of a model's file."""
TEXT_BLOCK = 2**22


def read_rows(
    stream: BinaryIO, path: Path, header: Header, name: str, size: int, advice: str
) -> Iterator[NDArray[np.void]]:
    """Values as the header declares them; in a text file all of them are float64.

    InputError where a stream of `size` bytes cannot hold what the header promises, before anything is
    allocated, and for everything else that is no row; `advice` is what to do then.
    """
    before, element = header.before(name)
    if element is None or any(one.has_list for one in (*before, element)):
        raise InputError(f"{path} has list properties in the element {name!r} or before it. {advice}")
    check_size(path, header, name, size, advice)
    blocks = _binary_blocks if header.order else _text_blocks
    return blocks(stream, path, header, name, advice)


def all_rows(
    stream: BinaryIO, path: Path, header: Header, name: str, size: int, advice: str
) -> NDArray[np.void]:
    """Those of `read_rows` as one array, for what is small or needed whole. # [N]"""
    blocks = list(read_rows(stream, path, header, name, size, advice))
    _, element = header.before(name)
    assert element is not None
    return np.concatenate(blocks) if blocks else np.empty(0, header.row_type(element))


def check_size(path: Path, header: Header, name: str, size: int, advice: str) -> None:
    """InputError where so many bytes cannot hold what the header promises."""
    before, element = header.before(name)
    assert element is not None
    needed = header.data_offset
    for one in (*before, element):
        if header.order:
            needed += one.count * header.row_type(one).itemsize
        else:
            needed += one.count * max(1, 2 * len(one.properties)) - 1  # one digit, one space
    if needed > size:
        raise InputError(
            f"{path} promises {element.count} rows of {name!r}, at least {needed} bytes with all before "
            f"them, but has {size}; it is cut off or damaged. {advice}"
        )


def _binary_blocks(
    stream: BinaryIO, path: Path, header: Header, name: str, advice: str
) -> Iterator[NDArray[np.void]]:
    before, element = header.before(name)
    assert element is not None
    row = header.row_type(element)
    stream.seek(header.data_offset + sum(one.count * header.row_type(one).itemsize for one in before))
    for start in range(0, element.count, ROWS):
        wanted = min(ROWS, element.count - start)
        data = stream.read(wanted * row.itemsize)
        if len(data) < wanted * row.itemsize:
            raise InputError(
                f"{path} ends in the middle of row {start + len(data) // row.itemsize} of {name!r}. {advice}"
            )
        yield np.frombuffer(data, row)


def _text_blocks(
    stream: BinaryIO, path: Path, header: Header, name: str, advice: str
) -> Iterator[NDArray[np.void]]:
    before, element = header.before(name)
    assert element is not None
    width = len(element.properties)
    row = np.dtype([(label, "f8") for label, _ in element.properties])
    skip = sum(one.count * len(one.properties) for one in before)
    left = element.count * width
    held: list[bytes] = []
    stream.seek(header.data_offset)
    for words in _words(stream, path, advice):
        skipped = min(skip, len(words))
        skip -= skipped
        held += words[skipped : skipped + left - len(held)]
        whole = len(held) // width * width
        try:
            yield np.array(held[:whole], np.float64).view(row)
        except ValueError:
            raise InputError(f"{path} holds a value that is not a number. {advice}") from None
        held, left = held[whole:], left - whole
        if not left:
            return
    if left:
        raise InputError(f"{path} ends before its {element.count} rows of {name!r} are complete. {advice}")


def _words(stream: BinaryIO, path: Path, advice: str) -> Iterator[list[bytes]]:
    """Blank-separated words in pieces of bounded size."""
    tail = b""
    while block := stream.read(TEXT_BLOCK):
        words = (tail + block).split()
        tail = words.pop() if words and not block[-1:].isspace() else b""
        if len(tail) > 1000:
            raise InputError(f"{path} holds a value that is not a number. {advice}")
        yield words
    yield [tail] if tail else []
