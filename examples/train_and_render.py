"""Train the built-in garden for a moment and look at a photo it has not seen.

python examples/train_and_render.py [OUTPUT_FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from splatmeter import api

output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="splatmeter-"))
garden = api.demo_scene(quick=True)

for event in api.train(garden, output / "model", eval=True, iterations=300):
    if isinstance(event, api.Progress) and event.step % 100 == 0:
        print(f"step {event.step}: loss {event.loss:.4f}, {event.gaussians} Gaussians")
    if isinstance(event, api.Finished):
        print(f"{event.clock_seconds:.1f} s of training")

scene = api.load_scene(garden, eval=True)
model = api.load_model(output / "model")
report = api.evaluate(model, scene.test)
print(f"held-out views: {report.means['psnr']:.2f} dB; worst: {report.worst}")

print(model.render(scene.test[0].camera).save(output / "render.png"))
