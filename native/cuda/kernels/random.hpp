// Random numbers named by a row and keys: the same bits as native/passes/explore.cpp, whoever computes them, and
// whenever.
#pragma once
#include "device.hpp"

namespace splat::card {

INLINE u32 mixed(u32 x) {  // Murmur's finaliser: a good mixer of 32 bits
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}
INLINE u32 random_bits(u32 row, u32 key, u32 other_key) { return mixed(mixed(row + key) ^ other_key); }
INLINE float as_fraction(u32 bits) { return float(bits >> 8) * 0x1p-24f; }  // in [0, 1)

// Box and Muller's two normal numbers. The angle is uniform: its sine from a quarter turn either way, the sign of its
// cosine from one more bit.
INLINE void two_normals(u32 one, u32 two, float& a, float& b) {
  const float radius = root(fmaxf(log2_of(as_fraction(one) + 0x1p-24f) * (-2.f / kLog2E), 0.f));
  const float x = (as_fraction(two) - 0.5f) * 3.14159265358979f, x2 = x * x;
  float sine = -2.5052108e-8f * x2 + 2.7557319e-6f;
  sine = ((((sine * x2 - 1.9841270e-4f) * x2 + 8.3333333e-3f) * x2 - 1.6666667e-1f) * x2 + 1.f) * x;
  const float cosine = root(fmaxf(1.f - sine * sine, 0.f));
  a = radius * sine;
  b = __uint_as_float(__float_as_uint(radius * cosine) ^ (two << 31));
}
INLINE void three_normals(u32 row, const u32* keys, float* draw) {
  float unused;
  two_normals(random_bits(row, keys[0], keys[1]), random_bits(row, keys[0], keys[2]), draw[0], draw[1]);
  two_normals(random_bits(row, keys[0], keys[3]), random_bits(row, keys[0], keys[4]), draw[2], unused);
}

// The same in float64, as densify/draws.py has them, for rows whose order depends on where they fall.
INLINE void two_exact_normals(u32 one, u32 two, float& a, float& b) {
  const double radius = sqrt(-2 * log(double((one >> 8) + 1) * 0x1p-24)), turn = double(two >> 8) * 0x1p-24 - 0.5;
  a = float(radius * sinpi(turn));
  b = float(radius * cospi(turn) * (two & 1 ? -1.0 : 1.0));
}
INLINE void three_exact_normals(u32 row, const u32* keys, float* draw) {
  float unused;
  two_exact_normals(random_bits(row, keys[0], keys[1]), random_bits(row, keys[0], keys[2]), draw[0], draw[1]);
  two_exact_normals(random_bits(row, keys[0], keys[3]), random_bits(row, keys[0], keys[4]), draw[2], unused);
}

}  // namespace splat::card
