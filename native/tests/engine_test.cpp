// The engine without Python, small enough for the sanitizers: every pass, awkward sizes, several thread counts.
// Says what failed and exits 1, or prints how much it checked.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "../engine.hpp"

using namespace splat;

namespace {

int checks = 0, failures = 0;

void check(bool condition, const char* what) {
  checks++;
  if (!condition) failures++, std::printf("FAILED: %s\n", what);
}

struct Model {
  int count;
  std::vector<float> geometry, harmonics, moments, first, second;
  std::vector<Owed> owed = std::vector<Owed>(kPendingAges);

  explicit Model(int n, unsigned seed = 1)
      : count(n), geometry(size_t(n) * kGeometryWidth), harmonics(size_t(n) * kHarmonicsWidth), moments(size_t(n) * kGeometryMomentsWidth),
        first(size_t(n) * kHarmonicsWidth), second(size_t(n) * kHarmonicsWidth) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int i = 0; i < n; i++) {
      float* g = &geometry[size_t(i) * kGeometryWidth];
      for (int k = 0; k < 3; k++) g[kMean + k] = normal(random), g[kLogScale + k] = -3 + normal(random);
      for (int k = 0; k < 4; k++) g[kRotation + k] = normal(random);
      g[kOpacityLogit] = 2 * normal(random), g[kFilter] = 0.01f;
      if (i % 17 == 3) g[kLogScale] = 4;                                      // huge
      if (i % 19 == 5) g[kLogScale + 1] = -25;                                // collapsed
      if (i % 23 == 7) g[kMean + 2] = -50;                                    // behind
      if (i % 29 == 11) g[kMean] = std::numeric_limits<float>::quiet_NaN();   // broken
      if (i % 31 == 13) g[kLogScale + 2] = std::numeric_limits<float>::infinity();
    }
    for (float& h : harmonics) h = 0.3f * normal(random);
    for (int age = 0; age < kPendingAges; age++)
      owed[age] = {0.1f * (1 - std::pow(0.9f, float(age))), 0.01f * (1 - std::pow(0.9f, float(age))), std::pow(0.9f, float(age)), std::pow(0.999f, float(age))};
  }

  Table table(int step) {
    Table t;
    t.count = count, t.geometry = geometry.data(), t.harmonics = harmonics.data();
    t.geometry_moments = moments.data(), t.harmonics_first = first.data(), t.harmonics_second = second.data();
    if (step > 0) {
      t.pending.step = step, t.pending.by_age = owed.data();
      for (float& rate : t.pending.rates) rate = 1e-3f;
      t.pending.rate_dc = 1e-3f, t.pending.rate_rest = 1e-4f;
    }
    return t;
  }
};

Camera camera_of(int width, int height, float turn) {
  Camera c = {};
  const float cosine = std::cos(turn), sine = std::sin(turn);
  const float rotation[9] = {cosine, 0, sine, 0, 1, 0, -sine, 0, cosine};
  std::memcpy(c.rotation, rotation, sizeof rotation);
  c.translation[2] = 4;
  for (int k = 0; k < 3; k++) c.position[k] = -rotation[6 + k] * 4;
  c.fx = c.fy = float(width), c.cx = 0.5f * width, c.cy = 0.5f * height, c.width = width, c.height = height;
  c.slope_low_x = -0.65f, c.slope_high_x = 0.65f, c.slope_low_y = -0.65f * height / width, c.slope_high_y = 0.65f * height / width;
  return c;
}

// A few training steps; returns the parameters they lead to.
std::vector<float> trained(const Kernels& kernels, int threads, int count, int width, int height, int degree, bool absolute) {
  Engine engine(threads);
  Model model(count);
  const size_t pixels = size_t(width) * height;
  std::vector<float> color(3 * pixels), transmittance(pixels), gradient(3 * pixels);
  std::vector<uint8_t> photo(3 * pixels, 128);
  for (int step = 1; step <= 3; step++) {
    engine.table = model.table(step - 1), engine.camera = camera_of(width, height, 0.5f * step);
    engine.settings.sh_degree = degree, engine.settings.absolute_gradients = absolute;
    kernels.project(engine), kernels.sort_by_depth(engine), kernels.bin(engine);
    kernels.blend_forward(engine, color.data(), transmittance.data());
    const LossValue value = kernels.loss(engine, width, height, color.data(), photo.data(), 0.2f, gradient.data());
    check(std::isfinite(value.l1) && std::isfinite(value.ssim), "the loss is finite");
    kernels.blend_backward(engine, gradient.data(), nullptr);
    AdamStep adam;
    adam.number = step, adam.rate_dc = adam.rate_rest = 1e-3f, adam.second_correction = 1 / std::sqrt(1 - std::pow(0.999f, float(step)));
    for (float& rate : adam.rates) rate = 1e-3f;
    kernels.update(engine, step == 2 ? nullptr : &adam);
  }
  Table table = model.table(3);
  kernels.settle(engine.pool, table);
  std::vector<float> result = model.geometry;
  result.insert(result.end(), model.harmonics.begin(), model.harmonics.end());
  result.insert(result.end(), color.begin(), color.end());
  return result;
}

void same_bits_for_any_number_of_threads(const Kernels& kernels) {
  const int sizes[][2] = {{1, 1}, {7, 5}, {33, 17}, {100, 64}};
  for (auto& size : sizes)
    for (int count : {0, 1, 9, 300}) {
      const int degree = (size[0] + count) % 4;
      const auto one = trained(kernels, 1, count, size[0], size[1], degree, true);
      for (int threads : {2, 3, 5}) {
        const auto many = trained(kernels, threads, count, size[0], size[1], degree, true);
        check(one.size() == many.size() && !std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), "the same bits for any number of threads");
      }
    }
}

void instruction_sets_agree(const Kernels& a, const Kernels& b) {
  const auto one = trained(a, 2, 300, 100, 64, 3, false), two = trained(b, 2, 300, 100, 64, 3, false);
  size_t apart = 0;
  for (size_t i = 0; i < one.size(); i++) apart += std::isfinite(one[i]) && std::fabs(one[i] - two[i]) > 1e-2f * (1 + std::fabs(one[i]));
  check(apart * 100 < one.size(), "instruction sets agree to rounding");
}

void rows_and_neighbours() {
  ThreadPool pool(3);
  Model model(500, 7);
  std::vector<float> points(3 * 500), distance(500), taken(500 * kGeometryWidth);
  for (int i = 0; i < 500; i++)
    for (int k = 0; k < 3; k++) points[3 * i + k] = float((i * 37 + k * 11) % 101);
  neighbour_distance(pool, 500, points.data(), distance.data());
  for (float d : distance) check(d >= 0 && d < 1e5f, "neighbour distances are sensible");
  std::vector<int64_t> order(500);
  morton_order(pool, 500, points.data(), 3, order.data());
  std::vector<bool> met(500);
  for (int64_t row : order) check(row >= 0 && row < 500 && !met[size_t(row)], "the Morton order is a permutation"), met[size_t(row)] = true;
  bool zeroed[500] = {};
  zeroed[3] = true;
  take_rows(pool, 500, kGeometryWidth, model.geometry.data(), order.data(), zeroed, taken.data());
  check(taken[3 * kGeometryWidth] == 0, "fresh rows are zero");
  std::vector<Camera> cameras = {camera_of(64, 48, 0), camera_of(64, 48, 2)};
  kernels().sampling_distance(pool, 500, points.data(), 2, cameras.data(), distance.data());
  check(distance[0] > 0, "sampling distances are positive");
}

}  // namespace

int main() {
  const Kernels* list[4];
  const int sets = available_kernels(list);
  for (int i = 0; i < sets; i++) same_bits_for_any_number_of_threads(*list[i]);
  for (int i = 1; i < sets; i++) instruction_sets_agree(*list[0], *list[i]);
  rows_and_neighbours();
  std::printf("%d checks, %d failures, instruction sets:", checks, failures);
  for (int i = 0; i < sets; i++) std::printf(" %s", list[i]->name);
  std::printf("\n");
  return failures ? 1 : 0;
}
