"""Look at the built-in garden from a place of your own, in colour and in depth, and take its table away.

python examples/own_camera.py [OUTPUT_FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from splatmeter import api

output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="splatmeter-"))
scene = api.load_scene(api.demo_scene(quick=True), eval=True)
api.train(scene.source, output / "model", eval=True, iterations=300).watch()
model = api.load_model(output / "model")

lens = scene.train[0].camera.intrinsics
camera = api.Camera.look_at((2.5, -2.5, 2.0), scene.focus, scene.up, **lens).resized(480)
picture = model.render(camera)
picture.save(output / "mine.png")
Image.fromarray(picture.depth_pixels).save(output / "depth.png")
print(f"covered: {picture.alpha.mean():.0%}, from {np.nanmin(picture.depth):.1f} away")

table = model.select(np.linalg.norm(model.means - scene.focus, axis=1) < 1.2)
table.save(output / "table.glb")
print(f"{table.count} of {model.count} Gaussians are in {output / 'table.glb'}")
