"""Files are whole or not there, and known by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from splatmeter.errors import OutputError
from splatmeter.files.atomic import replacing, write_text
from splatmeter.files.hashes import sha256_of


def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as stream:
        stream.write(b"ne")
        raise RuntimeError("stopped")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("durable", [True, False])
def test_the_new_content_takes_the_place_of_the_old(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "folder" / "a.txt"
    for text in ("old", "new: \N{LATIN SMALL LETTER A WITH DIAERESIS}"):
        write_text(path, text, durable)
    assert path.read_text("utf-8") == text and list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot write .*file/a.*choose another place\."):
        write_text(tmp_path / "file" / "a", "")


def test_names_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "photo\udcff.jpg")
    assert (tmp_path / "a").read_bytes() == rb"photo\udcff.jpg"


def test_a_files_hash_is_that_of_all_its_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8200  # two blocks and a little
    (tmp_path / "a").write_bytes(content)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(content).hexdigest()
