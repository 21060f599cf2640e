#include "self_test.hpp"

#include <cmath>
#include <cstring>
#include <vector>

namespace splat {
namespace {

// Rounding makes up to 1e-5, a pixel where alpha just misses 1/255 up to 1e-3, a wrong pass more than 0.01.
constexpr double kTolerance = 3e-3;
constexpr int kCount = 300, kWidth = 77, kHeight = 45, kStep = 6;  // no multiples of a vector or a tile

class Noise {  // the same on every machine
 public:
  float operator()(float low, float high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * float(state_ >> 40) * (1.f / (1 << 24));
  }

 private:
  uint64_t state_ = 1;
};

using Floats = std::vector<float>;

struct Scene {
  Floats geometry = Floats(kCount * kGeometryWidth), harmonics = Floats(kCount * kHarmonicsWidth);
  Floats moments = Floats(kCount * kGeometryMomentsWidth), first = harmonics, second = harmonics;
  std::vector<uint8_t> photo = std::vector<uint8_t>(3 * kWidth * kHeight);
  std::vector<Owed> owed = std::vector<Owed>(kPendingAges);
  Table table;
  Camera camera = {};

  Scene() {
    Noise noise;
    for (int i = 0; i < kCount; i++) place(i, noise);
    for (float& h : harmonics) h = noise(-0.3f, 0.3f);
    for (uint8_t& value : photo) value = uint8_t(noise(0, 255));
    // Adam's memory is as strong as the gradients: its step depends on them, and smoothly, not by their sign. First
    // moments are kept as a share of the second ones' root, see ops.py.
    for (size_t i = 0; i < moments.size(); i++)
      moments[i] = i % kGeometryMomentsWidth < kSecondGeometry ? noise(-0.1f, 0.1f) : 1e-4f;
    for (float& direction : first) direction = noise(-0.1f, 0.1f);
    for (float& root : second) root = 1e-5f;
    for (int age = 0; age < kPendingAges; age++) {
      const float kept = std::pow(0.9f, float(age));
      owed[age] = {5 * (1 - kept), 4e-3f * (1 - kept), kept, std::pow(0.999f, float(age))};
    }
    connect();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

 private:
  void place(int i, Noise& noise) {
    float* g = &geometry[size_t(i) * kGeometryWidth];
    for (int k = 0; k < 3; k++) {
      g[kMean + k] = noise(-1.5f, 1.5f);
      g[kLogScale + k] = noise(-4, -1);
    }
    for (int k = 0; k < 4; k++) g[kRotation + k] = noise(-1, 1);
    g[kOpacityLogit] = noise(-3, 4);
    g[kFilter] = 0.01f;
    if (i % 16 == 0) g[kLogScale] = -9;     // flat
    if (i % 16 == 5) g[kLogScale + 1] = 0;  // as large as the picture
    if (i % 16 == 9) g[kMean + 2] = -9;     // behind the camera
    g[kLastUpdate] = float(i % kStep);      // most rows owe steps
  }
  void connect() {
    table.count = kCount;
    table.geometry = geometry.data();
    table.harmonics = harmonics.data();
    table.geometry_moments = moments.data();
    table.harmonics_first = first.data();
    table.harmonics_second = second.data();
    Pending& pending = table.pending;
    pending.step = kStep - 1;
    pending.by_age = owed.data();
    pending.rate_dc = 2e-3f;
    pending.rate_rest = 1e-4f;
    for (float& rate : pending.rates) rate = 1e-3f;
    const float turn[9] = {0.96f, 0, 0.28f, 0, 1, 0, -0.28f, 0, 0.96f};
    std::memcpy(camera.rotation, turn, sizeof turn);
    camera.translation[2] = 4;
    for (int k = 0; k < 3; k++) camera.position[k] = -4 * turn[6 + k];
    camera.fx = camera.fy = 70;
    camera.cx = 38;
    camera.cy = 22.5f;
    camera.width = kWidth;
    camera.height = kHeight;
    camera.slope_low_x = -0.7f;
    camera.slope_high_x = 0.7f;
    camera.slope_low_y = -0.4f;
    camera.slope_high_y = 0.4f;
  }
};

struct Result {
  Floats color = Floats(3 * kWidth * kHeight), transmittance = Floats(kWidth * kHeight), loss_gradient = color;
  Floats geometry_gradient = Floats(kCount * kGeometryWidth), harmonics_gradient = Floats(kCount * kHarmonicsWidth);
  Floats exposed_gradient = color, exposure, cut_color = color, cut_gradient = geometry_gradient;
  Floats loss, distance = Floats(kCount), explored;
  Scene after;
};

AdamStep step_of() {
  AdamStep step;
  step.number = kStep;
  step.rate_dc = 2e-3f;
  step.rate_rest = 1e-4f;
  step.second_correction = 1;
  for (float& rate : step.rates) rate = 1e-3f;
  return step;
}

void explore(const Kernels& kernels, ThreadPool& pool, Result& r) {
  Exploration exploration;
  for (uint32_t k = 0; k < 5; k++) exploration.keys[k] = 17 + 29 * k;
  exploration.noise = 1e3f;
  exploration.opacity_weight = exploration.scale_weight = 0.01f;
  exploration.opacity_distance = exploration.scale_distance = 0.1f;
  r.explored = r.after.geometry;
  Table table = r.after.table;
  table.geometry = r.explored.data();
  kernels.explore(pool, table, exploration);
  for (size_t i = 0; i < r.explored.size(); i++) r.explored[i] -= r.after.geometry[i];
}

void blend_with_a_cut(const Kernels& kernels, Engine& engine, Result& r) {  // any image will do as a gradient
  engine.settings.light_cut = 0.05f;
  kernels.blend_forward(engine, r.cut_color.data(), r.transmittance.data());
  kernels.blend_backward(engine, r.cut_color.data(), nullptr);
  Floats harmonics(kCount * kHarmonicsWidth), mean2d(2 * kCount), absolute(kCount);
  bool visible[kCount] = {};
  kernels.gradients(engine, {r.cut_gradient.data(), harmonics.data(), mean2d.data(), absolute.data(), visible});
  engine.settings.light_cut = 0;
}

void run(const Kernels& kernels, Result& r) {
  Engine engine(1);
  Table& table = r.after.table;
  engine.table = table;
  engine.camera = r.after.camera;
  engine.settings.absolute_gradients = true;
  for (float& value : engine.settings.background) value = 0.4f;
  kernels.project(engine);
  kernels.sort_by_depth(engine);
  kernels.bin(engine);
  blend_with_a_cut(kernels, engine, r);
  kernels.blend_forward(engine, r.color.data(), r.transmittance.data());
  const LossValue value = kernels.loss(engine, kWidth, kHeight, r.color.data(), r.after.photo.data(), 0.2f,
                                       r.loss_gradient.data(), nullptr);
  r.loss = {float(value.l1), float(value.ssim)};
  Exposure exposure = {{0.9f, 0.1f, -0.05f, 0.02f, 0.05f, 1.2f, 0.1f, -0.03f, -0.1f, 0.05f, 0.8f, 0.01f}, {}};
  const LossValue exposed = kernels.loss(engine, kWidth, kHeight, r.color.data(), r.after.photo.data(), 0.2f,
                                         r.exposed_gradient.data(), &exposure);
  r.exposure = {float(exposed.l1), float(exposed.ssim)};
  for (double entry : exposure.gradient) r.exposure.push_back(float(entry));
  kernels.blend_backward(engine, r.loss_gradient.data(), nullptr);
  Floats mean2d(2 * kCount), absolute(kCount);
  bool visible[kCount] = {};
  kernels.gradients(engine,
                    {r.geometry_gradient.data(), r.harmonics_gradient.data(), mean2d.data(), absolute.data(), visible});
  const AdamStep step = step_of();
  kernels.update(engine, &step);
  kernels.sampling_distance(engine.pool, kCount, r.after.harmonics.data(), 1, &r.after.camera, r.distance.data());
  for (float& d : r.distance) d = std::isfinite(d) ? d : 0;  // not seen
  table.pending.step = kStep;
  kernels.settle(engine.pool, table);
  explore(kernels, engine.pool, r);
}

// Relative to the trusted values' size; `before`: of what was added to it. Column by column, or all values together.
bool apart(const Floats& candidate, const Floats& trusted, const float* before = nullptr, int columns = 1) {
  for (int j = 0; j < columns; j++) {
    double error = 0, size = 0;
    for (size_t i = size_t(j); i < trusted.size(); i += size_t(columns)) {
      const double difference = double(candidate[i]) - trusted[i],
                   value = double(trusted[i]) - (before ? before[i] : 0);
      error += difference * difference;
      size += value * value;
    }
    if (!(error <= kTolerance * kTolerance * size)) return true;  // not a number is apart, too
  }
  return false;
}

}  // namespace

std::string disagreement(const Kernels& candidate, const Kernels& trusted) {
  const Scene before;
  Result a, b;
  run(candidate, a);
  run(trusted, b);
  if (apart(a.color, b.color) || apart(a.transmittance, b.transmittance)) return "the image";
  if (apart(a.cut_color, b.cut_color)) return "the image with a light cut";
  if (apart(a.cut_gradient, b.cut_gradient, nullptr, kGeometryWidth)) return "the gradient with a light cut";
  if (apart(a.loss, b.loss) || apart(a.loss_gradient, b.loss_gradient)) return "the loss";
  if (apart(a.exposure, b.exposure) || apart(a.exposed_gradient, b.exposed_gradient)) return "the exposure";
  if (apart(a.geometry_gradient, b.geometry_gradient, nullptr, kGeometryWidth)) return "the gradient of the geometry";
  if (apart(a.harmonics_gradient, b.harmonics_gradient)) return "the gradient of the harmonics";
  if (apart(a.after.geometry, b.after.geometry, before.geometry.data(), kGeometryWidth))
    return "the geometry after a step";
  if (apart(a.after.moments, b.after.moments, nullptr, kGeometryMomentsWidth) || apart(a.after.first, b.after.first))
    return "the moments after a step";
  if (apart(a.after.harmonics, b.after.harmonics, before.harmonics.data())) return "the harmonics after a step";
  if (apart(a.after.second, b.after.second)) return "the second moments after a step";
  if (apart(a.explored, b.explored, nullptr, kGeometryWidth)) return "the noise and pull of exploration";
  if (apart(a.distance, b.distance)) return "the sampling distance";
  return "";
}

}  // namespace splat
