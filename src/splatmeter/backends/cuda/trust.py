"""Whether a card may be used: it must have passed its quick self-test, once per card, driver and kernels."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from splatmeter import __version__
from splatmeter.backend import Backend
from splatmeter.backends.cuda.card import images
from splatmeter.backends.cuda.selftest import checks
from splatmeter.errors import CardBroken

MARKS = "trusted-cards"


def marks(cache: Path) -> list[Path]:
    """Files that say which cards passed; without its file, a card is tested again."""
    folder = cache / MARKS
    if folder.is_symlink() or not folder.is_dir():
        return []
    named = [path for path in sorted(folder.iterdir()) if re.fullmatch(r"[0-9a-f]{32}", path.name)]
    return [path for path in named if _empty(path)]


def _empty(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size == 0


def require_trust(card: Backend, cpu: Backend, cache: Path) -> None:
    """CardBroken, naming the operation, where the card does not compute what the CPU does."""
    mark = cache / MARKS / _identity(card)
    if mark.exists():
        return
    for check in checks(card, cpu):
        if not check.passed:
            raise CardBroken(
                f"{card.facts.details['card']} ({card.facts.device}) failed its self-test: "
                f"{check.operation} is off by {check.error:.2g}, at most {check.bar:.2g} is right. "
                "Use --device cpu, and send what `splatmeter selftest` prints."
            )
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:
        pass  # then it is tested again next time


def _identity(card: Backend) -> str:
    digest = hashlib.sha256(f"{__version__}|{card.facts.arithmetic}|{card.facts.device}".encode())
    for capability, is_ptx, content in images():
        digest.update(f"{capability}{is_ptx}".encode() + content)
    digest.update(os.environ.get("SPLATMETER_LIBCUDA", "").encode())
    return digest.hexdigest()[:32]
