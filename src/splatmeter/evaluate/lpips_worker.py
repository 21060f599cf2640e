"""`python -m splatmeter.evaluate.lpips_worker`: LPIPS in a process of its own, one JSON line in, one out.

First line in: {"network", "backbone", "heads", "convention"}; answer {"ready": true} or {"error": "..."}.
Then {"render": path, "photo": path} -> {"lpips": number, "peak_memory_bytes": number} until the input ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatmeter.errors import SplatmeterError
from splatmeter.process_memory import peak_bytes


def main() -> int:
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not look like an answer
    distance = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if distance is None:
                distance = _network(request)
                answer: dict[str, Any] = {"ready": True}
            else:
                value = distance(_picture(request["render"]), _picture(request["photo"]))
                answer = {"lpips": value, "peak_memory_bytes": peak_bytes()}
        except (
            SplatmeterError,
            ImportError,
            OSError,
            ValueError,
            KeyError,
            RuntimeError,
            MemoryError,
        ) as problem:
            answer = {"error": str(problem) or type(problem).__name__, "kind": type(problem).__name__}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def _network(request: dict[str, Any]) -> Any:
    from splatmeter.evaluate.lpips_network import distance_function
    from splatmeter.evaluate.lpips_weights import Weights

    weights = Weights(request["network"], Path(request["backbone"]), Path(request["heads"]))
    return distance_function(weights, request["convention"])


def _picture(path: str) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).transpose(2, 0, 1)  # [3, H, W]


if __name__ == "__main__":
    sys.exit(main())
