"""Makes eighth.png: the built-in scene at an eighth of the size that it was trained at.

splatmeter scene demo SCENE
splatmeter train -s SCENE -m BOTH --eval --preset fast
splatmeter train -s SCENE -m PLAIN --eval --preset fast --plain-3dgs
for run in BOTH PLAIN; do splatmeter eval -m $run --scales 1,8 --write-renders; done
python docs/images/make_eighth.py BOTH PLAIN
"""

import sys
from pathlib import Path

from PIL import Image

VIEWS = ("00001.png", "00004.png")
ENLARGED, GAP = 6, 8

both, plain = (next(Path(run).glob("**/test/ours_*")) for run in sys.argv[1:3])
folders = (both / "gt_-1_scale_8", both / "test_preds_-1_scale_8", plain / "test_preds_-1_scale_8")
rows = [[Image.open(folder / view).convert("RGB") for folder in folders] for view in VIEWS]
width, height = (ENLARGED * side + GAP for side in rows[0][0].size)
sheet = Image.new("RGB", (len(folders) * width - GAP, len(VIEWS) * height - GAP), "white")
for y, row in enumerate(rows):
    for x, picture in enumerate(row):
        larger = picture.resize((width - GAP, height - GAP), Image.Resampling.NEAREST)
        sheet.paste(larger, (x * width, y * height))
sheet.save(Path(__file__).with_name("eighth.png"), optimize=True)
