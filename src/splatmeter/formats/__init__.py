"""Model files that other programs read and write: one small file per format, `registry.py` chooses.

All of them hold *fused* Gaussians: the 3D filter is in scales and opacities, and a mark says by which 2D
filter they are to be drawn, where the format has a place for one (docs/formats.md).
"""
