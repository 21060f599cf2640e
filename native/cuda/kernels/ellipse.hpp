// A Gaussian on the screen as binning and blending see it, and which tiles and subtiles its ellipse reaches.
#pragma once
#include "device.hpp"

namespace splat::card {

// 48 bytes: {x, y, tilt, log2 opacity}, {across, down, half width, half height}, {red, green, blue, clamp bits}.
//     alpha(dx, dy) = 2^(log2 opacity - across dx^2 - down e^2),   e = dy - tilt dx
// Unlike the usual quadratic form nothing cancels here, however thin the ellipse.
struct Splat {
  float4 centre, shape, colour;
};
INLINE Splat fetch_splat(const float* splats, u32 row) {
  return {fetch4(splats, size_t(row) * 3), fetch4(splats, size_t(row) * 3 + 1), fetch4(splats, size_t(row) * 3 + 2)};
}

// A float whose operations are the ones that IEEE 754 prescribes to the last bit, each rounded by itself: nothing is
// fused and no special function is asked. Two kernels that compute the same with it find the same, whoever compiled
// them.
struct Exact {
  float value;
  INLINE Exact(float v) : value(v) {}
};
INLINE Exact operator+(Exact x, Exact y) { return __fadd_rn(x.value, y.value); }
INLINE Exact operator-(Exact x, Exact y) { return __fsub_rn(x.value, y.value); }
INLINE Exact operator*(Exact x, Exact y) { return __fmul_rn(x.value, y.value); }
INLINE Exact operator-(Exact x) { return -x.value; }
INLINE bool operator<=(Exact x, Exact y) { return x.value <= y.value; }
INLINE Exact clamped(Exact x, float low, float high) { return clamped(x.value, low, high); }
INLINE float not_negative(float x) { return fmaxf(0.f, x); }
INLINE Exact not_negative(Exact x) { return fmaxf(0.f, x.value); }

// Newton's method from a guess by the bits: within 2e-7. Both for what is not negative.
constexpr float kExactLargest = 1e37f, kExactSmallest = 1e-37f;
INLINE Exact divide(Exact x, Exact y) {
  const Exact divisor = clamped(y, kExactSmallest, kExactLargest);
  Exact inverse = __uint_as_float(0x7ef311c7u - __float_as_uint(divisor.value));
  UNROLL for (int k = 0; k < 3; k++) inverse = inverse * (Exact(2.f) - divisor * inverse);
  return x * inverse;
}
INLINE Exact root(Exact x) {
  const Exact square = fminf(x.value, kExactLargest);
  Exact inverse = __uint_as_float(0x5f3759dfu - (__float_as_uint(square.value) >> 1));
  UNROLL for (int k = 0; k < 3; k++) inverse = inverse * (Exact(1.5f) - Exact(0.5f) * square * inverse * inverse);
  return square * inverse;
}

// The ellipse seen row by row: x = lean dy +- sqrt((reach - along dy^2) inverse). A little too wide is fine: each pixel
// decides for itself whether alpha reaches 1/255. Number is float where speed counts, Exact where two kernels must
// agree.
template <class Number>
struct Spans {
  Number lean, along, inverse, extreme, reach, slack, half_height;
};
template <class Number>
INLINE Spans<Number> spans_of(const Splat& s) {
  const Number tilt = s.centre.z, half_width = s.shape.z, half_height = s.shape.w,
               squeeze = divide(half_width, half_height);
  const Number reach = Number(s.centre.w) + Number(kLog2Of255);
  return {tilt * squeeze * squeeze,
          divide(reach, half_height * half_height),
          divide(squeeze * squeeze, Number(s.shape.y)),
          tilt * half_width,
          reach,
          Number(0.01f) + Number(1e-5f) * half_width,
          half_height};
}
// Its columns between two heights above the centre; false if it misses them. Where its leftmost or rightmost point lies
// outside of the heights, the extreme is on their border.
template <class Number>
INLINE bool span(const Spans<Number>& s, float low, float high, Number& left, Number& right) {
  const Number at_right = clamped(s.extreme, low, high), at_left = clamped(-s.extreme, low, high);
  right = s.lean * at_right + root(not_negative(s.reach - s.along * at_right * at_right) * s.inverse) + s.slack;
  left = s.lean * at_left - root(not_negative(s.reach - s.along * at_left * at_left) * s.inverse) - s.slack;
  return Number(low) <= s.half_height + s.slack && -s.half_height - s.slack <= Number(high);
}

// Calls visit(row of tiles, first column, last column) for the tiles that a Gaussian reaches. project counts them and
// emit writes them: hence Exact, and beside it only sums, which nothing can be fused with.
template <class Visit>
INLINE void each_run(const Frame& f, const Splat& s, Visit visit) {
  const float x = s.centre.x, y = s.centre.y, half_width = s.shape.z, half_height = s.shape.w;
  const int row0 = max(0, int(floorf((y - half_height - 0.51f) * (1.f / kTileSide))));
  const int row1 = min(f.tile_rows - 1, int(floorf((y + half_height - 0.49f) * (1.f / kTileSide))));
  const Spans<Exact> spans = spans_of<Exact>(s);
  for (int r = row0; r <= row1; r++) {
    const float low = r * kTileSide + 0.5f - y;
    Exact left = 0.f, right = 0.f;
    if (!span(spans, low, low + (kTileSide - 1), left, right)) continue;
    const float from = fmaxf(x + fmaxf(left.value, -half_width - 0.01f) - 0.5f, 0.f);
    const float to = fminf(x + fminf(right.value, half_width + 0.01f) - 0.5f, float(f.width - 1));
    if (!(from <= to)) continue;
    const int first = int(ceilf(from)) / kTileSide, last = int(to) / kTileSide;
    if (first <= last) visit(r, first, last);
  }
}

// Bit 2 j + c: the ellipse reaches pixel centres of subtile column c in band j of four rows.
INLINE u32 subtile_mask(const Splat& s, float x0, float y0) {
  const Spans<float> spans = spans_of<float>(s);
  u32 mask = 0;
  UNROLL for (int j = 0; j < 4; j++) {
    const float low = y0 + 4 * j + 0.5f - s.centre.y;
    float left, right;
    const bool there = span(spans, low, low + 3.f, left, right);
    left += s.centre.x - x0;
    right += s.centre.x - x0;
    if (there && left <= 7.5f && right >= 0.5f) mask |= 1u << (2 * j);
    if (there && left <= 15.5f && right >= 8.5f) mask |= 2u << (2 * j);
  }
  return mask;
}

}  // namespace splat::card
