// Pass 5: L1 and SSIM with their gradient. Both the value and the gradient are separable 11-tap windows with zero
// padding: of the images' moments first, then of SSIM's derivatives with respect to these moments.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRadius = 5, kBlockRows = 16, kMargin = 8;
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

// Planes of one channel; of the photo only the rows that a block needs, as floats, in the second-level cache.
struct Image {
  int width, height;
  const float *render, *photo_rows;
  int first_photo_row;
  float* maps;  // 3 planes
  const float* photo(int y) const { return photo_rows + ptrdiff_t(y - first_photo_row) * width; }
};

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
  const float *render = image.render + size_t(y) * image.width, *photo = image.photo(y);
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
  const size_t plane = size_t(image.width) * image.height;
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
    float* map = image.maps + size_t(y) * image.width + x;
    store_first(map, by_mean, n), store_first(map + plane, by_squares, n), store_first(map + 2 * plane, by_uv, n);
  });
  return sum_of(total);
}

INLINE void vertical_maps(const Image& image, int y, Rows& rows) {
  const size_t plane = size_t(image.width) * image.height;
  const Reach reach = reach_of(image, y);
  const float* maps = image.maps + size_t(y) * image.width;
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    f8 sum[3] = {};
    each_tap(reach, [&](int k, float tap) __attribute__((always_inline)) {
      const float* at = maps + ptrdiff_t(k) * image.width + x;
      for (int q = 0; q < 3; q++) sum[q] += tap * load_first(at + q * plane, n);
    });
    for (int q = 0; q < 3; q++) store(rows.row[q] + x, sum[q]);
  });
}

INLINE f8 sign_of(f8 v) { return keep_where(v != 0.f, (f8)(((i8)v & (i8)all(-0.f)) | (i8)all(1.f))); }

struct Weights { float ssim, l1; };

INLINE void gradient_row(const Image& image, int y, const Rows& rows, Weights weights, float* gradient) {
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    const size_t at = size_t(y) * image.width + x;
    f8 u = load_first(image.render + at, n), v = load_first(image.photo(y) + x, n);
    f8 by_mean = across(rows.row[0], x), by_squares = across(rows.row[1], x), by_uv = across(rows.row[2], x);
    f8 g = weights.ssim * (by_mean + 2 * u * by_squares + v * by_uv) + weights.l1 * sign_of(u - v);
    store_first(gradient + at, g, n);
  });
}

INLINE double l1_row(const Image& image, int y) {
  f8 total = all(0.f);
  each_vector(image.width, [&](int x, int n) __attribute__((always_inline)) {
    total += absolute(load_first(image.render + size_t(y) * image.width + x, n) - load_first(image.photo(y) + x, n));
  });
  return sum_of(total);
}

template <class Body>
void each_block(Engine& engine, int height, Body&& body) {  // body(channel, first row, end row, task, worker)
  const int blocks = (height + kBlockRows - 1) / kBlockRows;
  engine.pool.each(3 * blocks, [&](int task, int worker) {
    const int begin = task % blocks * kBlockRows;
    body(task / blocks, begin, begin + kBlockRows < height ? begin + kBlockRows : height, task, worker);
  });
}

// The channel's rows that the windows of [begin, end) reach, into the worker's own memory.
INLINE void convert_rows(const uint8_t* photo, int begin, int end, int margin, float* memory, Image& image) {
  image.first_photo_row = begin - margin < 0 ? 0 : begin - margin;
  const int last = end + margin < image.height ? end + margin : image.height;
  const size_t from = size_t(image.first_photo_row) * image.width, count = size_t(last - image.first_photo_row) * image.width;
  for (size_t i = 0; i < count; i++) memory[i] = float(photo[from + i]) * (1.f / 255.f);
  image.photo_rows = memory;
}

}  // namespace

LossValue loss(Engine& engine, int width, int height, const float* render, const uint8_t* photo, float ssim_weight, float* gradient) {
  const size_t plane = size_t(width) * height;
  const int stride = (width + 7) / 8 * 8 + 2 * kMargin, tasks = 3 * ((height + kBlockRows - 1) / kBlockRows);
  const size_t photo_floats = size_t(kBlockRows + 2 * kRadius) * width;
  float* photo_memory = engine.photo_rows.at_least(engine.pool.size() * photo_floats);
  float* maps = gradient ? engine.window_maps.at_least(9 * plane) : nullptr;
  const size_t row_floats = size_t(engine.pool.size()) * 4 * stride;
  float* row_memory = engine.window_rows.at_least(row_floats);
  memset(row_memory, 0, row_floats * sizeof(float));
  double* partial = engine.partial_sums.at_least(2 * tasks);
  auto image_of = [&](int c, int begin, int end, int margin, int worker) {
    Image image{width, height, render + c * plane, nullptr, 0, maps ? maps + 3 * c * plane : nullptr};
    convert_rows(photo + c * plane, begin, end, margin, photo_memory + worker * photo_floats, image);
    return image;
  };
  each_block(engine, height, [&](int c, int begin, int end, int task, int worker) {
    const Image image = image_of(c, begin, end, kRadius, worker);
    Rows rows(row_memory + size_t(worker) * 4 * stride, stride);
    partial[2 * task] = partial[2 * task + 1] = 0;
    for (int y = begin; y < end; y++) {
      vertical_moments(image, y, rows);
      partial[2 * task] += similarity_row(image, y, rows, gradient != nullptr);
      partial[2 * task + 1] += l1_row(image, y);
    }
  });
  const float scale = 1.f / (3.f * plane);
  if (gradient)
    each_block(engine, height, [&](int c, int begin, int end, int, int worker) {
      const Image image = image_of(c, begin, end, 0, worker);
      Rows rows(row_memory + size_t(worker) * 4 * stride, stride);
      for (int y = begin; y < end; y++) {
        vertical_maps(image, y, rows);
        gradient_row(image, y, rows, {-ssim_weight * scale, (1 - ssim_weight) * scale}, gradient + c * plane);
      }
    });
  LossValue value{0, 0};
  for (int task = 0; task < tasks; task++) value.ssim += partial[2 * task], value.l1 += partial[2 * task + 1];
  value.ssim /= 3.0 * plane, value.l1 /= 3.0 * plane;
  return value;
}

}  // namespace splat::SPLAT_LEVEL
