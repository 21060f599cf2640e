"""The blocks of a session as its folder has them: attempts, done, sent back by a rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splatmeter.errors import OutputError
from splatmeter.lab.json_files import read_json
from splatmeter.lab.monitor.clocks import slowed_by_heat
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.result import RunResult

REPEATED = "repeated.json"
SUPERSEDED = "superseded.json"
"""Marks an attempt that was thought dead and ended after another took its place: kept, never counted."""
_BLOCK = re.compile(r"(\d+)\.(\d+)")
_MOST_AT_ONCE = 100


def claimed(folder: Path, block: int) -> int:
    """The number of a new attempt whose folder is now ours: whoever makes it first has it."""
    for _ in range(_MOST_AT_ONCE):
        attempt = 1 + max((a for b, a in attempts(folder) if b == block), default=0)
        made = folder / "blocks" / f"{block:03d}.{attempt}"
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            made.mkdir()
        except FileExistsError:
            continue
        except OSError as problem:
            raise OutputError(
                f"Cannot write {made}: {problem.strerror}; free some space or choose another place."
            ) from None
        return attempt
    raise OutputError(f"{folder} is written by others at the same time; end them and try again.")


def disturbance(protocol: Protocol, results: Sequence[RunResult]) -> str:
    """Why the rule that the protocol fixed beforehand asks for this block again; empty if it doesn't.

    It looks at covariates alone, never at the times that were measured.
    """
    if not protocol.most_foreign_cpu:
        return ""
    for result in results:
        arm = result.identity.arm
        share = result.foreign_cpu_share
        if share is not None and share > protocol.most_foreign_cpu:
            limit = f"{100 * protocol.most_foreign_cpu:.3g} %"
            return f"others used {100 * share:.1f} % of the machine during {arm}, more than {limit}"
        if result.throttled:
            return f"a core was throttled {result.throttled} times during {arm}"
        if result.card_used and (heat := slowed_by_heat(result.card)):
            return f"the card was slowed down during {arm}: {heat}"
    return ""


def repetitions(folder: Path, block: int | None = None) -> list[dict[str, Any]]:
    """Attempts that the rule sent back, of one block or of all."""
    found = [read_json(path) for path in sorted((folder / "blocks").glob(f"*/{REPEATED}"))]
    sound = [record for record in found if isinstance(record, dict) and "block" in record]
    return [record for record in sound if block is None or record["block"] == block]


def attempts(folder: Path) -> list[tuple[int, int]]:
    found = (_BLOCK.fullmatch(path.name) for path in (folder / "blocks").glob("*"))
    return [(int(match[1]), int(match[2])) for match in found if match]


def done_blocks(folder: Path) -> set[int]:
    """Blocks with a whole block.json: it is written when all arms have their results."""
    found: set[int] = set()
    for path in (folder / "blocks").glob("*/block.json"):
        record = read_json(path)
        if isinstance(record, dict) and isinstance(record.get("block"), int):
            found.add(record["block"])
    return found
