"""Our trainer made slower by a known share: --share 0.03, then the options of `splatmeter train`.

After every step a core is kept busy for that share of the step's own time.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from splatmeter.cli import main
from splatmeter.train.step import Step


def slowed(share: float) -> Any:
    original = Step.__call__

    def step(self: Step, state: Any) -> Any:
        begin = perf_counter()
        loss = original(self, state)
        end = perf_counter()
        while perf_counter() - end < share * (end - begin):
            pass
        return loss

    return step


if __name__ == "__main__":
    words = sys.argv[1:]
    place = words.index("--share")
    Step.__call__ = slowed(float(words[place + 1]))
    sys.exit(main.main(["train", *words[:place], *words[place + 2 :]]))
