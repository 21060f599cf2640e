// A Gaussian on the screen as binning and blending see it, and which tiles and subtiles its ellipse reaches.
#pragma once
#include "device.hpp"

namespace splat::card {

// 48 bytes: {x, y, tilt, log2 opacity}, {across, down, half width, half height}, {red, green, blue, clamp bits}.
//     alpha(dx, dy) = 2^(log2 opacity - across dx^2 - down e^2),   e = dy - tilt dx
// Unlike the usual quadratic form nothing cancels here, however thin the ellipse.
struct Splat { float4 centre, shape, colour; };
INLINE Splat fetch_splat(const float* splats, u32 row) {
  return {fetch4(splats, size_t(row) * 3), fetch4(splats, size_t(row) * 3 + 1), fetch4(splats, size_t(row) * 3 + 2)};
}

// The ellipse seen row by row: x = lean dy +- sqrt((reach - along dy^2) inverse). A little too wide is fine: each pixel
// decides for itself whether alpha reaches 1/255.
struct Spans { float lean, along, inverse, extreme, reach, slack, half_height; };
INLINE Spans spans_of(const Splat& s) {
  const float half_width = s.shape.z, half_height = s.shape.w, squeeze = divide(half_width, half_height), reach = s.centre.w + kLog2Of255;
  return {s.centre.z * squeeze * squeeze, divide(reach, half_height * half_height), divide(squeeze * squeeze, s.shape.y),
          s.centre.z * half_width, reach, 0.01f + 1e-5f * half_width, half_height};
}
// Its columns between two heights above the centre; false if it misses them. Where its leftmost or rightmost point lies
// outside of the heights, the extreme is on their border.
INLINE bool span(const Spans& s, float low, float high, float& left, float& right) {
  const float at_right = clamped(s.extreme, low, high), at_left = clamped(-s.extreme, low, high);
  right = s.lean * at_right + root(fmaxf(0.f, s.reach - s.along * at_right * at_right) * s.inverse) + s.slack;
  left = s.lean * at_left - root(fmaxf(0.f, s.reach - s.along * at_left * at_left) * s.inverse) - s.slack;
  return low <= s.half_height + s.slack && high >= -s.half_height - s.slack;
}

// Calls visit(row of tiles, first column, last column) for the tiles that a Gaussian reaches.
template <class Visit>
INLINE void each_run(const Frame& f, const Splat& s, Visit visit) {
  const float x = s.centre.x, y = s.centre.y, half_width = s.shape.z, half_height = s.shape.w;
  const int row0 = max(0, int(floorf((y - half_height - 0.51f) * (1.f / kTileSide))));
  const int row1 = min(f.tile_rows - 1, int(floorf((y + half_height - 0.49f) * (1.f / kTileSide))));
  const Spans spans = spans_of(s);
  for (int r = row0; r <= row1; r++) {
    const float low = r * kTileSide + 0.5f - y;
    float left, right;
    if (!span(spans, low, low + (kTileSide - 1), left, right)) continue;
    const float from = fmaxf(x + fmaxf(left, -half_width - 0.01f) - 0.5f, 0.f);
    const float to = fminf(x + fminf(right, half_width + 0.01f) - 0.5f, float(f.width - 1));
    if (!(from <= to)) continue;
    const int first = int(ceilf(from)) / kTileSide, last = int(to) / kTileSide;
    if (first <= last) visit(r, first, last);
  }
}

// Bit 2 j + c: the ellipse reaches pixel centres of subtile column c in band j of four rows.
INLINE u32 subtile_mask(const Splat& s, float x0, float y0) {
  const Spans spans = spans_of(s);
  u32 mask = 0;
  UNROLL for (int j = 0; j < 4; j++) {
    const float low = y0 + 4 * j + 0.5f - s.centre.y;
    float left, right;
    const bool there = span(spans, low, low + 3.f, left, right);
    left += s.centre.x - x0, right += s.centre.x - x0;
    if (there && left <= 7.5f && right >= 0.5f) mask |= 1u << (2 * j);
    if (there && left <= 15.5f && right >= 8.5f) mask |= 2u << (2 * j);
  }
  return mask;
}

}  // namespace splat::card
