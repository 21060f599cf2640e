// Pass 1: every Gaussian to the screen; a splat, its depth and its number of pairs for those that can be seen.
#include "ellipse.hpp"
#include "projection.hpp"

namespace splat::card {

// A quick look from the row alone, before what it owes is known and its moments are read.
INLINE bool may_be_seen(const Frustum& f, const float* column) {
  const float largest = fmaxf(fmaxf(column[kLogScale], column[kLogScale + 1]), column[kLogScale + 2]);
  const float radius = f.growth * scale_of(largest) + column[kFilter];
  bool outside = false;
  UNROLL for (int side = 0; side < 5; side++) outside |=
      dot3(f.normal[side], column + kMean) + f.offset[side] + f.per_radius[side] * radius <= 0.f;
  return !outside;
}

// NaN and infinities would pass through min and max as ordinary numbers.
INLINE bool all_finite(const float* column) {
  float sum = 0;
  UNROLL for (int j = 0; j <= kFilter; j++) sum += column[j];
  return is_finite(sum);
}

// The ellipse, without its colour; false if it reaches no pixel. Here a little too much is fine, too little is not.
INLINE bool ellipse_of(const Frame& f, const Projection& o, Splat& s) {
  const float compensation = f.compensate ? root(divide(o.det_before, o.det_after)) : 1.f;
  const float opacity = o.opacity * o.ratio[0] * o.ratio[1] * o.ratio[2] * compensation;
  const float reach = log2_of(fmaxf(opacity * 255.f, 1e-30f)), radius2 = fmaxf(reach * (2.f / kLog2E), 0.f);
  const float half_width = root(radius2 * o.a), half_height = root(radius2 * o.c), per_a = inverse(o.a);
  const float x = f.fx * o.t[0] * o.inverse_z + f.cx, y = f.fy * o.t[1] * o.inverse_z + f.cy;
  s.centre = make_float4(x, y, o.b * per_a, reach - kLog2Of255);
  s.shape = make_float4(0.5f * kLog2E * per_a, divide(0.5f * kLog2E * o.a, o.det_after), half_width, half_height);
  return reach > 0.f && o.det_after > 0.f && half_width < 1e9f && half_height < 1e9f && x + half_width > 0.5f &&
         x - half_width < f.width - 0.5f && y + half_height > 0.5f && y - half_height < f.height - 0.5f;
}

INLINE float4 colour_of(const ProjectArguments& a, const float* mean, size_t row, int age) {
  float d[3], inverse_length, basis[16], colour[3] = {0.5f, 0.5f, 0.5f};
  view_direction(a.frame, mean, d, inverse_length);
  harmonics_basis(d, basis);
  each_harmonic(a.frame, a.pending, a.harmonics, a.first_moments, row, age,
                [&](int k, float h) { colour[k % 3] += basis[k / 3] * h; });
  const u32 clamp_bits = (colour[0] < 0.f ? 1u : 0u) | (colour[1] < 0.f ? 2u : 0u) | (colour[2] < 0.f ? 4u : 0u);
  return make_float4(fmaxf(colour[0], 0.f), fmaxf(colour[1], 0.f), fmaxf(colour[2], 0.f), __uint_as_float(clamp_bits));
}

// Thread: one row.
KERNEL(kProjectThreads, project, ProjectArguments) {
  const u32 row = thread_number();
  if (row >= u32(a.count)) return;
  store(a.tiles, row, 0u);
  Row g = load_row(a.geometry, row);
  if (!may_be_seen(a.frustum, g.v)) return;
  const int age = age_of(a.pending, g.v[kLastUpdate]);
  if (age) {
    float first[12];
    load_first_moments(a.moments, row, first);
    catch_up(a.pending, owed_at(a.pending, age), first, g.v);
  }
  float t[3];
  to_camera(a.frame, g.v, t);
  if (!all_finite(g.v) || !(t[2] > kNear)) return;
  Projection o;
  Splat s;
  project_row(a.frame, g.v, o);
  if (!ellipse_of(a.frame, o, s)) return;
  s.colour = colour_of(a, g.v, row, age);
  u32 pairs = 0;
  each_run(a.frame, s, [&](int, int from, int to) { pairs += u32(to - from + 1); });
  store4(a.splats, size_t(row) * 3, s.centre);
  store4(a.splats, size_t(row) * 3 + 1, s.shape);
  store4(a.splats, size_t(row) * 3 + 2, s.colour);
  store(a.depths, row, __float_as_uint(o.t[2]));
  // Visible, as the CPU engine counts it, even if no pixel centre lies inside: then it has no pair, and a visit all
  // the same.
  store(a.tiles, row, pairs | kVisible);
}

}  // namespace splat::card
