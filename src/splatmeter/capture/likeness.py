"""How alike photos are, from their own features: one vector a photo, no downloaded vocabulary.

Features are sorted to a few centres found among the photos' own features; what remains of them, summed per
centre, is the photo's vector (Jégou et al. 2010, "aggregating local descriptors", VLAD).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

CENTRES = 64
ROUNDS = 8
SAMPLE = 40_000
"""Features that centres are sought among."""
FEATURES_A_PHOTO = 2000

Descriptors = Callable[[int], NDArray[np.uint8]]
"""By number of the photo: [n, 128]."""


def likeness(numbers: Sequence[int], descriptors: Descriptors, seed: int) -> NDArray[np.float32]:  # [N, N]
    """Symmetric, 0 for photos without features; one photo's features are in memory at a time."""
    generator = np.random.default_rng([seed, 7])
    share = max(20, SAMPLE // max(1, len(numbers)))
    sample = np.concatenate([_some(descriptors(number), share, generator) for number in numbers])
    if len(sample) < CENTRES:
        return np.eye(len(numbers), dtype=np.float32)
    centres = found_centres(sample, generator)  # [CENTRES, 128]
    picked = (_some(descriptors(number), FEATURES_A_PHOTO, generator) for number in numbers)
    vectors = np.stack([photo_vector(features, centres) for features in picked])  # [N, CENTRES * 128]
    return np.asarray(vectors @ vectors.T, np.float32)


def found_centres(sample: NDArray[np.float32], generator: np.random.Generator) -> NDArray[np.float32]:
    """k-means from a random start [k, 128]; a centre that nobody is near to stays where it is."""
    centres = sample[generator.choice(len(sample), CENTRES, replace=False)].copy()
    for _ in range(ROUNDS):
        nearest = _nearest(sample, centres)  # [n]
        counts = np.bincount(nearest, minlength=CENTRES)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, sample)
        centres[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
    return centres


def photo_vector(features: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Residuals summed per centre, each centre's sum of length one, then the whole: [k * 128]."""
    vector = np.zeros_like(centres)
    if len(features):
        nearest = _nearest(features, centres)  # [n]
        np.add.at(vector, nearest, features - centres[nearest])
    vector /= np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-6)
    flat = vector.ravel()
    return np.asarray(flat / max(float(np.linalg.norm(flat)), 1e-6), np.float32)


def _nearest(features: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.intp]:
    return np.argmax(features @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)


def _some(descriptors: NDArray[np.uint8], most: int, generator: np.random.Generator) -> NDArray[np.float32]:
    if len(descriptors) > most:
        descriptors = descriptors[generator.choice(len(descriptors), most, replace=False)]
    values = descriptors.astype(np.float32).reshape(-1, 128)
    values /= 512
    return values
