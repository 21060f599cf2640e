// Neighbours, Morton order, moved rows and sampling distances, against the plainest code that gives them.
#include <algorithm>

#include "testing.hpp"

namespace splat::testing {
namespace {

Floats points_of(int count, unsigned seed) {
  std::mt19937 random(seed);
  Floats points(3 * size_t(count));
  for (float& p : points) p = float(random() % 1000) * 0.01f;
  for (int i = 6; i + 3 <= int(points.size()) && i < 60; i += 9)
    std::copy_n(points.begin(), 3, points.begin() + i);  // the same point again
  return points;
}

float plain_neighbour_distance(const Floats& points, size_t self) {
  std::vector<float> squares;
  for (size_t i = 0; i < points.size() / 3; i++) {
    float sum = 0;
    for (size_t k = 0; k < 3; k++)
      sum += (points[3 * i + k] - points[3 * self + k]) * (points[3 * i + k] - points[3 * self + k]);
    if (i != self) squares.push_back(sum);
  }
  std::sort(squares.begin(), squares.end());
  const size_t n = std::min<size_t>(3, squares.size());
  float sum = 0;
  for (size_t i = 0; i < n; i++) sum += squares[i];
  return n ? sum / float(n) : 0;
}

void neighbours_are_the_nearest() {
  for (int count : {0, 1, 2, 3, 4, 9, 700, 2500}) {
    const Floats points = points_of(count, 3);
    Floats one(size_t(count), -1), three = one;
    ThreadPool alone(1), pool(3);
    neighbour_distance(alone, count, points.data(), one.data());
    neighbour_distance(pool, count, points.data(), three.data());
    for (int i = 0; i<count; i += count> 1000 ? 7 : 1)
      check(std::fabs(one[size_t(i)] - plain_neighbour_distance(points, size_t(i))) < 1e-4f,
            "neighbours are the nearest");
    check(same_bits(one, three), "neighbours are the same for any number of threads");
  }
}

void rows_move_in_morton_order() {
  for (int count : {0, 1, 2, 500, 20000}) {
    Floats points = points_of(count, 4);
    if (count > 100) {
      points[33] = std::numeric_limits<float>::quiet_NaN();
      points[66] = std::numeric_limits<float>::infinity();
    }
    std::vector<int64_t> order(size_t(count), -1), other = order;
    ThreadPool alone(1), pool(5);
    morton_order(alone, count, points.data(), 3, order.data());
    morton_order(pool, count, points.data(), 3, other.data());
    check(order == other, "the Morton order is the same for any number of threads");
    Bools zeroed(points.size() / 3);
    for (int i = 3; i < count; i += 11) zeroed[size_t(i)] = 1;
    Floats taken(points.size(), -1);
    take_rows(pool, count, 3, points.data(), order.data(), reinterpret_cast<const bool*>(zeroed.data()), taken.data());
    std::vector<int> met(size_t(count), 0);
    bool right = true;
    for (size_t i = 0; i < size_t(count); i++) {
      const float zeros[3] = {};
      right &= order[i] >= 0 && order[i] < count && !met[size_t(order[i])]++;
      right &= !std::memcmp(&taken[3 * i], zeroed[i] ? zeros : &points[3 * size_t(order[i])], sizeof zeros);
    }
    check(right, "rows arrive where the Morton order says, fresh ones as zeros");
  }
}

float plain_sampling_distance(const std::vector<Camera>& cameras, const float* p) {
  float best = std::numeric_limits<float>::infinity();
  for (const Camera& c : cameras) {
    float at[3];
    for (int k = 0; k < 3; k++)
      at[k] = c.rotation[3 * k] * p[0] + c.rotation[3 * k + 1] * p[1] + c.rotation[3 * k + 2] * p[2] + c.translation[k];
    const float u = at[0] / at[2] * c.fx + c.cx, v = at[1] / at[2] * c.fy + c.cy, w = float(c.width),
                h = float(c.height);
    if (at[2] > kNear && u >= -0.15f * w && u <= 1.15f * w && v >= -0.15f * h && v <= 1.15f * h)
      best = std::min(best, at[2]);
  }
  return best;
}

void sampling_distances_are_the_nearest_camera(const Kernels& kernels) {
  const std::vector<Camera> cameras = {camera_of(64, 48, 0), camera_of(64, 48, 2), camera_of(31, 90, 4)};
  for (int count : {0, 1, 13, 3000}) {
    const Floats points = points_of(count, 5);
    Floats one(size_t(count), -1), three = one;
    ThreadPool alone(1), pool(3);
    kernels.sampling_distance(alone, count, points.data(), 3, cameras.data(), one.data());
    kernels.sampling_distance(pool, count, points.data(), 3, cameras.data(), three.data());
    size_t wrong = 0;
    for (size_t i = 0; i < size_t(count); i++) {
      const float expected = plain_sampling_distance(cameras, &points[3 * i]);
      wrong += std::isfinite(expected) ? !(std::fabs(one[i] - expected) < 1e-4f * expected) : std::isfinite(one[i]);
    }
    check(wrong * 500 <= size_t(count),
          "sampling distances are the nearest camera's");  // rounding at an image's border
    check(same_bits(one, three), "sampling distances are the same for any number of threads");
  }
}

}  // namespace

void test_space(const Kernels& kernels) {
  neighbours_are_the_nearest();
  rows_move_in_morton_order();
  sampling_distances_are_the_nearest_camera(kernels);
}

}  // namespace splat::testing
