"""Throws damaged PLY files at the reader:  python tests/gaussians/fuzz_ply.py 300000 [seed]

Each input must give a Model or an InputError, and never a table larger than the file could hold.
"""

from __future__ import annotations

import io
import random
import sys
import time
from pathlib import Path

import numpy as np

from splatmeter.errors import InputError
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.gaussians.ply import property_names, read_stream

NAMES = ("x", "f_dc_0", "f_rest_0", "f_rest_44", "filter_3D", "packed_position", "opacity", "rot_3", "é", "")
KINDS = ("float", "double", "uchar", "int", "list uchar int", "half", "ushort", "")
COUNTS = ("0", "-1", "1", "7", "99999999999", "9" * 30, "1e9", "0x10", "nan", "²")
WORDS = ("nan", "inf", "-1e400", "1_0", "abc", "0x1p3", "1e-400", "", "\x00", "١")
ENDINGS = ("\n", "\r\n", "\r")
BYTES_PER_ROW = 4 * (16 + 48)
SMALLEST_ROW = 14


def well_formed(generator: random.Random) -> tuple[list[str], bytes, str]:
    """Header lines, data and line ending of a correct file with random layout."""
    degree, count = generator.randrange(4), generator.randrange(6)
    names = property_names(degree, with_filter=generator.random() < 0.5)
    assert len(names) >= 3 * coefficients_of(degree)
    if generator.random() < 0.5:
        generator.shuffle(names)
    form = generator.choice(("ascii", "binary_little_endian", "binary_big_endian"))
    kinds = [generator.choice(("float", "float", "float", "double", "uchar")) for _ in names]
    header = ["ply", f"format {form} 1.0", "comment kernel_size 0.1 compensated"]
    if generator.random() < 0.2:
        header += ["element camera 2", "property float near"]
    header += [f"element vertex {count}"]
    header += [f"property {kind} {name}" for kind, name in zip(kinds, names, strict=True)]
    if generator.random() < 0.2:
        header += ["element face 1", "property list uchar int vertex_indices"]
    cameras = 2 if "element camera 2" in header else 0
    ending = generator.choice(ENDINGS)
    if form == "ascii":
        rows = [[1.5]] * cameras + [[generator.randrange(9) for _ in names] for _ in range(count)]
        return header, ending.join(" ".join(map(str, row)) for row in rows).encode(), ending
    order = "<" if form == "binary_little_endian" else ">"
    codes = {"float": "f4", "double": "f8", "uchar": "u1"}
    row = np.dtype([(name, order + codes[kind]) for kind, name in zip(kinds, names, strict=True)])
    data = bytes(4 * cameras) + np.ones(count, row).tobytes()
    return header, data, ending


def damage_header(generator: random.Random, header: list[str]) -> None:
    index = generator.randrange(len(header))
    words = header[index].split(" ")
    choice = generator.randrange(7)
    if choice == 0:
        del header[index]
    elif choice == 1:
        header.insert(generator.randrange(len(header) + 1), header[index])
    elif choice == 2:
        header[index] = header[index][: generator.randrange(len(header[index]) + 1)]
    elif choice == 3:
        header[index] = " ".join([*words[:-1], generator.choice(NAMES + COUNTS)])
    elif choice == 4 and len(words) > 2:
        header[index] = " ".join([words[0], generator.choice(KINDS), *words[2:]])
    elif choice == 5:
        header[:] = [
            f"element vertex {generator.choice(COUNTS)}" if line.startswith("element vertex") else line
            for line in header
        ]
    else:
        other = generator.randrange(len(header))
        header[index], header[other] = header[other], header[index]


def damage_bytes(generator: random.Random, content: bytes) -> bytes:
    where = generator.randrange(len(content) + 1)
    choice = generator.randrange(5)
    if choice == 0:
        return content[:where]
    if choice == 1:
        return content[:where] + bytes([generator.randrange(256)]) + content[where + 1 :]
    if choice == 2:
        return content[:where] + generator.randbytes(generator.randrange(1, 9)) + content[where:]
    if choice == 3:
        return content[:where] + content[where + generator.randrange(1, 40) :]
    return content[:where] + generator.choice(WORDS).encode() + content[where:]


def damaged(generator: random.Random) -> bytes:
    header, data, ending = well_formed(generator)
    for _ in range(generator.choice((0, 0, 1, 1, 2, 3))):
        if header:
            damage_header(generator, header)
    content = ending.join([*header, "end_header", ""]).encode() + data
    for _ in range(generator.choice((0, 0, 1, 1, 2, 4))):
        content = damage_bytes(generator, content)
    return content


def outcome(content: bytes) -> str:
    try:
        model = read_stream(io.BytesIO(content), Path("fuzzed.ply"), len(content))
    except InputError as problem:
        assert "\n" not in str(problem), problem
        return "refused"
    assert model.table.count * SMALLEST_ROW <= len(content), "a table larger than its file"
    assert 0 <= model.nonfinite <= model.table.count
    model.settings()
    return "read"


def main(count: int, seed: int) -> None:
    generator = random.Random(seed)
    tally = {"read": 0, "refused": 0}
    begin = time.perf_counter()
    for number in range(count):
        content = damaged(generator)
        try:
            tally[outcome(content)] += 1
        except BaseException:
            print(f"input {number} of seed {seed}: {content!r}", file=sys.stderr)
            raise
    seconds = time.perf_counter() - begin
    print(f"{count} inputs in {seconds:.0f} s: {tally['read']} read, {tally['refused']} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
