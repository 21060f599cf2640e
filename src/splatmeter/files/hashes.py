"""Files known by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

_BLOCK_BYTES = 2**20


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
