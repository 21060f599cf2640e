from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from splatmeter.errors import CheckpointError, MissingFile
from splatmeter.train import container

ARRAYS = {
    "geometry": np.arange(6, dtype=np.float32).reshape(2, 3),
    "nothing": np.zeros((0, 4), np.float32),
    "drift": np.array([1 / 3, np.nan, -0.0]),
}
STATE = {"step": 7, "huge": 2**127 + 1, "third": 1 / 3, "name": "Überblick"}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    container.write(tmp_path / "chkpnt7.safetensors", ARRAYS, STATE)
    return tmp_path / "chkpnt7.safetensors"


def test_arrays_and_state_come_back_bit_for_bit(written: Path) -> None:
    arrays, state = container.read(written)
    assert state == STATE
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].tobytes() == array.tobytes() and arrays[name].shape == array.shape


def test_the_file_is_a_safetensors_file(written: Path) -> None:
    assert np.array_equal(load_file(written)["geometry"], ARRAYS["geometry"])


def test_the_reported_sha256_is_the_files(tmp_path: Path) -> None:
    import hashlib

    reported = container.write(tmp_path / "a", ARRAYS, STATE)
    assert reported == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()


def test_a_file_cut_off_anywhere_is_refused(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"cut off|not a checkpoint"):
            container.read(cut)


def test_a_changed_byte_anywhere_is_noticed(written: Path, tmp_path: Path) -> None:
    whole = bytearray(written.read_bytes())
    changed = tmp_path / "changed"
    padding = whole.rindex(b"}") + 1  # spaces after the header mean nothing
    begin = 8 + int.from_bytes(whole[:8], "little")
    for position in (*range(padding), *range(begin, len(whole))):
        whole[position] ^= 1
        changed.write_bytes(whole)
        whole[position] ^= 1
        with pytest.raises(CheckpointError):
            container.read(changed)


def test_extra_bytes_are_noticed(written: Path) -> None:
    written.write_bytes(written.read_bytes() + b"\0")
    with pytest.raises(CheckpointError):
        container.read(written)


def test_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "VERSION", 2)
    container.write(tmp_path / "newer", ARRAYS, STATE)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="version 2; this splatmeter reads version 1"):
        container.read(tmp_path / "newer")


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "other").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    with pytest.raises(CheckpointError, match="not a checkpoint of splatmeter"):
        container.read(tmp_path / "other")


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\0" * 8, b"\x02" + b"\0" * 7 + b"[]"])
def test_rubbish_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rubbish").write_bytes(content)
    with pytest.raises(CheckpointError):
        container.read(tmp_path / "rubbish")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="nowhere"):
        container.read(tmp_path / "nowhere")


def test_a_failed_write_keeps_the_old_file(written: Path) -> None:
    before = written.read_bytes()

    class Broken(dict):
        def values(self):  # type: ignore[no-untyped-def]
            yield ARRAYS["geometry"]
            raise OSError(28, "No space left on device")

    with pytest.raises(Exception, match="No space left"):
        container.write(written, Broken(ARRAYS), STATE)
    assert written.read_bytes() == before
    assert [path.name for path in written.parent.iterdir()] == [written.name]
