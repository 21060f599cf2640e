"""What 0.1.0 left, unpacked for each test that may change it."""

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kept_names import KEPT


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with tarfile.open(KEPT / "files.tar.xz") as archive:
        for member in archive.getmembers():
            place = tmp_path / member.name
            content = archive.extractfile(member)
            assert content is not None and place.is_relative_to(tmp_path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())
    return tmp_path


@pytest.fixture(scope="session")
def figures() -> Any:
    """What the files said to the version that wrote them."""
    return json.loads((KEPT / "figures.json").read_text("utf-8"))
