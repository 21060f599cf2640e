#include "frame.hpp"

#include <algorithm>
#include <cmath>

namespace splat::card {
namespace {

constexpr double kBeyond = 0.15;  // of the image's size: from there on the Jacobian is frozen
constexpr float kSigmas = 3.34f;  // sqrt(2 ln 255), where an opacity of one has fallen to 1/255

float steepest(float low, float high) { return std::sqrt(1 + std::max(low * low, high * high)); }

}  // namespace

Frame frame_of(const View& v, const Settings& s) {
  Frame f = {};
  for (int k = 0; k < 9; k++) f.rotation[k] = float(v.rotation[k]);
  for (int k = 0; k < 3; k++) {
    f.translation[k] = float(v.translation[k]);
    f.background[k] = s.background[k];
    f.position[k] = float(-(v.rotation[k] * v.translation[0] + v.rotation[3 + k] * v.translation[1] +
                            v.rotation[6 + k] * v.translation[2]));
  }
  f.fx = float(v.fx);
  f.fy = float(v.fy);
  f.cx = float(v.cx);
  f.cy = float(v.cy);
  f.width = v.width;
  f.height = v.height;
  f.slope_low_x = float(-(v.cx + kBeyond * v.width) / v.fx);
  f.slope_high_x = float((v.width - v.cx + kBeyond * v.width) / v.fx);
  f.slope_low_y = float(-(v.cy + kBeyond * v.height) / v.fy);
  f.slope_high_y = float((v.height - v.cy + kBeyond * v.height) / v.fy);
  f.kernel_size = s.kernel_size;
  f.compensate = s.compensate;
  f.max_alpha = s.max_alpha;
  f.sh_degree = s.sh_degree;
  f.tile_columns = (v.width + kTileSide - 1) / kTileSide;
  f.tile_rows = (v.height + kTileSide - 1) / kTileSide;
  return f;
}

// What a row owes has a bound, because Adam's |m| / sqrt(v) has one (Cauchy-Schwarz).
Frustum frustum_of(const Frame& frame, const Pending& pending, const float* by_age) {
  Frustum f = {};
  float away = 0;
  f.growth = 1;
  if (by_age && anything_moves(reinterpret_cast<const Owed*>(by_age))) {
    const float* oldest = by_age + 4 * (kPendingAges - 1);
    const float beta1 = by_age[4 + 2], beta2 = by_age[4 + 3];
    const float most = 1.01f * (1 - beta1) / std::sqrt((1 - beta2) * (1 - beta1 * beta1 / beta2));
    away = std::sqrt(3.f) * most * oldest[1];
    f.growth = std::exp(most * oldest[0] * pending.rates[kLogScale]);
  }
  const float blur = kSigmas * std::sqrt(frame.kernel_size) + 1, *W = frame.rotation, *t = frame.translation;
  const float focal[2] = {frame.fx, frame.fy}, middle[2] = {frame.cx, frame.cy},
              size[2] = {float(frame.width), float(frame.height)};
  const float stretch[2] = {steepest(frame.slope_low_x, frame.slope_high_x),
                            steepest(frame.slope_low_y, frame.slope_high_y)};
  for (int side = 0; side < 4; side++) {  // left, right, top, bottom: f x + m z + sigmas f stretch radius > 0
    const int axis = side / 2;
    const float along = side % 2 ? -focal[axis] : focal[axis],
                deep = (side % 2 ? size[axis] - middle[axis] : middle[axis]) + blur;
    for (int k = 0; k < 3; k++) f.normal[side][k] = along * W[3 * axis + k] + deep * W[6 + k];
    f.offset[side] = along * t[axis] + deep * t[2] + (std::fabs(along) + std::fabs(deep)) * away;
    f.per_radius[side] = kSigmas * focal[axis] * stretch[axis];
  }
  for (int k = 0; k < 3; k++) f.normal[4][k] = W[6 + k];
  f.offset[4] = t[2] - kNear + away;
  return f;
}

Pending pending_of(int step, const Rates& rates, const float* by_age) {
  Pending p = {};
  p.step = step;
  spread_rates(rates, 1, 1, p.rates, p.rate_dc, p.rate_rest);  // the means' rate is in the mean drift
  p.log2_second_decay = float(std::log2(double(by_age[4 + 3])));
  return p;
}

Adam adam_of(int number, const Rates& rates, const AdamConstants& c) {
  Adam a = {};
  a.number = number;
  a.beta1 = float(c.beta1);
  a.beta2 = float(c.beta2);
  a.epsilon = float(c.epsilon);
  a.rest1 = float(1 - c.beta1);
  a.rest2 = float(1 - c.beta2);
  a.second_correction = float(1 / std::sqrt(1 - std::pow(c.beta2, number)));
  spread_rates(rates, 1 / (1 - std::pow(c.beta1, number)), float(rates.mean), a.rates, a.rate_dc, a.rate_rest);
  return a;
}

ViewPoint view_point_of(const View& v) {
  ViewPoint p = {};
  for (int k = 0; k < 9; k++) p.rotation[k] = float(v.rotation[k]);
  for (int k = 0; k < 3; k++) p.translation[k] = float(v.translation[k]);
  p.fx = float(v.fx);
  p.fy = float(v.fy);
  p.cx = float(v.cx);
  p.cy = float(v.cy);
  p.width = float(v.width);
  p.height = float(v.height);
  return p;
}

}  // namespace splat::card
