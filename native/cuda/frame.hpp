// From a camera and settings to what kernels take.
#pragma once
#include "kernels/arguments.hpp"

namespace splat::card {

struct View {
  double rotation[9], translation[3];  // world to camera
  double fx, fy, cx, cy;
  int width, height;
};
struct DrawSettings {
  int sh_degree = 3;
  float kernel_size = 0.1f;
  bool compensate = true;
  float background[3] = {0, 0, 0};
  float max_alpha = 0.99f;
  bool absolute_gradients = false;
};
struct Rates { double mean, harmonics_dc, harmonics_rest, opacity, scale, rotation; };

Frame frame_of(const View& view, const DrawSettings& settings);
// `by_age` is the host's copy of what pending.by_age points to, or null.
Frustum frustum_of(const Frame& frame, const Pending& pending, const float* by_age);
Pending pending_of(int step, const Rates& rates, const float* by_age);  // without the address
Adam adam_of(int number, const Rates& rates, double beta1, double beta2, double epsilon);
ViewPoint view_point_of(const View& view);

}  // namespace splat::card
