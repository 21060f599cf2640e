"""The text at the head of a PLY file, read with suspicion: it may be damaged, or made to do damage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from splatmeter.errors import InputError

LONGEST_HEADER = 2**20
MOST_PROPERTIES = 4096

SUPPORTED = "splatmeter reads PLY files of 3DGS and Mip-Splatting (plain or fused, SH degree 0 to 3)"

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": ""}
_FOREIGN = {b"\x1f\x8b": "a gzip stream (SPZ?)", b"NGSP": "an SPZ file", b"PK": "a zip archive (SOG?)"}


@dataclass(slots=True)
class Element:
    name: str
    count: int
    properties: list[tuple[str, str]]  # (name, NumPy type without byte order)
    has_list: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    order: str  # "<", ">" or "" for text
    elements: tuple[Element, ...]
    comments: tuple[str, ...]
    data_offset: int

    def before(self, name: str) -> tuple[list[Element], Element | None]:
        """The elements whose data precede the named one, and that one."""
        for index, element in enumerate(self.elements):
            if element.name == name:
                return list(self.elements[:index]), element
        return list(self.elements), None

    def row_type(self, element: Element) -> np.dtype:
        return np.dtype([(name, self.order + kind) for name, kind in element.properties])


def read_header(stream: BinaryIO, path: Path) -> Header:
    """InputError for whatever is not a PLY header of at most 1 MiB; the stream stays behind it."""
    start = stream.read(4096)
    for magic, guess in _FOREIGN.items():
        if start.startswith(magic):
            raise InputError(f"{path} is {guess}, not a PLY. {SUPPORTED}; convert it first.")
    newline = next((end for end in (b"\r\n", b"\n", b"\r") if start.startswith(b"ply" + end)), None)
    if newline is None:
        raise InputError(f"{path} is not a PLY file (it does not begin with 'ply'). {SUPPORTED}.")
    marker = newline + b"end_header" + newline
    while marker not in start:
        block = stream.read(65536)
        if not block or len(start) > LONGEST_HEADER:
            raise InputError(
                f"{path}: the header has no end (no 'end_header' line); the file is cut off or damaged."
            )
        start += block
    text, _, _ = start.partition(marker)
    if len(text) > LONGEST_HEADER:
        raise InputError(f"{path}: the header is longer than {LONGEST_HEADER} bytes.")
    lines = text.decode("utf-8", "replace").replace("\r", "\n").split("\n")[1:]
    return _parse(lines, len(text) + len(marker), path)


def _parse(lines: list[str], data_offset: int, path: Path) -> Header:
    order: str | None = None
    elements: list[Element] = []
    comments: list[str] = []
    for line in lines:
        words = line.split()
        keyword = words[0] if words else "comment"
        if keyword in ("comment", "obj_info"):
            comments += [line.strip()[len(keyword) :].strip()] if words else []
        elif keyword == "format" and len(words) >= 2 and words[1] in _ORDERS:
            order = _ORDERS[words[1]]
        elif keyword == "element" and len(words) == 3:
            elements.append(Element(words[1], _count(words[2], path), []))
        elif keyword == "property" and elements and len(words) >= 3:
            _add_property(elements[-1], words, path)
        else:
            raise InputError(f"{path}: cannot understand the header line {line[:60]!r}.")
    if order is None:
        raise InputError(f"{path}: the header does not tell its format (ascii or binary).")
    return Header(order, tuple(elements), tuple(comments), data_offset)


def _count(word: str, path: Path) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 16):
        raise InputError(f"{path}: {word[:40]!r} is not a number of elements.")
    return int(word)


def _add_property(element: Element, words: list[str], path: Path) -> None:
    if words[1] == "list":
        element.has_list = True
        return
    if words[1] not in _TYPES or len(words) != 3:
        raise InputError(f"{path}: unknown kind of property {' '.join(words[1:])[:60]!r}.")
    if len(element.properties) >= MOST_PROPERTIES:
        raise InputError(f"{path}: more than {MOST_PROPERTIES} properties; this is no model of Gaussians.")
    if any(name == words[2] for name, _ in element.properties):
        raise InputError(f"{path}: property {words[2][:40]!r} appears twice.")
    element.properties.append((words[2], _TYPES[words[1]]))
