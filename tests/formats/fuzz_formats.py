"""Throws damaged model files at the readers:  python tests/formats/fuzz_formats.py 20000 [seed]

Each input must give a Model or an error in one sentence, and never a table larger than its size allows.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from functools import cache
from pathlib import Path

from format_models import sog_parts, some_table

from splatmeter.errors import InputError
from splatmeter.formats.reading import FEW
from splatmeter.formats.registry import WRITTEN, read_model, write_model
from splatmeter.gaussians.marks import MIP

NAMES = {
    "compressed": "m.ply",
    "spz": "m.spz",
    "spz3": "m.spz",
    "splat": "m.splat",
    "gltf": "m.glb",
    "sog": "m.sog",
}
NUMBERS = (
    0,
    -1,
    1,
    7,
    2**31,
    2**32 - 1,
    10**18,
    1e400,
    -1e-9,
    True,
    None,
    "x",
    [],
    {},
    [1, 2],
    "../../etc/passwd",
)


@cache
def sound(form: str, count: int, degree: int) -> bytes:
    if form == "sog":
        return _zipped(sog_parts(some_table(max(count, 1), degree), degree))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAMES[form]
        write_model(path, form, some_table(max(count, 1), degree), degree, MIP)
        return path.read_bytes()


def damaged(form: str, generator: random.Random) -> bytes:
    content = sound(form, generator.choice((1, 5, 260)), generator.choice((0, 1, 3)))
    way = generator.randrange(3)
    if way == 0 and form == "spz3":
        content = gzip.compress(_scratched(generator, gzip.decompress(content)), 1)
    elif way == 0 and form == "gltf":
        content = _other_json(generator, content)
    elif way == 0 and form == "sog":
        content = _other_parts(generator, content)
    else:
        content = _scratched(generator, content)
    return content


def _scratched(generator: random.Random, content: bytes) -> bytes:
    for _ in range(generator.choice((1, 1, 2, 4))):
        where = generator.randrange(min(len(content) + 1, generator.choice((64, 2000, 10**9))))
        noise = generator.randbytes(generator.randrange(1, 9))
        choice = generator.randrange(4)
        if choice == 0:
            content = content[:where]
        elif choice == 1:
            content = content[:where] + noise + content[where + len(noise) :]
        elif choice == 2:
            content = content[:where] + noise + content[where:]
        else:
            content = (
                content[:where]
                + struct.pack("<I", generator.choice((0, 2**31, 2**32 - 1)))
                + content[where + 4 :]
            )
    return content


def _other_json(generator: random.Random, content: bytes) -> bytes:
    length = struct.unpack_from("<I", content, 12)[0]
    record = json.loads(content[20 : 20 + length])
    for _ in range(generator.choice((1, 2))):
        _scribble(generator, record)
    text = json.dumps(record).encode()
    return content[:12] + struct.pack("<I4s", len(text), b"JSON") + text + content[20 + length :]


def _other_parts(generator: random.Random, content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    if generator.random() < 0.7:
        record = json.loads(parts["meta.json"])
        _scribble(generator, record)
        parts["meta.json"] = json.dumps(record).encode()
    else:
        name = generator.choice(sorted(parts))
        parts[name] = _scratched(generator, parts[name]) if generator.random() < 0.8 else b""
    return _zipped(parts)


def _zipped(parts: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return content.getvalue()


def _scribble(generator: random.Random, record: object) -> None:
    """One value somewhere in it becomes another, or goes."""
    while isinstance(record, (dict, list)) and record:
        keys = sorted(record) if isinstance(record, dict) else range(len(record))
        key = generator.choice(list(keys))
        inner = record[key]  # type: ignore[index]
        if isinstance(inner, (dict, list)) and inner and generator.random() < 0.8:
            record = inner
        elif generator.random() < 0.2:
            del record[key]  # type: ignore[arg-type]
            return
        else:
            record[key] = generator.choice(NUMBERS)  # type: ignore[index]
            return


def outcome(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    try:
        model = read_model(path)
    except InputError as problem:
        assert "\n" not in str(problem) and len(str(problem)) < 400 + 3 * len(str(path)), problem
        return "refused"
    assert model.table.count <= FEW + len(content), "a table larger than its file allows"
    assert 0 <= model.nonfinite <= model.table.count and 0 <= model.sh_degree <= 3
    model.settings()
    return "read"


def main(count: int, seed: int) -> None:
    generator = random.Random(seed)
    tally = {"read": 0, "refused": 0}
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            form = generator.choice((*WRITTEN, "sog"))
            content = damaged(form, generator)
            try:
                tally[outcome(Path(folder) / NAMES[form], content)] += 1
            except BaseException:
                Path("fuzzed_input").write_bytes(content)
                print(f"input {number} of seed {seed}, {form}, {zlib.crc32(content):08x}", file=sys.stderr)
                raise
    seconds = time.perf_counter() - begin
    print(f"{count} inputs in {seconds:.0f} s: {tally['read']} read, {tally['refused']} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
