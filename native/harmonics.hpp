// Real spherical harmonics to degree 3 in the order and signs of the original's files.
#pragma once
#include "simd.hpp"

namespace splat::SPLAT_LEVEL {

constexpr float kC0 = 0.28209479177387814f, kC1 = 0.4886025119029199f;
constexpr float kC2[5] = {1.0925484305920792f, -1.0925484305920792f, 0.31539156525252005f, -1.0925484305920792f,
                          0.5462742152960396f};
constexpr float kC3[7] = {-0.5900435899266435f, 2.890611442640554f, -0.4570457994644658f, 0.3731763325901154f,
                          -0.4570457994644658f, 1.445305721320277f, -0.5900435899266435f};

constexpr int coefficients_of(int degree) { return (degree + 1) * (degree + 1); }
constexpr int chunks_of(int degree) { return (3 * coefficients_of(degree) + 7) / 8; }  // vectors that hold them

INLINE void harmonics_basis(f8 x, f8 y, f8 z, f8* b) {
  f8 xx = x * x, yy = y * y, zz = z * z, xy = x * y, yz = y * z, xz = x * z;
  b[0] = all(kC0);
  b[1] = -kC1 * y;
  b[2] = kC1 * z;
  b[3] = -kC1 * x;
  b[4] = kC2[0] * xy;
  b[5] = kC2[1] * yz;
  b[6] = kC2[2] * (2 * zz - xx - yy);
  b[7] = kC2[3] * xz;
  b[8] = kC2[4] * (xx - yy);
  b[9] = kC3[0] * y * (3 * xx - yy);
  b[10] = kC3[1] * xy * z;
  b[11] = kC3[2] * y * (4 * zz - xx - yy);
  b[12] = kC3[3] * z * (2 * zz - 3 * xx - 3 * yy);
  b[13] = kC3[4] * x * (4 * zz - xx - yy);
  b[14] = kC3[5] * z * (xx - yy);
  b[15] = kC3[6] * x * (xx - 3 * yy);
}

// d(sum_j e[j] basis[j]) / d(x, y, z); e[j] is zero for inactive coefficients.
INLINE void harmonics_direction_gradient(f8 x, f8 y, f8 z, const f8* e, f8* g) {
  f8 xx = x * x, yy = y * y, zz = z * z, xy = x * y, yz = y * z, xz = x * z;
  g[0] = -kC1 * e[3] + kC2[0] * y * e[4] - 2.f * kC2[2] * x * e[6] + kC2[3] * z * e[7] + 2.f * kC2[4] * x * e[8] +
         6.f * kC3[0] * xy * e[9] + kC3[1] * yz * e[10] - 2.f * kC3[2] * xy * e[11] - 6.f * kC3[3] * xz * e[12] +
         kC3[4] * (4 * zz - 3 * xx - yy) * e[13] + 2.f * kC3[5] * xz * e[14] + 3.f * kC3[6] * (xx - yy) * e[15];
  g[1] = -kC1 * e[1] + kC2[0] * x * e[4] + kC2[1] * z * e[5] - 2.f * kC2[2] * y * e[6] - 2.f * kC2[4] * y * e[8] +
         3.f * kC3[0] * (xx - yy) * e[9] + kC3[1] * xz * e[10] + kC3[2] * (4 * zz - xx - 3 * yy) * e[11] -
         6.f * kC3[3] * yz * e[12] - 2.f * kC3[4] * xy * e[13] - 2.f * kC3[5] * yz * e[14] - 6.f * kC3[6] * xy * e[15];
  g[2] = kC1 * e[2] + kC2[1] * y * e[5] + 4.f * kC2[2] * z * e[6] + kC2[3] * x * e[7] + kC3[1] * xy * e[10] +
         8.f * kC3[2] * yz * e[11] + kC3[3] * (6 * zz - 3 * xx - 3 * yy) * e[12] + 8.f * kC3[4] * xz * e[13] +
         kC3[5] * (xx - yy) * e[14];
}

}  // namespace splat::SPLAT_LEVEL
