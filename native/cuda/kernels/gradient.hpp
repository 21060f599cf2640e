// The derivative of projection and harmonics for one Gaussian, from blending's ten sums.
#pragma once
#include "projection.hpp"

namespace splat::card {

struct PairSums {
  float red, green, blue, q, qx, qe, qxx, qxe, qee, absolute;
};
struct Gradient {
  float column[kOptimized];    // with respect to the stored forms
  float basis[16], colour[3];  // dL/dharmonics[j][c] = basis[j] * colour[c]
  float mean2d[2];             // pixels
};

// A Gaussian's pairs in the order of its tiles: the same bits in every run. False if no pixel saw it: then this step is
// one more of those that lazy Adam makes up for later.
INLINE bool gather(const UpdateArguments& a, u32 row, PairSums& s) {
  const u32 first = fetch(a.first_pair, row), pairs = fetch(a.tiles, row) & ~kVisible;
  s = {};
  for (u32 pair = first; pair < first + pairs; pair++) {
    if (!fetch(a.touched, pair)) continue;
    const float* slot = a.slots + size_t(pair) * kSlotWidth;
    const float4 head = fetch4(slot, 0), middle = fetch4(slot, 1);
    s.red += head.x;
    s.green += head.y;
    s.blue += head.z;
    s.q += head.w;
    s.qx += middle.x;
    s.qe += middle.y;
    s.qxx += middle.z;
    s.qxe += middle.w;
    s.qee += fetch(slot, 8);
    s.absolute += fetch(slot, 9);
  }
  const float sums[10] = {s.red, s.green, s.blue, s.q, s.qx, s.qe, s.qxx, s.qxe, s.qee, s.absolute};
  bool any = false;
  UNROLL for (int k = 0; k < 10; k++) any |= sums[k] != 0.f;
  return any;
}

// With (u, v) = d(ln alpha)/d(centre) at a pixel: v = e a/det, u = dx/a - tilt v. Sums of q with their powers.
struct SlopeSums {
  float u, v, uu, uv, vv;
};
INLINE SlopeSums slope_sums(const Projection& o, const PairSums& s) {
  const float per_dx = inverse(o.a), per_e = divide(o.a, o.det_after), tilt = o.b * per_dx;
  const float v = per_e * s.qe, wv = per_dx * per_e * s.qxe, vv = per_e * per_e * s.qee;
  return {per_dx * s.qx - tilt * v, v, per_dx * per_dx * s.qxx - tilt * (2 * wv - tilt * vv), wv - tilt * vv, vv};
}

// Through the covariance on screen (d ln alpha / d covariance = (u, v)(u, v)t / 2) and through the compensation.
INLINE void footprint_gradient(const Frame& f, const Projection& o, const SlopeSums& slope, float q, float* out) {
  float s00 = 0.5f * slope.uu, s01 = 0.5f * slope.uv, s11 = 0.5f * slope.vv, weight = 0.f, along0[3], along1[3];
  if (f.compensate) {  // ln rho = (ln det_before - ln det_after) / 2
    const float half = divide(0.5f * q, o.det_after);
    s00 -= half * o.c;
    s01 += half * o.b;
    s11 -= half * o.a;
    weight = divide(q, fmaxf(o.det_before, 1e-30f));
  }
  cross3(o.foot + 3, o.normal, along0);
  cross3(o.normal, o.foot, along1);
  UNROLL for (int j = 0; j < 3; j++) {
    out[j] = 2 * (s00 * o.foot[j] + s01 * o.foot[3 + j]) + weight * along0[j];
    out[3 + j] = 2 * (s01 * o.foot[j] + s11 * o.foot[3 + j]) + weight * along1[j];
  }
}

INLINE void mean_gradient(const Frame& f, const Projection& o, const float* screen, const float* mean2d, float* out) {
  const float *W = f.rotation, x_along = dot3(screen, W), x_deep = dot3(screen, W + 6),
              y_along = dot3(screen + 3, W + 3), y_deep = dot3(screen + 3, W + 6);
  const float z1 = o.inverse_z, fx = f.fx * z1, fy = f.fy * z1, fx2 = fx * z1, fy2 = fy * z1, free_x = o.free_x,
              free_y = o.free_y;
  const float tx = fx * mean2d[0] - free_x * fx2 * x_deep, ty = fy * mean2d[1] - free_y * fy2 * y_deep;
  const float tz = -(fx2 * o.t[0] * mean2d[0] + fy2 * o.t[1] * mean2d[1]) - fx2 * x_along - fy2 * y_along +
                   (1.f + free_x) * fx2 * o.slope_x * x_deep + (1.f + free_y) * fy2 * o.slope_y * y_deep;
  UNROLL for (int k = 0; k < 3; k++) out[k] = W[k] * tx + W[3 + k] * ty + W[6 + k] * tz;
}

INLINE void rotation_gradient(const Projection& o, const float* v, float* out) {
  const float w = o.quaternion[0], x = o.quaternion[1], y = o.quaternion[2], z = o.quaternion[3];
  const float g[4] = {2 * (x * (v[7] - v[5]) + y * (v[2] - v[6]) + z * (v[3] - v[1])),
                      2 * (-2 * x * (v[4] + v[8]) + y * (v[1] + v[3]) + z * (v[2] + v[6]) + w * (v[7] - v[5])),
                      2 * (x * (v[1] + v[3]) - 2 * y * (v[0] + v[8]) + z * (v[5] + v[7]) + w * (v[2] - v[6])),
                      2 * (x * (v[2] + v[6]) + y * (v[5] + v[7]) - 2 * z * (v[0] + v[4]) + w * (v[3] - v[1]))};
  const float radial = g[0] * w + g[1] * x + g[2] * y + g[3] * z;
  UNROLL for (int j = 0; j < 4; j++) out[j] = (g[j] - radial * o.quaternion[j]) * o.inverse_norm;
}

// d(sum_j e[j] basis[j]) / d(x, y, z); e[j] is zero for inactive coefficients.
INLINE void direction_gradient(const float* d, const float* e, float* g) {
  const float x = d[0], y = d[1], z = d[2], xx = x * x, yy = y * y, zz = z * z, xy = x * y, yz = y * z, xz = x * z;
  g[0] = -kC1 * e[3] + kC20 * y * e[4] - 2 * kC22 * x * e[6] - kC20 * z * e[7] + 2 * kC24 * x * e[8] +
         6 * kC30 * xy * e[9] + kC31 * yz * e[10] - 2 * kC32 * xy * e[11] - 6 * kC33 * xz * e[12] +
         kC32 * (4 * zz - 3 * xx - yy) * e[13] + 2 * kC35 * xz * e[14] + 3 * kC30 * (xx - yy) * e[15];
  g[1] = -kC1 * e[1] + kC20 * x * e[4] - kC20 * z * e[5] - 2 * kC22 * y * e[6] - 2 * kC24 * y * e[8] +
         3 * kC30 * (xx - yy) * e[9] + kC31 * xz * e[10] + kC32 * (4 * zz - xx - 3 * yy) * e[11] -
         6 * kC33 * yz * e[12] - 2 * kC32 * xy * e[13] - 2 * kC35 * yz * e[14] - 6 * kC30 * xy * e[15];
  g[2] = kC1 * e[2] - kC20 * y * e[5] + 4 * kC22 * z * e[6] - kC20 * x * e[7] + kC31 * xy * e[10] +
         8 * kC32 * yz * e[11] + kC33 * (6 * zz - 3 * xx - 3 * yy) * e[12] + 8 * kC32 * xz * e[13] +
         kC35 * (xx - yy) * e[14];
}

// The colour's gradient, and what the view direction adds to the mean's.
INLINE void harmonics_gradient(const UpdateArguments& a, const float* mean, u32 row, int age, const PairSums& s,
                               Gradient& g) {
  const u32 clamp_bits = __float_as_uint(fetch(a.splats, size_t(row) * kSplatWidth + 11));
  g.colour[0] = clamp_bits & 1 ? 0.f : s.red;
  g.colour[1] = clamp_bits & 2 ? 0.f : s.green;
  g.colour[2] = clamp_bits & 4 ? 0.f : s.blue;
  float d[3], inverse_length, e[16] = {}, along[3];
  view_direction(a.frame, mean, d, inverse_length);
  harmonics_basis(d, g.basis);
  each_harmonic(a.frame, a.pending, a.harmonics, a.first_moments, row, age,
                [&](int k, float h) { e[k / 3] += g.colour[k % 3] * h; });
  direction_gradient(d, e, along);
  const float outward = dot3(along, d);
  UNROLL for (int k = 0; k < 3; k++) g.column[kMean + k] += (along[k] - outward * d[k]) * inverse_length;
}

// Projection again instead of storing it: cheaper than its 200 bytes.
INLINE void differentiate(const UpdateArguments& a, const float* column, u32 row, int age, const PairSums& s,
                          Gradient& g) {
  const Frame& f = a.frame;
  Projection o;
  project_row(f, column, o);
  const SlopeSums slope = slope_sums(o, s);
  g.mean2d[0] = slope.u;
  g.mean2d[1] = slope.v;
  float by_foot[6], by_screen[6], by_axes[9];
  footprint_gradient(f, o, slope, s.q, by_foot);
  UNROLL for (int i = 0; i < 3; i++) {
    by_screen[i] = dot3(by_foot, o.axes + 3 * i);
    by_screen[3 + i] = dot3(by_foot + 3, o.axes + 3 * i);
    UNROLL for (int j = 0; j < 3; j++) by_axes[3 * i + j] = o.screen[i] * by_foot[j] + o.screen[3 + i] * by_foot[3 + j];
  }
  mean_gradient(f, o, by_screen, g.mean2d, g.column + kMean);
  UNROLL for (int j = 0; j < 3; j++) {
    const float filtered = by_axes[j] * o.axes[j] + by_axes[3 + j] * o.axes[3 + j] + by_axes[6 + j] * o.axes[6 + j],
                share = o.ratio[j] * o.ratio[j];
    g.column[kLogScale + j] = filtered * share + s.q * (1.f - share);  // the opacity's 3D-filter factor
    UNROLL for (int i = 0; i < 3; i++) by_axes[3 * i + j] *= o.scale[j];
  }
  rotation_gradient(o, by_axes, g.column + kRotation);
  g.column[kOpacityLogit] = s.q * (1.f - o.opacity);
  harmonics_gradient(a, column, row, age, s, g);
}

}  // namespace splat::card
