"""What the 2D Mip filter is for: one model seen from further and further away, with and without it.

Train a model first (`splatmeter demo` leaves one), then:
    python examples/see_aliasing.py splatmeter-demo/model [SCENE_FOLDER]
"""

import sys

from splatmeter import api

model = api.load_model(sys.argv[1])
scene = api.load_scene(sys.argv[2] if len(sys.argv) > 2 else api.demo_scene(), eval=True)
without = model.with_settings(kernel_size=0.3, compensate=False)  # as plain 3DGS renders

print("scale  Mip filter  plain dilation")
for scale in (1, 2, 4, 8):
    psnr = [api.evaluate(chosen, scene.test, scale).means["psnr"] for chosen in (model, without)]
    print(f"1/{scale:<5}{psnr[0]:7.2f} dB{psnr[1]:13.2f} dB")
