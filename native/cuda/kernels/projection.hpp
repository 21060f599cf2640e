// From a row of the table to the screen, brought up to date on the way; what project and update share.
#pragma once
#include "device.hpp"

namespace splat::card {

struct Row {
  float v[kGeometryWidth];
};
INLINE Row load_row(const float* geometry, size_t row) {
  Row r;
  UNROLL for (int k = 0; k < 4; k++) {
    const float4 q = load4(geometry, row * 4 + k);
    r.v[4 * k] = q.x;
    r.v[4 * k + 1] = q.y;
    r.v[4 * k + 2] = q.z;
    r.v[4 * k + 3] = q.w;
  }
  return r;
}

// Nearly transparent, by the raw opacity; what is not a number goes as well.
INLINE bool is_faint(const float* column, const float* harmonics, size_t row, float lowest_logit) {
  bool finite = true;
  UNROLL for (int j = 0; j < kOptimized; j++) finite &= is_finite(column[j]);
  for (int k = 0; k < kHarmonicsWidth / 4; k++) {
    const float4 h = fetch4(harmonics, row * 12 + k);
    finite &= is_finite(h.x) && is_finite(h.y) && is_finite(h.z) && is_finite(h.w);
  }
  return !finite || !(column[kOpacityLogit] >= lowest_logit);
}

INLINE double sigmoid(float logit) {  // never overflows: the exponent is never positive
  const double decay = exp(-fabs(double(logit)));
  return (logit >= 0 ? 1.0 : decay) / (1.0 + decay);
}

// ---- what lazy Adam left undone ----------------------------------------------------------------------------------
INLINE int age_of(const Pending& p, float last_update) { return p.by_age ? max(0, p.step - int(last_update)) : 0; }
INLINE float4 owed_at(const Pending& p, int age) {  // drift, mean drift, first decay, second decay
  float4 owed = fetch4(p.by_age, min(age, kPendingAges - 1));
  if (age >= kPendingAges)
    owed.w = exp2_of(float(age) * p.log2_second_decay);  // first moments are gone by then, second ones are not
  return owed;
}
INLINE void catch_up(const Pending& p, const float4& owed, const float* first, float* column) {
  UNROLL for (int j = 0; j < kOptimized; j++) column[j] -= first[j] * (p.rates[j] * (j < 3 ? owed.y : owed.x));
}
INLINE void load_first_moments(const float* moments, size_t row, float* first) {  // twelve; the last one is padding
  UNROLL for (int k = 0; k < 3; k++) {
    const float4 m = load4(moments, row * 6 + k);
    first[4 * k] = m.x;
    first[4 * k + 1] = m.y;
    first[4 * k + 2] = m.z;
    first[4 * k + 3] = m.w;
  }
}

// ---- geometry ----------------------------------------------------------------------------------------------------
struct Projection {
  float t[3], inverse_z, slope_x,
      slope_y;  // the mean in camera axes; x/z and y/z, frozen outside the image's surroundings
  float quaternion[4], inverse_norm, opacity;
  float ratio[3], scale[3];           // raw over filtered scale; filtered scale
  float axes[9], screen[6], foot[6];  // R diag(scale); J W; their product: the covariance on screen is foot foot^t
  float normal[3];                    // foot0 x foot1: its square is the determinant before the 2D filter, exactly
  float det_before, det_after, a, b, c;
  bool free_x, free_y;
};
INLINE float dot3(const float* u, const float* v) { return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]; }
INLINE void cross3(const float* u, const float* v, float* out) {
  out[0] = u[1] * v[2] - u[2] * v[1];
  out[1] = u[2] * v[0] - u[0] * v[2];
  out[2] = u[0] * v[1] - u[1] * v[0];
}
INLINE void rotation_matrix(const float* q, float* R) {
  const float w = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1 - 2 * (y * y + z * z);
  R[1] = 2 * (x * y - w * z);
  R[2] = 2 * (x * z + w * y);
  R[3] = 2 * (x * y + w * z);
  R[4] = 1 - 2 * (x * x + z * z);
  R[5] = 2 * (y * z - w * x);
  R[6] = 2 * (x * z - w * y);
  R[7] = 2 * (y * z + w * x);
  R[8] = 1 - 2 * (x * x + y * y);
}
INLINE float scale_of(float log_scale) { return exp2_of(clamped(log_scale * kLog2E, -60.f, 60.f)); }
INLINE float opacity_of(float logit) { return inverse(1.f + exp2_of(clamped(-logit * kLog2E, -125.f, 125.f))); }
INLINE float normalized(const float* stored, float* quaternion) {  // and one over its length
  const float inverse_norm = inverse_root(
      fmaxf(stored[0] * stored[0] + stored[1] * stored[1] + stored[2] * stored[2] + stored[3] * stored[3], 1e-24f));
  UNROLL for (int j = 0; j < 4; j++) quaternion[j] = stored[j] * inverse_norm;
  return inverse_norm;
}
INLINE void to_camera(const Frame& f, const float* mean, float* t) {
  UNROLL for (int k = 0; k < 3; k++) t[k] = dot3(f.rotation + 3 * k, mean) + f.translation[k];
}

// The 3D smoothing filter: s' = sqrt(s^2 + f^2). Ratios instead of products cannot underflow.
INLINE void shape_of(const float* column, Projection& o) {
  float R[9];
  o.inverse_norm = normalized(column + kRotation, o.quaternion);
  rotation_matrix(o.quaternion, R);
  UNROLL for (int j = 0; j < 3; j++) {
    const float s = scale_of(column[kLogScale + j]);
    o.scale[j] = root(s * s + column[kFilter] * column[kFilter]);
    o.ratio[j] = divide(s, o.scale[j]);
    UNROLL for (int i = 0; i < 3; i++) o.axes[3 * i + j] = R[3 * i + j] * o.scale[j];
  }
  o.opacity = opacity_of(column[kOpacityLogit]);
}
INLINE void screen_matrix(const Frame& f, Projection& o) {
  o.inverse_z = inverse(o.t[2]);
  const float x = o.t[0] * o.inverse_z, y = o.t[1] * o.inverse_z;
  o.slope_x = clamped(x, f.slope_low_x, f.slope_high_x);
  o.slope_y = clamped(y, f.slope_low_y, f.slope_high_y);
  o.free_x = o.slope_x == x;
  o.free_y = o.slope_y == y;
  const float jx = f.fx * o.inverse_z, jy = f.fy * o.inverse_z, *W = f.rotation;
  UNROLL for (int k = 0; k < 3; k++) {
    o.screen[k] = jx * (W[k] - o.slope_x * W[6 + k]);
    o.screen[3 + k] = jy * (W[3 + k] - o.slope_y * W[6 + k]);
  }
}
INLINE void footprint(const Frame& f, Projection& o) {
  const float *T = o.screen, *M = o.axes, k = f.kernel_size;
  UNROLL for (int r = 0; r < 2; r++) UNROLL for (int j = 0; j < 3; j++) o.foot[3 * r + j] =
      T[3 * r] * M[j] + T[3 * r + 1] * M[3 + j] + T[3 * r + 2] * M[6 + j];
  cross3(o.foot, o.foot + 3, o.normal);
  o.det_before = dot3(o.normal, o.normal);
  const float a = dot3(o.foot, o.foot), c = dot3(o.foot + 3, o.foot + 3);
  o.b = dot3(o.foot, o.foot + 3);
  o.det_after = o.det_before + k * (a + c) + k * k;
  o.a = a + k;
  o.c = c + k;
}
INLINE void project_row(const Frame& f, const float* column, Projection& o) {
  to_camera(f, column + kMean, o.t);
  shape_of(column, o);
  screen_matrix(f, o);
  footprint(f, o);
}

// ---- colour ------------------------------------------------------------------------------------------------------
constexpr float kC0 = 0.28209479177387814f, kC1 = 0.4886025119029199f;
constexpr float kC20 = 1.0925484305920792f, kC22 = 0.31539156525252005f, kC24 = 0.5462742152960396f;
constexpr float kC30 = -0.5900435899266435f, kC31 = 2.890611442640554f, kC32 = -0.4570457994644658f;
constexpr float kC33 = 0.3731763325901154f, kC35 = 1.445305721320277f;

INLINE int active_harmonics(const Frame& f) { return 3 * (f.sh_degree + 1) * (f.sh_degree + 1); }
INLINE void harmonics_basis(const float* d, float* b) {
  const float x = d[0], y = d[1], z = d[2], xx = x * x, yy = y * y, zz = z * z, xy = x * y, yz = y * z, xz = x * z;
  b[0] = kC0;
  b[1] = -kC1 * y;
  b[2] = kC1 * z;
  b[3] = -kC1 * x;
  b[4] = kC20 * xy;
  b[5] = -kC20 * yz;
  b[6] = kC22 * (2 * zz - xx - yy);
  b[7] = -kC20 * xz;
  b[8] = kC24 * (xx - yy);
  b[9] = kC30 * y * (3 * xx - yy);
  b[10] = kC31 * xy * z;
  b[11] = kC32 * y * (4 * zz - xx - yy);
  b[12] = kC33 * z * (2 * zz - 3 * xx - 3 * yy);
  b[13] = kC32 * x * (4 * zz - xx - yy);
  b[14] = kC35 * z * (xx - yy);
  b[15] = kC30 * x * (xx - 3 * yy);
}
INLINE void view_direction(const Frame& f, const float* mean, float* d, float& inverse_length) {
  UNROLL for (int k = 0; k < 3; k++) d[k] = mean[k] - f.position[k];
  inverse_length = inverse_root(fmaxf(dot3(d, d), 1e-30f));
  UNROLL for (int k = 0; k < 3; k++) d[k] *= inverse_length;
}

// Calls body(index, value) for every active harmonic of a row, brought up to date.
template <class Body>
INLINE void each_harmonic(const Frame& f, const Pending& p, const float* harmonics, const float* first, size_t row,
                          int age, Body body) {
  const int active = active_harmonics(f);
  const float drift = age ? owed_at(p, age).x : 0.f, dc = p.rate_dc * drift, rest = p.rate_rest * drift;
  UNROLL for (int k = 0; k < kHarmonicsWidth / 4; k++) if (4 * k < active) {
    float4 h = load4(harmonics, row * 12 + k);
    if (age) {
      const float4 m = load4(first, row * 12 + k);
      h.x -= m.x * (k ? rest : dc);
      h.y -= m.y * (k ? rest : dc);
      h.z -= m.z * (k ? rest : dc);
      h.w -= m.w * rest;
    }
    const float value[4] = {h.x, h.y, h.z, h.w};
    UNROLL for (int j = 0; j < 4; j++) if (4 * k + j < active) body(4 * k + j, value[j]);
  }
}

}  // namespace splat::card
