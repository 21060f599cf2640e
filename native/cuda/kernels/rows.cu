// The rest of the trainer, row by row: settling, exploring, the 3D filter, opacity resets, what the host wants to know
// of a model, and moving rows.
#include "block.hpp"
#include "random.hpp"
#include "settling.hpp"

namespace splat::card {

// ---- settling ----------------------------------------------------------------------------------------------------
// Thread: four floats of a row. The first vectors are geometry's (0 to 2), the others harmonics' (3 to 14).
constexpr u32 kSettleVectors = 3 + kHarmonicsWidth / 4;

INLINE void settle_geometry(const SettleArguments& a, size_t row, u32 k, const float4& owed, const Decays& decays) {
  const float4 p = load4(a.geometry, row * 4 + k), m = load4(a.moments, row * 6 + k),
               v = load4(a.moments, row * 6 + 3 + k);
  store4(a.geometry, row * 4 + k, settled_geometry(a.pending, k, p, m, owed));
  store4(a.moments, row * 6 + k, faded_geometry(k, m, decays.first));
  store4(a.moments, row * 6 + 3 + k, faded_geometry(k, v, decays.second));
}
INLINE void settle_harmonics(const SettleArguments& a, size_t row, u32 k, const float4& owed, const Decays& decays) {
  const size_t at = row * 12 + k;
  const float4 p = load4(a.harmonics, at), m = load4(a.first_moments, at), v = load4(a.second_moments, at);
  store4(a.harmonics, at, settled_harmonics(a.pending, k, p, m, owed));
  store4(a.first_moments, at, faded(m, decays.first));
  store4(a.second_moments, at, faded(v, decays.second));
}

// After a loss that is not a number nothing moves, and the host need not wait to know.
INLINE bool is_stopped(const u32* stopped) { return stopped && fetch(stopped, 0); }

KERNEL(kThreads, settle, SettleArguments) {
  const u32 thread = thread_number(), k = thread % kSettleVectors;
  const size_t row = thread / kSettleVectors;
  if (row >= u32(a.count) || is_stopped(a.stopped)) return;
  const int age = age_of(a.pending, load(a.geometry, row * kGeometryWidth + kLastUpdate));
  if (age == 0) return;
  const float4 owed = owed_at(a.pending, age);
  const Decays decays = decays_of(owed);
  if (k < 3)
    settle_geometry(a, row, k, owed, decays);
  else
    settle_harmonics(a, row, k - 3, owed, decays);
}
// Last, because settle's threads read it.
KERNEL(kThreads, settled, SettleArguments) {
  const size_t row = thread_number(), at = row * kGeometryWidth + kLastUpdate;
  if (row < u32(a.count) && !is_stopped(a.stopped) && age_of(a.pending, load(a.geometry, at)))
    store(a.geometry, at, float(a.pending.step));
}

// ---- exploring: what 3DGS-MCMC adds (native/passes/explore.cpp) --------------------------------------------------
constexpr float kGateSlope = 100.f, kGateMiddle = 0.005f;  // opacities: the paper's k and t
constexpr float kGateCutOff = 1e-8f;                       // below this share of the noise none is added

// Adam's share of a constant gradient g: beside the gradients it remembers (second), g counts in the root too.
INLINE float pulled(float gradient, float second, float distance) {
  return distance * gradient * inverse_root(fmaxf(second + gradient * gradient, 1e-37f));
}
INLINE void pull(const ExploreArguments& a, const float* second, float opacity, const float* scale, float* column) {
  const int age = age_of(a.pending, column[kLastUpdate]);
  const float unbiased = (age ? owed_at(a.pending, age).w : 1.f) * a.second_correction,
              slope = a.opacity_weight * opacity * (1.f - opacity);
  column[kOpacityLogit] -= pulled(slope, second[kOpacityLogit] * second[kOpacityLogit] * unbiased, a.opacity_distance);
  UNROLL for (int j = kLogScale; j < kLogScale + 3; j++) column[j] -=
      pulled(a.scale_weight * scale[j - kLogScale], second[j] * second[j] * unbiased, a.scale_distance);
}
INLINE void add_noise(const ExploreArguments& a, u32 row, float opacity, const float* scale, float* column) {
  const float gate = inverse(1.f + exp2_of(clamped(kGateSlope * (opacity - kGateMiddle) * kLog2E, -125.f, 125.f)));
  if (!(gate > kGateCutOff)) return;
  float draw[3], R[9], q[4], along[3];  // diag(s^2) Rt draw
  three_normals(row, a.keys, draw);
  normalized(column + kRotation, q);
  rotation_matrix(q, R);
  UNROLL for (int j = 0; j < 3; j++) along[j] =
      scale[j] * scale[j] * (R[j] * draw[0] + R[3 + j] * draw[1] + R[6 + j] * draw[2]);
  UNROLL for (int i = 0; i < 3; i++) column[kMean + i] += a.noise * gate * dot3(R + 3 * i, along);
}

KERNEL(kThreads, explore, ExploreArguments) {
  const u32 row = thread_number();
  if (row >= u32(a.count) || is_stopped(a.stopped)) return;
  Row g = load_row(a.geometry, row);
  float second[12], scale[3];
  UNROLL for (int k = 0; k < 3; k++) {
    const float4 v = fetch4(a.moments, size_t(row) * 6 + 3 + k);
    second[4 * k] = v.x;
    second[4 * k + 1] = v.y;
    second[4 * k + 2] = v.z;
    second[4 * k + 3] = v.w;
  }
  const float opacity = opacity_of(g.v[kOpacityLogit]);
  UNROLL for (int j = 0; j < 3; j++) scale[j] = scale_of(g.v[kLogScale + j]);
  pull(a, second, opacity, scale, g.v);
  add_noise(a, row, opacity, scale, g.v);
  UNROLL for (int k = 0; k < 3; k++)
      store4(a.geometry, size_t(row) * 4 + k, make_float4(g.v[4 * k], g.v[4 * k + 1], g.v[4 * k + 2], g.v[4 * k + 3]));
}

// ---- the 3D filter -----------------------------------------------------------------------------------------------
constexpr float kBorder = 0.15f;  // a camera sees 15 % of its image's size beyond each border
constexpr float kNobody = 3.0e38f;

INLINE float nearest(const ViewPoint& c, const float* p, float best) {
  const float x = dot3(c.rotation, p) + c.translation[0], y = dot3(c.rotation + 3, p) + c.translation[1],
              z = dot3(c.rotation + 6, p) + c.translation[2];
  const float per_z = inverse(fmaxf(z, 0.001f)), u = x * per_z * c.fx + c.cx, v = y * per_z * c.fy + c.cy;
  const bool seen = z > kNear && u >= -kBorder * c.width && u <= (1 + kBorder) * c.width && v >= -kBorder * c.height &&
                    v <= (1 + kBorder) * c.height;
  return seen && z < best ? z : best;
}

// The smallest depth at which any camera sees a row's mean; cameras come through shared memory, 32 at a time.
KERNEL(kThreads, sampling_distance, FilterArguments) {
  constexpr int kAtOnce = 32, kFloats = sizeof(ViewPoint) / sizeof(float);
  SHARED(float, views, kAtOnce* kFloats);
  const u32 row = thread_number();
  const bool works = row < u32(a.count);
  float p[3] = {}, best = kNobody;
  if (works) UNROLL for (int k = 0; k < 3; k++) p[k] = fetch(a.geometry, size_t(row) * kGeometryWidth + kMean + k);
  for (int first = 0; first < a.cameras; first += kAtOnce) {
    const int here = min(kAtOnce, a.cameras - first);
    __syncthreads();
    for (int k = threadIdx.x; k < here * kFloats; k += kThreads) views[k] = fetch(&a.views[first].rotation[0], k);
    __syncthreads();
    for (int c = 0; c < here; c++) {
      ViewPoint view;
      UNROLL for (int k = 0; k < kFloats; k++)(&view.rotation[0])[k] = views[c * kFloats + k];
      best = nearest(view, p, best);
    }
  }
  const bool seen = works && best < kNobody;
  if (works) store(a.distance, row, best);
  const float farthest = block_reduce(seen ? best : 0.f, [](float x, float y) { return fmaxf(x, y); });
  const u32 count = block_sum(seen ? 1u : 0u);
  if (threadIdx.x == 0) {
    store(a.farthest, blockIdx.x, farthest);
    store(a.seen, blockIdx.x, count);
  }
}
KERNEL(kThreads, filter_top, FilterArguments) {
  float farthest = 0;
  u32 seen = 0;
  for (u32 k = threadIdx.x; k < a.blocks; k += kThreads) {
    farthest = fmaxf(farthest, load(a.farthest, k));
    seen += load(a.seen, k);
  }
  farthest = block_reduce(farthest, [](float x, float y) { return fmaxf(x, y); });
  seen = block_sum(seen);
  if (threadIdx.x == 0) {
    store(a.farthest, 0, farthest);
    store(a.seen, 0, seen);
  }
}
// Rows nobody sees get the coarsest filter of those somebody does; none if nobody sees any.
KERNEL(kThreads, filter_write, FilterArguments) {
  const u32 row = thread_number();
  if (row >= u32(a.count)) return;
  const float distance = fetch(a.distance, row);
  store(a.geometry, size_t(row) * kGeometryWidth + kFilter,
        (distance < kNobody ? distance : fetch(a.farthest, 0)) * a.factor);
}

// ---- opacities ---------------------------------------------------------------------------------------------------
constexpr double kResetOpacity = 0.01;

// Where the filtered opacity c o is above 0.01 the stored one becomes 0.01 / c; all forget the opacity's moments.
KERNEL(kThreads, reset_opacities, ResetArguments) {
  const size_t row = thread_number();
  if (row >= u32(a.count)) return;
  const Row g = load_row(a.geometry, row);
  const double filter = g.v[kFilter], opacity = 1 / (1 + exp(-double(g.v[kOpacityLogit])));
  double coefficient = 1;
  for (int j = kLogScale; j < kLogScale + 3; j++) {
    const double ratio = filter * exp(-double(g.v[j]));  // f / s; s / s' = 1 / sqrt(1 + (f / s)^2)
    coefficient /= sqrt(1 + ratio * ratio);
  }
  const double limited = kResetOpacity / coefficient;
  if (float(opacity * coefficient) > kResetOpacity)
    store(a.geometry, row * kGeometryWidth + kOpacityLogit, float(log(limited) - log1p(-limited)));
  store(a.moments, row * kGeometryMomentsWidth + kOpacityLogit, 0.f);
  store(a.moments, row * kGeometryMomentsWidth + kSecondGeometry + kOpacityLogit, 0.f);
}

// ---- what the host wants to know ---------------------------------------------------------------------------------
KERNEL(kThreads, summarize, SummaryArguments) {
  const u32 row = thread_number();
  double opacity = 0;
  u32 finite = 0;
  if (row < u32(a.count)) {
    opacity = 1 / (1 + exp(-double(fetch(a.geometry, size_t(row) * kGeometryWidth + kOpacityLogit))));
    bool all = true;
    for (int j = 0; j <= kFilter; j++) all &= is_finite(fetch(a.geometry, size_t(row) * kGeometryWidth + j));
    for (int k = 0; k < kHarmonicsWidth / 4; k++) {
      const float4 h = fetch4(a.harmonics, size_t(row) * 12 + k);
      all &= is_finite(h.x) && is_finite(h.y) && is_finite(h.z) && is_finite(h.w);
    }
    finite = all;
  }
  opacity = block_sum(opacity);
  finite = block_sum(finite);
  if (threadIdx.x == 0) store(a.sums, blockIdx.x, Summary{opacity, finite, 0});
}
KERNEL(kThreads, summary_top, SummaryArguments) {
  double opacity = 0;
  u32 finite = 0;
  for (u32 k = threadIdx.x; k < a.blocks; k += kThreads) {
    opacity += load(&a.sums[k].opacity, 0);
    finite += load(&a.sums[k].finite, 0);
  }
  opacity = block_sum(opacity);
  finite = block_sum(finite);
  if (threadIdx.x == 0) store(a.sums, 0, Summary{opacity, finite, 0});
}

}  // namespace splat::card
