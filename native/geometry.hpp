// From world to screen for eight Gaussians at once, and everything its derivative needs again.
#pragma once
#include "engine.hpp"
#include "simd.hpp"

namespace splat::SPLAT_LEVEL {

struct Projection {
  f8 tx, ty, tz, inverse_z;  // mean in camera axes
  f8 slope_x, slope_y;       // x/z and y/z, frozen outside the image's surroundings
  i8 free_x, free_y;         // where they are not frozen
  f8 quaternion[4], inverse_norm;
  f8 opacity;         // sigmoid of the stored logit
  f8 scale_ratio[3];  // s / s', raw over filtered scale
  f8 filtered_scale[3];
  f8 axes[9];       // M = R(q) diag(s'), row-major
  f8 to_screen[6];  // T = J W, 2x3
  f8 footprint[6];  // A = T M, 2x3: the covariance on screen is A At
  f8 normal[3];     // A0 x A1: its square is the determinant before the 2D filter, exactly
  f8 det_before, det_after;
  f8 a, b, c;  // covariance on screen, 2D filter included
};

INLINE f8 dot3(const f8* u, const f8* v) { return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]; }
INLINE void cross3(const f8* u, const f8* v, f8* out) {
  out[0] = u[1] * v[2] - u[2] * v[1];
  out[1] = u[2] * v[0] - u[0] * v[2];
  out[2] = u[0] * v[1] - u[1] * v[0];
}

INLINE void to_camera(const Camera& camera, const f8* mean, Projection& o) {
  const float *W = camera.rotation, *t = camera.translation;
  o.tx = W[0] * mean[0] + W[1] * mean[1] + W[2] * mean[2] + t[0];
  o.ty = W[3] * mean[0] + W[4] * mean[1] + W[5] * mean[2] + t[1];
  o.tz = W[6] * mean[0] + W[7] * mean[1] + W[8] * mean[2] + t[2];
}

INLINE void rotation_matrix(const f8* q, f8* R) {
  f8 w = q[0], x = q[1], y = q[2], z = q[3];
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

// The 3D smoothing filter: s' = sqrt(s^2 + f^2). Ratios instead of products cannot underflow.
INLINE void shape(const f8* column, Projection& o) {
  const f8* q = column + kRotation;
  o.inverse_norm = 1.f / square_root(maximum(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], all(1e-24f)));
  for (int j = 0; j < 4; j++) o.quaternion[j] = q[j] * o.inverse_norm;
  f8 R[9], f = column[kFilter];
  rotation_matrix(o.quaternion, R);
  for (int j = 0; j < 3; j++) {
    f8 s = exp2_of(clamp(column[kLogScale + j] * kLog2E, all(-60.f), all(60.f)));
    o.filtered_scale[j] = square_root(s * s + f * f);
    o.scale_ratio[j] = s / o.filtered_scale[j];
    for (int i = 0; i < 3; i++) o.axes[3 * i + j] = R[3 * i + j] * o.filtered_scale[j];
  }
  o.opacity = 1.f / (1.f + exp_of(-column[kOpacityLogit]));
}

INLINE void screen_matrix(const Camera& camera, Projection& o) {
  const float* W = camera.rotation;
  o.inverse_z = 1.f / o.tz;
  f8 x = o.tx * o.inverse_z, y = o.ty * o.inverse_z;
  o.slope_x = clamp(x, all(camera.slope_low_x), all(camera.slope_high_x));
  o.slope_y = clamp(y, all(camera.slope_low_y), all(camera.slope_high_y));
  o.free_x = (o.slope_x == x);
  o.free_y = (o.slope_y == y);
  f8 jx = camera.fx * o.inverse_z, jy = camera.fy * o.inverse_z;
  for (int k = 0; k < 3; k++) {
    o.to_screen[k] = jx * (W[k] - o.slope_x * W[6 + k]);
    o.to_screen[3 + k] = jy * (W[3 + k] - o.slope_y * W[6 + k]);
  }
}

INLINE void footprint(const Settings& settings, Projection& o) {
  const f8 *T = o.to_screen, *M = o.axes;
  for (int r = 0; r < 2; r++)
    for (int j = 0; j < 3; j++)
      o.footprint[3 * r + j] = T[3 * r] * M[j] + T[3 * r + 1] * M[3 + j] + T[3 * r + 2] * M[6 + j];
  const f8 *A0 = o.footprint, *A1 = o.footprint + 3;
  const float k = settings.kernel_size;
  cross3(A0, A1, o.normal);
  o.det_before = dot3(o.normal, o.normal);
  f8 a0 = dot3(A0, A0), c0 = dot3(A1, A1);
  o.b = dot3(A0, A1);
  o.det_after = o.det_before + k * (a0 + c0) + k * k;
  o.a = a0 + k;
  o.c = c0 + k;
}

INLINE f8 effective_opacity(const Settings& settings, const Projection& o) {
  f8 by_3d_filter = o.scale_ratio[0] * o.scale_ratio[1] * o.scale_ratio[2];
  f8 by_2d_filter = settings.compensate ? square_root(o.det_before / o.det_after) : all(1.f);
  return o.opacity * by_3d_filter * by_2d_filter;
}

INLINE void project_eight(const Camera& camera, const Settings& settings, const f8* column, Projection& o) {
  to_camera(camera, column, o);
  shape(column, o);
  screen_matrix(camera, o);
  footprint(settings, o);
}

// ---- rows -------------------------------------------------------------------------------------------------
INLINE void load_geometry(const float* geometry, const uint32_t* rows, f8* column) {
  auto row = [&](int l) { return geometry + size_t(rows[l]) * kGeometryWidth; };
  for (int k = 0; k < kGeometryWidth; k += 4) load_quads([&](int l) { return row(l) + k; }, column + k);
}

INLINE void load_moments(const float* moments, const uint32_t* rows, f8* column) {
  auto row = [&](int l) { return moments + size_t(rows[l]) * kGeometryMomentsWidth; };
  for (int k = 0; k < kGeometryMomentsWidth; k += 4) load_quads([&](int l) { return row(l) + k; }, column + k);
}
// The first moments of rows that are behind are all that catching up needs; the others' stay where they are.
INLINE void load_owed_moments(const Table& table, const uint32_t* rows, f8 last_update, f8* column) {
  static const float nothing[kSecondGeometry] = {};
  const int behind = sign_bits(last_update < float(table.pending.step));
  const float* from[8];
  for (int l = 0; l < 8; l++) {
    from[l] = behind >> l & 1 ? table.geometry_moments + size_t(rows[l]) * kGeometryMomentsWidth : nothing;
  }
  for (int k = 0; k < kSecondGeometry; k += 4) load_quads([&](int l) { return from[l] + k; }, column + k);
}
static_assert(kOptimized <= kSecondGeometry, "what is owed follows from the first moments alone");
static_assert(kGeometryWidth % 4 == 0 && kGeometryMomentsWidth % 4 == 0 && kSecondGeometry % 4 == 0, "read by fours");

INLINE int age_of(const Pending& pending, float last_update) {
  int age = pending.step - int(last_update);
  return age < 0 ? 0 : age;
}
INLINE Owed owed_at(const Pending& pending, int age) {
  if (age < kPendingAges) return pending.by_age[age];
  Owed oldest = pending.by_age[kPendingAges - 1];  // first moments are gone by then, second moments are not
  oldest.second_decay = __builtin_powf(pending.by_age[1].second_decay, float(age));
  return oldest;
}

struct OwedColumns {
  f8 drift, mean_drift, first_decay, second_decay;
};

// What the eight rows owe; false if none of them is behind.
INLINE bool owed_by(const Pending& pending, const f8* column, OwedColumns& owed) {
  if (!pending.by_age) return false;
  if (sign_bits(column[kLastUpdate] < float(pending.step)) == 0) return false;
  f8 part[4];
  float last[8];
  store(last, column[kLastUpdate]);
  const Owed* at[8];
  Owed old[8];  // of rows whose age no list has
  for (int l = 0; l < 8; l++) {
    const int age = age_of(pending, last[l]);
    if (__builtin_expect(age < kPendingAges, 1))
      at[l] = pending.by_age + age;
    else {
      old[l] = owed_at(pending, age);
      at[l] = &old[l];
    }
  }
  static_assert(sizeof(Owed) == 4 * sizeof(float));
  load_quads([&](int l) { return (const float*)at[l]; }, part);
  owed = {part[0], part[1], part[2], part[3]};
  return true;
}

// Geometry columns as dense Adam would have them now.
INLINE void catch_up_geometry(const Pending& pending, const OwedColumns& owed, const f8* first, f8* column) {
  for (int j = 0; j < kOptimized; j++)
    column[j] -= first[j] * (pending.rates[j] * (j < 3 ? owed.mean_drift : owed.drift));
}

// One row of harmonics as dense Adam would have it now, `chunks` vectors of it.
INLINE void current_harmonics(const Table& table, uint32_t row, int age, int chunks, f8* out) {
  const float* p = table.harmonics + size_t(row) * kHarmonicsWidth;
  for (int k = 0; k < chunks; k++) out[k] = load(p + 8 * k);
  const Pending& pending = table.pending;
  if (age == 0 || !pending.moves) return;
  const float* first = table.harmonics_first + size_t(row) * kHarmonicsWidth;
  const float drift = owed_at(pending, age).drift, dc = pending.rate_dc * drift, rest = pending.rate_rest * drift;
  for (int k = 0; k < chunks; k++) {
    const f8 rate = k ? all(rest) : f8{dc, dc, dc, rest, rest, rest, rest, rest};
    out[k] -= load(first + 8 * k) * rate;
  }
}

}  // namespace splat::SPLAT_LEVEL
