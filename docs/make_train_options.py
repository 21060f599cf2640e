"""Writes the options of `api.train` from TrainConfig: `python docs/make_train_options.py`; a test compares.

An editor completes only what stands in the source. So that nobody keeps the list twice, the second one is
made: names, types and explanations are TrainConfig's, spelled for Python. Where the command line wants one
exact type, Python may pass what becomes it: text for a path, a list for a tuple.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "splatmeter"
TARGET = SOURCE / "api" / "options.py"
LEFT_OUT = {
    "source_path": "is the first argument",
    "model_path": "is the second argument",
    "experiment_name": "only names a folder, which is the second argument",
    "ray_jitter": "is refused in any case",
    "resample_gt_image": "is refused in any case",
}
WIDER = {"Path": "str | Path", "tuple[int, ...]": "Sequence[int]"}
"""What Python may pass instead of the type that a setting has in the end."""

HEAD = '''"""The options of `api.train`, made from TrainConfig by `python docs/make_train_options.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splatmeter.densify.strategies import StrategyName
from splatmeter.evaluate.exposure_fit import ExposureProtocol


class TrainOptions(TypedDict, total=False):
    """Everything that a training can be told, by keyword; what is left out has its default.

    Several runs can share options: ``shared: TrainOptions = {"eval": True, "iterations": 7000}``, and then
    ``api.train(scene, output, **shared)``.
    """
'''


def options() -> list[tuple[str, str, str, str]]:
    """Name, type, default and explanation of every setting, as TrainConfig's source has them."""
    tree = ast.parse((SOURCE / "train" / "config.py").read_text("utf-8"))
    config = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "TrainConfig"
    )
    found: list[tuple[str, str, str, str]] = []
    for field, after in zip(config.body, config.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert explained and field.value is not None, f"{field.target.id} is not explained"
            text = str(after.value.value)
            found.append((field.target.id, ast.unparse(field.annotation), ast.unparse(field.value), text))
    return found


def explanation(default: str, text: str) -> str:
    """As a docstring below the option: its options spelled for Python, its default at the end."""
    spelled = re.sub(r"--([a-z0-9-]+?)(-th)?(?![a-z0-9-])", lambda m: _spelled(m[1]) + (m[2] or ""), text)
    told = spelled if default == "None" else f"{spelled.rstrip('.')} (default: {_value(default)})."
    wrapped = textwrap.wrap(f'"""{told}"""', 110 - 4)
    return textwrap.indent("\n".join(wrapped), "    ")


def _spelled(option: str) -> str:
    return option.replace("-", "_")


def _value(default: str) -> str:
    from splatmeter.train.schedule import HARMONICS_INTERVAL

    return {"HARMONICS_INTERVAL": str(HARMONICS_INTERVAL)}.get(default, default)


def text() -> str:
    lines = [HEAD]
    for name, kind, default, explained in options():
        if name in LEFT_OUT:
            continue
        for narrow, wide in WIDER.items():
            kind = kind.replace(narrow, wide)
        lines += [f"    {name}: {kind}".replace("'", '"'), explanation(default, explained)]
    return "\n".join(lines) + "\n"


def main() -> None:
    TARGET.write_text(text(), "utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
