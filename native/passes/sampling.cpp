// The smallest depth at which any training camera sees a point: what the 3D smoothing filter is made of.
#include <limits>

#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr float kBorder = 0.15f;  // a camera sees 15 % of its image's size beyond each border
constexpr int kPointsPerTask = 1024;

INLINE f8 nearest(const Camera& camera, const f8* p, f8 best) {
  const float *W = camera.rotation, *t = camera.translation;
  f8 z = W[6] * p[0] + W[7] * p[1] + W[8] * p[2] + t[2];
  i8 nearer = (z > kNear) & (z < best);
  if (!sign_bits(nearer)) return best;  // neighbours lie in the same rows: most cameras end here
  f8 x = W[0] * p[0] + W[1] * p[1] + W[2] * p[2] + t[0];
  f8 y = W[3] * p[0] + W[4] * p[1] + W[5] * p[2] + t[1];
  f8 inverse = 1.f / maximum(z, all(0.001f));
  f8 u = x * inverse * camera.fx + camera.cx, v = y * inverse * camera.fy + camera.cy;
  const float w = float(camera.width), h = float(camera.height);
  i8 inside = (u >= -kBorder * w) & (u <= (1 + kBorder) * w) & (v >= -kBorder * h) & (v <= (1 + kBorder) * h);
  return choose(nearer & inside, z, best);
}

}  // namespace

void sampling_distance(ThreadPool& pool, int count, const float* means, int cameras, const Camera* camera,
                       float* distance) {
  pool.each((count + kPointsPerTask - 1) / kPointsPerTask, [&](int task, int) {
    const int end = (task + 1) * kPointsPerTask < count ? (task + 1) * kPointsPerTask : count;
    for (int i = task * kPointsPerTask; i < end; i += 8) {
      const int n = end - i < 8 ? end - i : 8;
      f8 p[3] = {}, best = all(std::numeric_limits<float>::infinity());
      for (int l = 0; l < 8; l++)
        for (int k = 0; k < 3; k++) p[k][l] = means[3 * size_t(l < n ? i + l : i) + k];
      for (int c = 0; c < cameras; c++) best = nearest(camera[c], p, best);
      store_first(distance + i, best, n);
    }
  });
}

}  // namespace splat::SPLAT_LEVEL
