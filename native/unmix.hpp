// From a gradient by the colours that were compared to the one by the picture's own: an exposure's columns.
// In a header of its own, because two passes do it and must have the same bits.
#pragma once
#include "simd.hpp"

namespace splat::SPLAT_LEVEL {

INLINE void unmix(f8* channels, const float* transform) {
  const f8 red = channels[0], green = channels[1], blue = channels[2];
  for (int c = 0; c < 3; c++) channels[c] = red * transform[c] + green * transform[4 + c] + blue * transform[8 + c];
}

}  // namespace splat::SPLAT_LEVEL
