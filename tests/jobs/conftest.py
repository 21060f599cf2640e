"""A real SLURM of one node, started and ended here (one_node_slurm.py)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from one_node_slurm import one_node_slurm, why_not


@pytest.fixture(scope="session")
def slurm() -> Iterator[dict[str, str]]:
    """What the environment needs to reach it."""
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'splatmeter[cluster]'")
    if why_not():
        pytest.skip(why_not())
    with one_node_slurm() as variables:
        yield variables
