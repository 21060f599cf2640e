// What the native tests share: a counter of checks, a model full of awkward Gaussians, a camera.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../engine.hpp"

namespace splat::testing {

void check(bool condition, const char* what);  // says what failed; the program goes on

using Floats = std::vector<float>;
using Bools = std::vector<uint8_t>;  // std::vector<bool> has no array of bool

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || !std::memcmp(a.data(), b.data(), a.size() * sizeof(float)));
}
inline double share_apart(const Floats& a, const Floats& b, float tolerance) {  // of the finite values
  size_t apart = 0;
  for (size_t i = 0; i < a.size(); i++)
    apart += std::isfinite(a[i]) && !(std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(a[i])));
  return a.size() == b.size() ? double(apart) / double(a.size() + 1) : 1;
}

struct Model {
  int count;
  Floats geometry, harmonics, moments, first, second;
  std::vector<Owed> owed = std::vector<Owed>(kPendingAges);

  explicit Model(int n, bool awkward = true, unsigned seed = 1)
      : count(n),
        geometry(size_t(n) * kGeometryWidth),
        harmonics(size_t(n) * kHarmonicsWidth),
        moments(size_t(n) * kGeometryMomentsWidth),
        first(size_t(n) * kHarmonicsWidth),
        second(size_t(n) * kHarmonicsWidth) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int i = 0; i < n; i++) {
      float* g = &geometry[size_t(i) * kGeometryWidth];
      for (int k = 0; k < 3; k++) {
        g[kMean + k] = normal(random);
        g[kLogScale + k] = -3 + normal(random);
      }
      for (int k = 0; k < 4; k++) g[kRotation + k] = normal(random);
      g[kOpacityLogit] = 2 * normal(random);
      g[kFilter] = 0.01f;
      if (awkward) spoil(i, g);
    }
    for (float& h : harmonics) h = 0.3f * normal(random);
    for (int age = 0; age < kPendingAges; age++) {
      const float kept = std::pow(0.9f, float(age));
      owed[size_t(age)] = {0.1f * (1 - kept), 0.01f * (1 - kept), kept, std::pow(0.999f, float(age))};
    }
  }

  Table table(int step) {
    Table t;
    t.count = count;
    t.geometry = geometry.data();
    t.harmonics = harmonics.data();
    t.geometry_moments = moments.data();
    t.harmonics_first = first.data();
    t.harmonics_second = second.data();
    if (step > 0) {
      t.pending.step = step;
      t.pending.by_age = owed.data();
      for (float& rate : t.pending.rates) rate = 1e-3f;
      t.pending.rate_dc = 1e-3f;
      t.pending.rate_rest = 1e-4f;
    }
    return t;
  }

 private:
  static void spoil(int i, float* g) {
    if (i % 17 == 3) g[kLogScale] = 4;                                     // huge
    if (i % 19 == 5) g[kLogScale + 1] = -25;                               // collapsed
    if (i % 23 == 7) g[kMean + 2] = -50;                                   // behind
    if (i % 29 == 11) g[kMean] = std::numeric_limits<float>::quiet_NaN();  // broken
    if (i % 31 == 13) g[kLogScale + 2] = std::numeric_limits<float>::infinity();
    if (i % 37 == 17) g[kOpacityLogit] = -1e30f;                                           // transparent
    if (i % 41 == 19) std::memcpy(g, g - kGeometryWidth, kGeometryWidth * sizeof(float));  // exactly overlapping
  }
};

inline Camera camera_of(int width, int height, float turn) {
  Camera c = {};
  const float cosine = std::cos(turn), sine = std::sin(turn);
  const float rotation[9] = {cosine, 0, sine, 0, 1, 0, -sine, 0, cosine};
  std::memcpy(c.rotation, rotation, sizeof rotation);
  c.translation[2] = 4;
  for (int k = 0; k < 3; k++) c.position[k] = -rotation[6 + k] * 4;
  c.fx = c.fy = float(width);
  c.cx = 0.5f * width;
  c.cy = 0.5f * height;
  c.width = width;
  c.height = height;
  c.slope_low_x = -0.65f;
  c.slope_high_x = 0.65f;
  c.slope_low_y = -0.65f * height / width;
  c.slope_high_y = 0.65f * height / width;
  return c;
}

inline AdamStep adam_step(int number) {
  AdamStep adam;
  adam.number = number;
  adam.rate_dc = adam.rate_rest = 1e-3f;
  adam.second_correction = 1 / std::sqrt(1 - std::pow(0.999f, float(number)));
  for (float& rate : adam.rates) rate = 1e-3f;
  return adam;
}

void test_training(const Kernels&);  // training_test.cpp
void test_agreement(const Kernels&, const Kernels&);
void test_step(const Kernels&);    // step_test.cpp
void test_images(const Kernels&);  // images_test.cpp
void test_space(const Kernels&);   // space_test.cpp
void test_choice();                // choice_test.cpp
void test_pool();                  // pool_test.cpp

}  // namespace splat::testing
