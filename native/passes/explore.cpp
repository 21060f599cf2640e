// What 3DGS-MCMC adds to training: noise on the means of faint Gaussians, and a pull on opacities and sizes towards
// zero. Several steps' worth is done at once, so that it costs next to nothing. Rows that lazy Adam left behind are
// taken as they stand: what they are owed does not depend on what is added here.
#include "../geometry.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRowsPerTask = 2048;
constexpr float kGateSlope = 100.f, kGateMiddle = 0.005f;  // opacities: the paper's k and t
constexpr float kGateCutOff = 1e-8f;                       // below this share of the noise none is added

// Murmur's finaliser: a good mixer of 32 bits.
INLINE u8 mixed(u8 x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// Random bits named by (row, keys): the same whoever computes them, and whenever.
INLINE u8 random_bits(u8 rows, uint32_t key, uint32_t other_key) { return mixed(mixed(rows + key) ^ other_key); }

INLINE f8 as_fraction(u8 bits) { return to_float((i8)(bits >> 8)) * 0x1p-24f; }  // in [0, 1)

// Box and Muller's two normal numbers. The angle is uniform: its sine from a quarter turn either way, the sign of its
// cosine from one more bit.
INLINE void two_normals(u8 one, u8 two, f8& a, f8& b) {
  f8 radius = square_root(maximum(log2_of(as_fraction(one) + 0x1p-24f) * (-2.f / kLog2E), all(0.f)));
  f8 x = (as_fraction(two) - 0.5f) * 3.14159265358979f, x2 = x * x;
  f8 sine = -2.5052108e-8f * x2 + 2.7557319e-6f;
  sine = ((((sine * x2 - 1.9841270e-4f) * x2 + 8.3333333e-3f) * x2 - 1.6666667e-1f) * x2 + 1.f) * x;
  f8 cosine = square_root(maximum(1.f - sine * sine, all(0.f)));
  a = radius * sine;
  b = (f8)((u8)(radius * cosine) ^ (two << 31));
}

// Adam's share of a constant gradient g: beside the gradients it remembers (second), g counts in the root too.
INLINE f8 pulled(f8 gradient, f8 second, float distance) {
  return distance * gradient * inverse_root(maximum(second + gradient * gradient, all(1e-37f)));
}

INLINE f8 decays_of(const Pending& pending, f8 last_update) {
  f8 decay = all(1.f);
  if (!pending.by_age) return decay;
  for (int l = 0; l < 8; l++) decay[l] = owed_at(pending, age_of(pending, last_update[l])).second_decay;
  return decay;
}

INLINE f8 square(f8 x) { return x * x; }

INLINE void pull(const Exploration& e, const Pending& pending, const f8* moment, f8 opacity, const f8* scale,
                 f8* column) {
  f8 unbiased = decays_of(pending, column[kLastUpdate]) * e.second_correction;
  f8 slope = e.opacity_weight * opacity * (1.f - opacity);
  column[kOpacityLogit] -=
      pulled(slope, square(moment[kSecondGeometry + kOpacityLogit]) * unbiased, e.opacity_distance);
  for (int j = 0; j < 3; j++)
    column[kLogScale + j] -=
        pulled(e.scale_weight * scale[j], square(moment[kSecondGeometry + kLogScale + j]) * unbiased, e.scale_distance);
}

INLINE void add_noise(const Exploration& e, u8 rows, f8 opacity, const f8* scale, f8* column) {
  f8 gate = 1.f / (1.f + exp_of(kGateSlope * (opacity - kGateMiddle)));
  i8 noisy = gate > kGateCutOff;
  if (!sign_bits(noisy)) return;
  f8 draw[4], R[9], q[4];
  two_normals(random_bits(rows, e.keys[0], e.keys[1]), random_bits(rows, e.keys[0], e.keys[2]), draw[0], draw[1]);
  two_normals(random_bits(rows, e.keys[0], e.keys[3]), random_bits(rows, e.keys[0], e.keys[4]), draw[2], draw[3]);
  const f8* stored = column + kRotation;
  f8 norm = stored[0] * stored[0] + stored[1] * stored[1] + stored[2] * stored[2] + stored[3] * stored[3];
  f8 inverse = 1.f / square_root(maximum(norm, all(1e-24f)));
  for (int j = 0; j < 4; j++) q[j] = stored[j] * inverse;
  rotation_matrix(q, R);
  f8 along[3];  // diag(s^2) Rt draw
  for (int j = 0; j < 3; j++)
    along[j] = scale[j] * scale[j] * (R[j] * draw[0] + R[3 + j] * draw[1] + R[6 + j] * draw[2]);
  for (int i = 0; i < 3; i++) column[kMean + i] += keep_where(noisy, e.noise * gate * dot3(R + 3 * i, along));
}

}  // namespace

void explore(ThreadPool& pool, Table& table, const Exploration& e) {
  pool.each((table.count + kRowsPerTask - 1) / kRowsPerTask, [&](int task, int) {
    const int end = (task + 1) * kRowsPerTask < table.count ? (task + 1) * kRowsPerTask : table.count;
    for (int i = task * kRowsPerTask; i < end; i += 8) {
      const int n = end - i < 8 ? end - i : 8;
      uint32_t rows[8];
      for (int l = 0; l < 8; l++) rows[l] = uint32_t(l < n ? i + l : i);
      u8 numbers;
      memcpy(&numbers, rows, sizeof numbers);
      f8 column[kGeometryWidth], moment[kGeometryMomentsWidth], scale[3];
      load_geometry(table.geometry, rows, column);
      load_moments(table.geometry_moments, rows, moment);
      f8 opacity = 1.f / (1.f + exp_of(-column[kOpacityLogit]));
      for (int j = 0; j < 3; j++) scale[j] = exp2_of(clamp(column[kLogScale + j] * kLog2E, all(-60.f), all(60.f)));
      pull(e, table.pending, moment, opacity, scale, column);
      if (e.noise != 0) add_noise(e, numbers, opacity, scale, column);
      transpose(column);
      transpose(column + 8);
      for (int l = 0; l < n; l++) {
        float* row = table.geometry + size_t(i + l) * kGeometryWidth;
        store(row, column[l]);
        store(row + 8, column[8 + l]);
      }
    }
  });
}

}  // namespace splat::SPLAT_LEVEL
