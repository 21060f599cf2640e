"""How a run was set up, by its own record or by the original's."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError
from splatmeter.train.config import TrainConfig, from_json


def run_config(folder: Path) -> TrainConfig | None:
    """From config.json, else from the original's cfg_args; None where there is neither."""
    try:
        if (folder / "config.json").exists():
            record = json.loads((folder / "config.json").read_text("utf-8"))
        elif (folder / "cfg_args").exists():
            record = parse_namespace((folder / "cfg_args").read_text("utf-8"))
        else:
            return None
        if not isinstance(record, dict):
            raise ValueError("not a set of settings")
        return from_json({name: value for name, value in record.items() if name not in _UNSUPPORTED})
    except (OSError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as problem:
        raise InputError(f"The settings of the run {folder} cannot be read ({problem}).") from None


_UNSUPPORTED = ("ray_jitter", "resample_gt_image")  # training only; no reason to refuse a finished model


def parse_namespace(text: str) -> Mapping[str, Any]:
    """`Namespace(a=1, b='x')` -> its literal values; nothing in it is ever executed."""
    tree = ast.parse(text.strip(), mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError("cfg_args is not a Namespace")
    found: dict[str, Any] = {}
    for keyword in tree.keywords:
        if keyword.arg and isinstance(keyword.value, (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple)):
            found[keyword.arg] = ast.literal_eval(keyword.value)
    return found
