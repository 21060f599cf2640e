// The derivative of projection and harmonics for eight Gaussians, from the blending pass's nine sums.
#pragma once
#include "geometry.hpp"
#include "harmonics.hpp"

namespace splat::SPLAT_LEVEL {

struct PairSums {
  f8 red, green, blue, q, qx, qe, qxx, qxe, qee, absolute;
};

// With (u, v) = d(ln alpha)/d(centre) at a pixel: v = e a/det, u = dx/a - tilt v. Sums of q with their powers.
struct SlopeSums {
  f8 u, v, uu, uv, vv;
};

INLINE SlopeSums slope_sums(const Projection& o, const PairSums& s) {
  f8 per_dx = 1.f / o.a, per_e = o.a / o.det_after, tilt = o.b * per_dx;
  f8 w = per_dx * s.qx, ww = per_dx * per_dx * s.qxx, v = per_e * s.qe, wv = per_dx * per_e * s.qxe,
     vv = per_e * per_e * s.qee;
  return {w - tilt * v, v, ww - tilt * (2 * wv - tilt * vv), wv - tilt * vv, vv};
}

struct Gradient {
  f8 column[kOptimized];   // with respect to the stored forms
  f8 basis[16], color[3];  // dL/dharmonics[j][c] = basis[j] * color[c]
  f8 mean2d[2];            // pixels
};

// Through the covariance on screen (d ln alpha / d covariance = (u, v)(u, v)t / 2) and through the compensation.
INLINE void footprint_gradient(const Settings& settings, const Projection& o, const SlopeSums& slope, f8 q, f8* grad) {
  f8 s00 = 0.5f * slope.uu, s01 = 0.5f * slope.uv, s11 = 0.5f * slope.vv;
  const f8 *A0 = o.footprint, *A1 = o.footprint + 3;
  f8 along0[3], along1[3], weight = all(0.f);
  if (settings.compensate) {  // ln rho = (ln det_before - ln det_after) / 2
    f8 half = 0.5f * q / o.det_after;
    s00 -= half * o.c;
    s01 += half * o.b;
    s11 -= half * o.a;
    weight = q / maximum(o.det_before, all(1e-30f));
  }
  cross3(A1, o.normal, along0);
  cross3(o.normal, A0, along1);
  for (int j = 0; j < 3; j++) {
    grad[j] = 2 * (s00 * A0[j] + s01 * A1[j]) + weight * along0[j];
    grad[3 + j] = 2 * (s01 * A0[j] + s11 * A1[j]) + weight * along1[j];
  }
}

INLINE void mean_gradient(const Camera& camera, const Projection& o, const f8* to_screen, const f8* mean2d, f8* out) {
  const float* W = camera.rotation;
  f8 dot[4] = {};  // of dL/dT's rows with the camera's x, z, y, z axes
  for (int k = 0; k < 3; k++) {
    dot[0] += to_screen[k] * W[k];
    dot[1] += to_screen[k] * W[6 + k];
    dot[2] += to_screen[3 + k] * W[3 + k];
    dot[3] += to_screen[3 + k] * W[6 + k];
  }
  f8 z1 = o.inverse_z, fx = camera.fx * z1, fy = camera.fy * z1, fx2 = fx * z1, fy2 = fy * z1;
  f8 free_x = keep_where(o.free_x, all(1.f)), free_y = keep_where(o.free_y, all(1.f));
  f8 tx = fx * mean2d[0] - free_x * fx2 * dot[1], ty = fy * mean2d[1] - free_y * fy2 * dot[3];
  f8 tz = -(fx2 * o.tx * mean2d[0] + fy2 * o.ty * mean2d[1]) - fx2 * dot[0] - fy2 * dot[2] +
          (1.f + free_x) * fx2 * o.slope_x * dot[1] + (1.f + free_y) * fy2 * o.slope_y * dot[3];
  for (int k = 0; k < 3; k++) out[k] = W[k] * tx + W[3 + k] * ty + W[6 + k] * tz;
}

INLINE void rotation_gradient(const Projection& o, const f8* vR, f8* out) {
  f8 w = o.quaternion[0], x = o.quaternion[1], y = o.quaternion[2], z = o.quaternion[3], v[4];
  v[0] = 2 * (x * (vR[7] - vR[5]) + y * (vR[2] - vR[6]) + z * (vR[3] - vR[1]));
  v[1] = 2 * (-2 * x * (vR[4] + vR[8]) + y * (vR[1] + vR[3]) + z * (vR[2] + vR[6]) + w * (vR[7] - vR[5]));
  v[2] = 2 * (x * (vR[1] + vR[3]) - 2 * y * (vR[0] + vR[8]) + z * (vR[5] + vR[7]) + w * (vR[2] - vR[6]));
  v[3] = 2 * (x * (vR[2] + vR[6]) + y * (vR[5] + vR[7]) - 2 * z * (vR[0] + vR[4]) + w * (vR[3] - vR[1]));
  f8 radial = v[0] * w + v[1] * x + v[2] * y + v[3] * z;
  for (int j = 0; j < 4; j++) out[j] = (v[j] - radial * o.quaternion[j]) * o.inverse_norm;
}

// `light`: by coefficient, what the colour's gradient is along the harmonics' three channels; zero for inactive ones.
INLINE void harmonics_gradient(const Camera& camera, const f8* mean, const f8* light, Gradient& g) {
  f8 d[3], inverse, along[3];
  for (int k = 0; k < 3; k++) d[k] = mean[k] - camera.position[k];
  inverse = 1.f / square_root(maximum(dot3(d, d), all(1e-30f)));
  for (int k = 0; k < 3; k++) d[k] *= inverse;
  harmonics_basis(d[0], d[1], d[2], g.basis);
  harmonics_direction_gradient(d[0], d[1], d[2], light, along);
  f8 radial = dot3(along, d);
  for (int k = 0; k < 3; k++) g.column[kMean + k] += (along[k] - radial * d[k]) * inverse;
}

INLINE void projection_gradient(const Engine& engine, const f8* column, const PairSums& s, const f8* light,
                                Gradient& g) {
  const Camera& camera = engine.camera;
  Projection o;
  project_eight(camera, engine.settings, column, o);
  const SlopeSums slope = slope_sums(o, s);
  g.mean2d[0] = slope.u;
  g.mean2d[1] = slope.v;
  f8 vA[6], vT[6], vM[9];
  footprint_gradient(engine.settings, o, slope, s.q, vA);
  const f8 *M = o.axes, *T = o.to_screen;
  for (int r = 0; r < 2; r++)
    for (int i = 0; i < 3; i++) vT[3 * r + i] = dot3(vA + 3 * r, M + 3 * i);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) vM[3 * i + j] = T[i] * vA[j] + T[3 + i] * vA[3 + j];
  mean_gradient(camera, o, vT, g.mean2d, g.column + kMean);
  for (int j = 0; j < 3; j++) {
    f8 filtered = vM[j] * M[j] + vM[3 + j] * M[3 + j] + vM[6 + j] * M[6 + j];  // dL/d(log s')
    f8 share = o.scale_ratio[j] * o.scale_ratio[j];
    g.column[kLogScale + j] = filtered * share + s.q * (1.f - share);  // the opacity's 3D-filter factor
    for (int i = 0; i < 3; i++) vM[3 * i + j] *= o.filtered_scale[j];
  }
  rotation_gradient(o, vM, g.column + kRotation);
  g.column[kOpacityLogit] = s.q * (1.f - o.opacity);
  harmonics_gradient(camera, column, light, g);
}

}  // namespace splat::SPLAT_LEVEL
