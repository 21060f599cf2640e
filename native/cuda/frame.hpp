// From a camera and settings to what kernels take.
#pragma once
#include "../lazy_adam.hpp"  // rates and settings are the CPU engine's
#include "kernels/arguments.hpp"

namespace splat::card {

struct View {
  double rotation[9], translation[3];  // world to camera
  double fx, fy, cx, cy;
  int width, height;
};

Frame frame_of(const View& view, const Settings& settings);
// `by_age` is the host's copy of what pending.by_age points to, or null.
Frustum frustum_of(const Frame& frame, const Pending& pending, const float* by_age);
Pending pending_of(int step, const Rates& rates, const float* by_age);  // without the address
Adam adam_of(int number, const Rates& rates, const AdamConstants& constants);
ViewPoint view_point_of(const View& view);

}  // namespace splat::card
