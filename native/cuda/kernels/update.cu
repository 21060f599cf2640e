// Pass 7: projection backward and Adam for each visible Gaussian in one go; its gradient never reaches memory. A thread
// has a row's geometry; then the warp does the harmonics of its rows together, two rows at a time, twelve vectors each.
#include "gradient.hpp"

namespace splat::card {

constexpr int kShare = 24;  // floats a row hands to its warp: basis 0 to 15, colour 16 to 18, drift and decays 19 to 21
constexpr int kShareColour = 16, kShareDrift = 19, kShareDecays = 20;

// One step of Adam for a rate of 1. Moments are kept as m / sqrt(v) and sqrt(v), see Table in ops.py.
INLINE float descent(const Adam& adam, float gradient, float decay1, float decay2, float& first, float& second) {
  const float m = first * second * (adam.beta1 * decay1) + adam.rest1 * gradient;
  const float v = second * second * (adam.beta2 * decay2) + adam.rest2 * gradient * gradient;
  second = root(v);
  const float step = m * inverse(second * adam.second_correction + adam.epsilon);
  first = step * adam.second_correction;
  return step;
}

INLINE float4 four(const float* v) { return make_float4(v[0], v[1], v[2], v[3]); }

template <class Memory>
INLINE void hand_over(const Gradient& g, const float4& owed, Memory share) {
  const int mine = threadIdx.x * kShare;
  UNROLL for (int j = 0; j < 16; j++) share[mine + j] = g.basis[j];
  UNROLL for (int c = 0; c < 3; c++) share[mine + kShareColour + c] = g.colour[c];
  share[mine + kShareDrift] = owed.x;
  share[mine + kShareDecays] = owed.z;
  share[mine + kShareDecays + 1] = owed.w;
}

// A row that some pixel saw: statistics, and with a step its geometry. Without one rows stay as far behind as they
// were.
template <class Memory>
INLINE void update_row(const UpdateArguments& a, u32 row, Row g, const PairSums& s, Memory share) {
  const int age = age_of(a.pending, g.v[kLastUpdate]);
  const float4 owed = age ? owed_at(a.pending, age) : make_float4(0.f, 0.f, 1.f, 1.f);
  const float4 statistics = make_float4(g.v[kGradientSum], g.v[kAbsoluteSum], g.v[kVisits] + 1.f, g.v[kLastUpdate]);
  float m[kGeometryMomentsWidth];
  UNROLL for (int k = 0; k < 6; k++) {
    const float4 q = load4(a.moments, size_t(row) * 6 + k);
    m[4 * k] = q.x;
    m[4 * k + 1] = q.y;
    m[4 * k + 2] = q.z;
    m[4 * k + 3] = q.w;
  }
  if (age) catch_up(a.pending, owed, m, g.v);
  Gradient d;
  differentiate(a, g.v, row, age, s, d);
  const float x = d.mean2d[0] * (0.5f * a.frame.width), y = d.mean2d[1] * (0.5f * a.frame.height);
  const float4 counted = make_float4(statistics.x + root(x * x + y * y), statistics.y + s.absolute, statistics.z,
                                     a.with_step ? float(a.adam.number) : statistics.w);
  store4(a.geometry, size_t(row) * 4 + 3, counted);
  if (!a.with_step) return;
  UNROLL for (int j = 0; j < kOptimized; j++) g.v[j] -=
      a.adam.rates[j] * descent(a.adam, d.column[j], owed.z, owed.w, m[j], m[kSecondGeometry + j]);
  UNROLL for (int k = 0; k < 3; k++) store4(a.geometry, size_t(row) * 4 + k, four(g.v + 4 * k));
  UNROLL for (int k = 0; k < 6; k++) store4(a.moments, size_t(row) * 6 + k, four(m + 4 * k));
  hand_over(d, owed, share);
}

// Four harmonics of a row whose thread has left what they need in shared memory.
template <class Memory>
INLINE void update_vector(const UpdateArguments& a, u32 row, int vector, int base, Memory share) {
  const size_t at = size_t(row) * 12 + vector;
  const int active = active_harmonics(a.frame);
  const float4 p4 = load4(a.harmonics, at), m4 = load4(a.first_moments, at), v4 = load4(a.second_moments, at);
  float p[4] = {p4.x, p4.y, p4.z, p4.w}, m[4] = {m4.x, m4.y, m4.z, m4.w}, v[4] = {v4.x, v4.y, v4.z, v4.w};
  const float drift = share[base + kShareDrift], decay1 = share[base + kShareDecays],
              decay2 = share[base + kShareDecays + 1];
  UNROLL for (int j = 0; j < 4; j++) {
    const int k = 4 * vector + j, coefficient = k / 3, channel = k - 3 * coefficient;
    const float gradient =
        k < active ? float(share[base + coefficient]) * float(share[base + kShareColour + channel]) : 0.f;
    p[j] -= m[j] * ((k < 3 ? a.pending.rate_dc : a.pending.rate_rest) * drift);
    p[j] -= (k < 3 ? a.adam.rate_dc : a.adam.rate_rest) * descent(a.adam, gradient, decay1, decay2, m[j], v[j]);
  }
  store4(a.harmonics, at, four(p));
  store4(a.first_moments, at, four(m));
  store4(a.second_moments, at, four(v));
}

KERNEL(kUpdateThreads, update, UpdateArguments) {
  SHARED(float, share, kUpdateThreads* kShare);
  if (fetch(a.stopped, 0)) return;  // the loss of this step or of one before is not a number
  const u32 i = thread_number();
  bool seen = false;
  u32 row = 0;
  if (i < fetch(&a.counters->visible, 0)) {
    row = fetch(a.rows, i);
    PairSums s;
    seen = gather(a, row, s);
    if (seen)
      update_row(a, row, load_row(a.geometry, row), s, share);
    else
      store(a.geometry, size_t(row) * kGeometryWidth + kVisits,
            load(a.geometry, size_t(row) * kGeometryWidth + kVisits) + 1.f);
  }
  u32 rows = __ballot_sync(kAllLanes, seen && a.with_step);
  __syncwarp();
  const int vector = lane_number() & 15, active = active_harmonics(a.frame);
  while (rows) {
    const int one = __ffs(int(rows)) - 1;
    rows &= rows - 1;
    const int two = rows ? __ffs(int(rows)) - 1 : one, who = lane_number() < 16 ? one : two;
    rows &= rows - 1;
    const u32 its_row = __shfl_sync(kAllLanes, row, who);
    const bool works = 4 * vector < active && !(lane_number() >= 16 && two == one);
    if (works) update_vector(a, its_row, vector, (warp_number() * 32 + who) * kShare, share);
  }
}

// The unfused twin, for tests: gradients to memory.
KERNEL(kUpdateThreads, gradients, UpdateArguments) {
  const u32 i = thread_number();
  if (i >= fetch(&a.counters->visible, 0)) return;
  const u32 row = fetch(a.rows, i);
  store(a.visible, row, u8(1));
  PairSums s;
  if (!gather(a, row, s)) return;
  Row g = load_row(a.geometry, row);
  const int age = age_of(a.pending, g.v[kLastUpdate]);
  if (age) {
    float first[12];
    load_first_moments(a.moments, row, first);
    catch_up(a.pending, owed_at(a.pending, age), first, g.v);
  }
  Gradient d;
  differentiate(a, g.v, row, age, s, d);
  for (int j = 0; j < kOptimized; j++) store(a.geometry_gradient, size_t(row) * kGeometryWidth + j, d.column[j]);
  const int active = active_harmonics(a.frame);
  UNROLL for (int k = 0; k < kHarmonicsWidth; k++) if (k < active)
      store(a.harmonics_gradient, size_t(row) * kHarmonicsWidth + k, d.basis[k / 3] * d.colour[k % 3]);
  store(a.mean2d, 2 * size_t(row), d.mean2d[0] * (0.5f * a.frame.width));
  store(a.mean2d, 2 * size_t(row) + 1, d.mean2d[1] * (0.5f * a.frame.height));
  store(a.absolute, row, s.absolute);
}

}  // namespace splat::card
