// Pass 5: L1 and SSIM with their gradient. Both the value and the gradient are separable 11-tap windows with zero
// padding: of the images' moments first, then of SSIM's derivatives with respect to these moments. Only some rows of the
// photo and of the derivatives exist at a time: windows that slide down the image, in the second-level cache.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRadius = 5, kBlockRows = 16, kMargin = 8, kMaps = 3;
constexpr float kC1 = 0.01f * 0.01f, kC2 = 0.03f * 0.03f;
constexpr double kSigma = 1.5;

constexpr double exponential(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k <= 50; k++) sum += term *= x / k;
  return sum;
}

// Made by the compiler: code that ran when the library is loaded would run on machines without this instruction set.
struct Window {  // symmetric: tap[k] serves both sides
  float tap[kRadius + 1] = {};
  constexpr Window() {
    double sum = 0, value[kRadius + 1] = {};
    for (int k = 0; k <= kRadius; k++) sum += (k ? 2 : 1) * (value[k] = 1 / exponential(k * k / (2 * kSigma * kSigma)));
    for (int k = 0; k <= kRadius; k++) tap[k] = float(value[k] / sum);
  }
};
constexpr Window window;

struct Rows {  // per-thread rows with zero margins, so that the horizontal window needs no borders
  float* row[4];
  Rows(float* memory, int stride) {
    for (int k = 0; k < 4; k++) row[k] = memory + size_t(k) * stride + kMargin;
  }
};

INLINE f8 across(const float* row, int x) {
  f8 sum = load(row + x) * window.tap[0];
  for (int k = 1; k <= kRadius; k++) sum += (load(row + x - k) + load(row + x + k)) * window.tap[k];
  return sum;
}

// Rows [first, end) of something that is made row by row.
struct Sliding {
  float* memory;
  int stride, first = 0, end = 0;
  float* at(int y) const { return memory + ptrdiff_t(y - first) * stride; }
  void forget_above(int y) {
    const int kept = end - y > 0 ? end - y : 0;
    memmove(memory, at(y), size_t(kept) * size_t(stride) * sizeof(float));
    first = y, end = y + kept;
  }
};
INLINE int rows_alive(int margin) { return kBlockRows + 2 * margin; }

// One channel. A row of maps is kMaps rows of the image's width.
struct Image {
  int width, height;
  const float* render;
  const uint8_t* photo_bytes;
  Sliding photo, maps;
  double* similarities;  // of the rows of maps, in a ring of kRing
};
constexpr int kRing = 32;
static_assert(kRing >= kBlockRows + 2 * kRadius);

struct Reach { int first, last; };  // rows of the window that lie in the image
INLINE Reach reach_of(const Image& image, int y) {
  return {y < kRadius ? -y : -kRadius, image.height - 1 - y < kRadius ? image.height - 1 - y : kRadius};
}

// Calls body(x, number of pixels) for each vector of a row; all but the last know at compile time that they are full.
template <class Body>
INLINE void each_vector(int width, Body&& body) {
  int x = 0;
  for (; x + 8 <= width; x += 8) body(x, 8);
  if (x < width) body(x, width - x);
}

template <class Body>
INLINE void each_tap(Reach reach, Body&& body) {  // body(row offset, tap)
  if (reach.first == -kRadius && reach.last == kRadius) {
#pragma GCC unroll 11
    for (int k = -kRadius; k <= kRadius; k++) body(k, window.tap[k < 0 ? -k : k]);
  } else {
    for (int k = reach.first; k <= reach.last; k++) body(k, window.tap[k < 0 ? -k : k]);
  }
}

// Window sums of x, y, x^2 + y^2 and xy: SSIM needs the two variances only as their sum.
INLINE void vertical_moments(const Image& image, int y, Rows& rows) {
  const Reach reach = reach_of(image, y);
  const float *render = image.render + size_t(y) * image.width, *photo = image.photo.at(y);
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    f8 sum[4] = {};
    each_tap(reach, [&](int k, float tap) __attribute__((always_inline)) {
      const ptrdiff_t at = ptrdiff_t(k) * image.width + x;
      f8 u = load_first(render + at, n), v = load_first(photo + at, n), wu = tap * u, wv = tap * v;
      sum[0] += wu, sum[1] += wv, sum[2] += wu * u + wv * v, sum[3] += wu * v;
    });
    for (int q = 0; q < 4; q++) store(rows.row[q] + x, sum[q]);
  });
}

INLINE double similarity_row(const Image& image, int y, const Rows& rows, bool with_maps) {
  f8 total = all(0.f);
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    f8 u = across(rows.row[0], x), v = across(rows.row[1], x), squares = across(rows.row[2], x), uv = across(rows.row[3], x);
    f8 means = u * u + v * v, product = u * v;
    f8 a = 2 * product + kC1, b = 2 * (uv - product) + kC2, c = means + kC1, d = squares - means + kC2;
    f8 inverse = 1.f / (c * d), s = a * b * inverse;
    total += n == 8 ? s : keep_where(lane_mask(n), s);
    if (!with_maps) return;
    f8 by_squares = -s * (c * inverse);  // dS/dE[x^2]
    f8 by_uv = 2 * a * inverse;          // dS/dE[xy]
    f8 by_mean = 2 * v * b * inverse - 2 * u * s * (d * inverse) - 2 * u * by_squares - v * by_uv;
    float* map = image.maps.at(y) + x;
    store_first(map, by_mean, n), store_first(map + image.width, by_squares, n), store_first(map + 2 * image.width, by_uv, n);
  });
  return sum_of(total);
}

INLINE void vertical_maps(const Image& image, int y, Rows& rows) {
  const Reach reach = reach_of(image, y);
  const float* maps = image.maps.at(y);
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    f8 sum[kMaps] = {};
    each_tap(reach, [&](int k, float tap) __attribute__((always_inline)) {
      const float* at = maps + ptrdiff_t(k) * image.maps.stride + x;
      for (int q = 0; q < kMaps; q++) sum[q] += tap * load_first(at + q * image.width, n);
    });
    for (int q = 0; q < kMaps; q++) store(rows.row[q] + x, sum[q]);
  });
}

INLINE f8 sign_of(f8 v) { return keep_where(v != 0.f, (f8)(((i8)v & (i8)all(-0.f)) | (i8)all(1.f))); }

struct Weights { float ssim, l1; };

INLINE void gradient_row(const Image& image, int y, const Rows& rows, Weights weights, float* gradient) {
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    const size_t at = size_t(y) * image.width + x;
    f8 u = load_first(image.render + at, n), v = load_first(image.photo.at(y) + x, n);
    f8 by_mean = across(rows.row[0], x), by_squares = across(rows.row[1], x), by_uv = across(rows.row[2], x);
    f8 g = weights.ssim * (by_mean + 2 * u * by_squares + v * by_uv) + weights.l1 * sign_of(u - v);
    store_first(gradient + at, g, n);
  });
}

INLINE double l1_row(const Image& image, int y) {
  f8 total = all(0.f);
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    total += absolute(load_first(image.render + size_t(y) * image.width + x, n) - load_first(image.photo.at(y) + x, n));
  });
  return sum_of(total);
}

INLINE void extend_photo(Image& image, int end) {
  for (; image.photo.end < end; image.photo.end++) {
    const uint8_t* bytes = image.photo_bytes + size_t(image.photo.end) * image.width;
    float* row = image.photo.at(image.photo.end);
    for (int x = 0; x < image.width; x++) row[x] = float(bytes[x]) * (1.f / 255.f);
  }
}

// Moments and derivatives of the rows down to `end`.
INLINE void extend_maps(Image& image, int end, bool with_maps, Rows& rows) {
  for (; image.maps.end < end; image.maps.end++) {
    vertical_moments(image, image.maps.end, rows);
    image.similarities[image.maps.end % kRing] = similarity_row(image, image.maps.end, rows, with_maps);
  }
}

// A block of rows; gradient is null if only the sums are wanted. Where the windows slid down to its beginning they go on.
LossValue do_block(Image& image, int block, bool from_here, Rows& rows, Weights weights, float* gradient) {
  const int margin = gradient ? kRadius : 0, begin = block * kBlockRows;
  auto inside = [&](int y) { return y < 0 ? 0 : y < image.height ? y : image.height; };
  const int end = inside(begin + kBlockRows), first_map = inside(begin - margin), first_photo = inside(begin - margin - kRadius);
  if (from_here) image.maps.first = image.maps.end = first_map, image.photo.first = image.photo.end = first_photo;
  image.photo.forget_above(first_photo), extend_photo(image, inside(end + margin + kRadius));
  image.maps.forget_above(first_map), extend_maps(image, inside(end + margin), gradient, rows);
  LossValue sums{0, 0};
  for (int y = begin; y < end; y++) {
    sums.ssim += image.similarities[y % kRing], sums.l1 += l1_row(image, y);
    if (gradient) vertical_maps(image, y, rows), gradient_row(image, y, rows, weights, gradient);
  }
  return sums;
}

}  // namespace

LossValue loss(Engine& engine, int width, int height, const float* render, const uint8_t* photo, float ssim_weight, float* gradient) {
  const size_t plane = size_t(width) * height;
  const int stride = (width + 7) / 8 * 8 + 2 * kMargin, threads = engine.pool.size();
  const size_t photo_floats = size_t(rows_alive(2 * kRadius)) * width, map_floats = size_t(rows_alive(kRadius)) * kMaps * width;
  float *photo_memory = engine.photo_rows.at_least(threads * photo_floats), *map_memory = engine.window_maps.at_least(threads * map_floats);
  float* row_memory = engine.window_rows.at_least(size_t(threads) * 4 * stride);
  memset(row_memory, 0, size_t(threads) * 4 * stride * sizeof(float));
  const int blocks = (height + kBlockRows - 1) / kBlockRows;  // of each channel; sums are kept by block, whoever did it
  LossValue* sums = engine.loss_sums.at_least(3 * blocks);
  const float scale = 1.f / (3.f * plane);
  const Weights weights{-ssim_weight * scale, (1 - ssim_weight) * scale};
  engine.pool.each_in_runs(3 * blocks, [&](auto&& next_block, int worker) {
    double similarities[kRing];
    Image image{width, height, nullptr, nullptr, {photo_memory + worker * photo_floats, width}, {map_memory + worker * map_floats, kMaps * width}, similarities};
    Rows rows(row_memory + size_t(worker) * 4 * stride, stride);
    for (int before = -1, k; (k = next_block()) >= 0; before = k) {
      const size_t channel = size_t(k / blocks) * plane;
      image.render = render + channel, image.photo_bytes = photo + channel;
      const bool from_here = k != before + 1 || k % blocks == 0;
      sums[k] = do_block(image, k % blocks, from_here, rows, weights, gradient ? gradient + channel : nullptr);
    }
  });
  LossValue value{0, 0};
  for (int k = 0; k < 3 * blocks; k++) value.ssim += sums[k].ssim, value.l1 += sums[k].l1;
  value.ssim /= 3.0 * plane, value.l1 /= 3.0 * plane;
  return value;
}

}  // namespace splat::SPLAT_LEVEL
