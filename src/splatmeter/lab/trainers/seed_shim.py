"""Starts a script whose seeds cannot be set from outside, with its seeds shifted.

    python seed_shim.py SEED train.py ARGUMENTS...

The original's train.py calls `random.seed(0)`, `numpy.random.seed(0)` and `torch.manual_seed(0)` itself, so
all its runs draw the same views in the same order. Here these three add SEED to what they are given: the
script itself stays as it is, seed 0 is exactly the script, and other seeds are other draws of the same
program. Generators that a script makes by hand (`random.Random(0)`, `numpy.random.default_rng(0)`) are not
touched. It is run by the trainer's own Python and needs nothing but that.
"""

from __future__ import annotations

import importlib
import random
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PLACES = (("numpy.random", "seed"), ("torch", "manual_seed"), ("torch.random", "manual_seed"))


def shifted(plant: Callable[..., Any], shift: int) -> Callable[..., Any]:
    """`plant` with whole numbers moved by `shift`; anything else (None, bytes, tensors) as it is."""

    def planted(seed: Any = None, *rest: Any, **named: Any) -> Any:
        whole = isinstance(seed, int) and not isinstance(seed, bool)
        return plant((seed + shift) % 2**32 if whole else seed, *rest, **named)

    return planted


def shift_seeds(shift: int) -> None:
    """In this process, for every module that asks later."""
    random.seed = shifted(random.seed, shift)
    originals = {}
    for module_name, name in _PLACES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue  # a trainer without torch or numpy has no seeds there
        originals[module_name, name] = getattr(module, name)
    for (module_name, name), plant in originals.items():  # all are read first: two names may be one function
        setattr(sys.modules[module_name], name, shifted(plant, shift))


def main() -> None:
    if len(sys.argv) < 3 or not sys.argv[1].lstrip("-").isdigit():
        sys.exit("Usage: seed_shim.py SEED SCRIPT [ARGUMENTS...]: SEED is a whole number.")
    shift, script = int(sys.argv[1]), sys.argv[2]
    if not Path(script).is_file():
        sys.exit(f"The script {script} is not there: start the shim where the script would be started.")
    if shift:
        shift_seeds(shift)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(script).resolve().parent)  # as Python does for a script it starts itself
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
