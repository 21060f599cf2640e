"""The text at the head of a PLY file, written, and read with suspicion: a file may be damaged, or made to do
damage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from splatmeter.errors import InputError

LONGEST_HEADER = 2**20
MOST_PROPERTIES = 4096

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": ""}
_FOREIGN = {b"\x1f\x8b": "a gzip stream (SPZ?)", b"NGSP": "an SPZ file", b"PK": "a zip archive (SOG?)"}
_FIRST_LINE = re.compile(rb"ply[ \t]*(\r\n|\n|\r)")
_LAST_LINE = {
    newline: re.compile(rb"[\r\n]end_header[ \t]*" + ending)
    for newline, ending in ((b"\r", rb"\r"), (b"\n", rb"\r?\n"), (b"\r\n", rb"\r?\n"))
}
"""By how the first line ends. After a lone carriage return, a line feed would be the data's first byte."""


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


def header_bytes(
    elements: Mapping[str, tuple[int, Sequence[tuple[str, str]]]], comments: Sequence[str] = ()
) -> bytes:
    """For a binary, little-endian file. Each element has a count, and properties by type and name."""
    lines = ["ply", "format binary_little_endian 1.0"]
    lines += ["comment " + " ".join(text.split()) for text in comments]
    for name, (count, properties) in elements.items():
        lines += [f"element {name} {count}", *(f"property {kind} {label}" for kind, label in properties)]
    return ("\n".join([*lines, "end_header"]) + "\n").encode("utf-8")


def read_header(stream: BinaryIO, path: Path, advice: str) -> Header:
    """InputError for whatever is not a PLY header of at most 1 MiB; `advice` says what to do then.

    The stream is left anywhere; `data_offset` says where the data begins.
    """
    try:
        text, offset = _header_text(stream)
        return _parse(text.decode("utf-8", "replace").replace("\r", "\n").split("\n")[1:], offset)
    except _NotReadable as problem:
        raise InputError(f"{path} {problem}. {advice}") from None


class _NotReadable(Exception):
    """The rest of a sentence that begins with the name of the file."""


def _header_text(stream: BinaryIO) -> tuple[bytes, int]:
    """Everything before the header's last line, and where the data begins."""
    start = stream.read(4096)
    for magic, guess in _FOREIGN.items():
        if start.startswith(magic):
            raise _NotReadable(f"is {guess}, not a PLY file")
    first = _FIRST_LINE.match(start)
    if first is None:
        raise _NotReadable("is not a PLY file: it does not begin with 'ply'")
    last = _LAST_LINE[first[1]]
    while (end := last.search(start)) is None:
        block = stream.read(65536)
        if not block or len(start) > LONGEST_HEADER:
            raise _NotReadable("is cut off or damaged: its header has no end (no 'end_header' line)")
        start += block
    if end.start() > LONGEST_HEADER:
        raise _NotReadable(f"has a header that is longer than {LONGEST_HEADER} bytes")
    return start[: end.start()], end.end()


def _parse(lines: list[str], data_offset: int) -> Header:
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
            elements.append(Element(words[1], _count(words[1], words[2]), []))
        elif keyword == "property" and elements and len(words) >= 3:
            _add_property(elements[-1], words)
        else:
            raise _NotReadable(f"has a header line that nobody can understand: {line[:60]!r}")
    if order is None:
        raise _NotReadable("does not say in which format it is (ascii or binary)")
    return Header(order, tuple(elements), tuple(comments), data_offset)


def _count(element: str, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 16):
        raise _NotReadable(f"says that the number of its elements {element[:40]!r} is {word[:40]!r}")
    return int(word)


def _add_property(element: Element, words: list[str]) -> None:
    if words[1] == "list":
        element.has_list = True
        return
    if words[1] not in _TYPES or len(words) != 3:
        raise _NotReadable(f"has a property of an unknown kind: {' '.join(words[1:])[:60]!r}")
    if len(element.properties) >= MOST_PROPERTIES:
        raise _NotReadable(f"has more than {MOST_PROPERTIES} properties")
    if any(name == words[2] for name, _ in element.properties):
        raise _NotReadable(f"has the property {words[2][:40]!r} twice")
    element.properties.append((words[2], _TYPES[words[1]]))
