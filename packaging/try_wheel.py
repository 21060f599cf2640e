"""Does an installed splatmeter work away from its repository? cibuildwheel runs this for every wheel:
`python packaging/try_wheel.py` makes a scene, trains, goes on from the checkpoint, judges and exports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
STEPS, MORE_STEPS = 30, 300
LEAST_GAIN = 1.0
"""dB on held-out views, from the first evaluation to the last; a run that learns gains several."""


def splatmeter(folder: Path, *words: str) -> str:
    print("splatmeter", *words, flush=True)
    cache = {**os.environ, "SPLATMETER_CACHE": str(folder / "cache")}
    cache.pop("PYTHONPATH", None)
    ended = subprocess.run(
        [sys.executable, "-m", "splatmeter", *words], cwd=folder, env=cache, capture_output=True, text=True
    )
    if ended.returncode:
        sys.exit(f"it left with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}")
    return ended.stdout


def refuse_the_repository(folder: Path) -> None:
    where = "import splatmeter; print(splatmeter.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=folder, capture_output=True, text=True, check=True
    )
    if Path(found.stdout.strip()).resolve().is_relative_to(REPOSITORY / "src"):
        sys.exit(f"{found.stdout.strip()} is the repository's, not an installed one")
    print(found.stdout.strip())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="try-wheel-") as name:
        folder = Path(name).resolve()
        refuse_the_repository(folder)
        print(splatmeter(folder, "doctor"))
        splatmeter(folder, "scene", "demo", "scene", "--quick")
        usual = ("train", "-s", "scene", "-m", "model", "--eval", "--densify-from-iter", "50")
        splatmeter(folder, *usual, "--iterations", str(STEPS), "--test-iterations", str(STEPS))
        before = psnr(splatmeter(folder, "eval", "-m", "model", "--json"))
        splatmeter(folder, *usual, "--resume", "--iterations", str(MORE_STEPS))
        after = psnr(splatmeter(folder, "eval", "-m", "model", "--json"))
        print(f"{before:.2f} dB after {STEPS} steps, {after:.2f} dB after {MORE_STEPS}")
        if not after > before + LEAST_GAIN:
            sys.exit("training did not make it better")
        for file, form in (("scene.html", "page"), ("scene.spz", "spz3"), ("scene.glb", "gltf")):
            splatmeter(folder, "export", "model", "-o", file, "--format", form)
            print(file, (folder / file).stat().st_size, "bytes")
        splatmeter(folder, "render", "-m", "model", "--path", "orbit", "--frames", "3", "-o", "turn.gif")


def psnr(printed: str) -> float:
    return json.loads(printed)["splits"]["test"]["1"]["means"]["psnr"]


if __name__ == "__main__":
    main()
