"""The one reader of PLY headers and rows, which points and models share."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from splatmeter.errors import InputError
from splatmeter.files.ply_header import header_bytes, read_header
from splatmeter.files.ply_rows import ROWS, all_rows

WHERE = Path("some.ply")
ADVICE = "Make it again."


def rows_of(data: bytes, name: str = "b") -> np.ndarray:
    stream = io.BytesIO(data)
    return all_rows(stream, WHERE, read_header(stream, WHERE, ADVICE), name, len(data), ADVICE)


def test_what_is_written_is_read_with_its_comments_and_the_elements_before() -> None:
    elements = {"a": (2, [("uchar", "u")]), "b": (3, [("float", "x"), ("ushort", "y")])}
    written = np.array([(0.5, 1), (-2, 65535), (1e30, 0)], [("x", "<f4"), ("y", "<u2")])
    data = header_bytes(elements, ["two\n lines"]) + b"\x07\x08" + written.tobytes()
    assert read_header(io.BytesIO(data), WHERE, ADVICE).comments == ("two lines",)
    np.testing.assert_array_equal(rows_of(data), written)
    assert rows_of(data, "a")["u"].tolist() == [7, 8]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [b"", b" "])
def test_every_kind_of_line_end_is_understood(newline: bytes, last: bytes) -> None:
    lines = [b"ply", b"format binary_big_endian 1.0", b"element b 1", b"property uchar u"]
    data = newline.join([*lines, b"end_header" + last]) + newline + b"\n"
    assert rows_of(data)["u"].tolist() == [10]  # a line feed that is data


def test_line_ends_may_change_within_a_header() -> None:
    data = b"ply\nformat ascii 1.0\r\nelement b 2\r\nproperty uchar u\r\nend_header\r\n3\r\n4\r\n"
    assert rows_of(data)["u"].tolist() == [3, 4]


def test_many_rows_come_whole() -> None:
    values = np.arange(2 * ROWS + 5, dtype="<u4")
    assert np.array_equal(
        rows_of(header_bytes({"b": (len(values), [("uint", "u")])}) + values.tobytes())["u"], values
    )
    text = f"ply\nformat ascii 1.0\nelement b {len(values)}\nproperty uint u\nend_header\n"
    assert np.array_equal(rows_of(text.encode() + b" ".join(b"%d" % v for v in values))["u"], values)


def test_an_empty_element_has_no_rows() -> None:
    assert len(rows_of(header_bytes({"b": (0, [("float", "x")])}))) == 0


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"PK\x03\x04", "zip archive"),
        (b"plymouth\n", "does not begin with 'ply'"),
        (b"ply\nformat ascii 1.0\nelement b 1\n", "no end"),
        (b"ply\nelement b 1\nproperty float x\nend_header\n1", "does not say in which format"),
        (b"ply\nformat ascii 1.0\nfoo\nend_header\n", "nobody can understand: 'foo'"),
        (b"ply\nformat ascii 1.0\nelement b 99\nproperty float x\nend_header\n1 2", "promises 99 rows"),
        (b"ply\nformat ascii 1.0\nelement b 2\nproperty float x\nend_header\n1 zwei", "not a number"),
        (b"ply\nformat ascii 1.0\nelement b 1\nproperty list uchar int x\nend_header\n1", "list"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_and_advice(data: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        rows_of(data)
    assert str(caught.value).startswith("some.ply ") and str(caught.value).endswith(ADVICE)
