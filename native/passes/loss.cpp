// Pass 5: L1 and SSIM with their gradient. Both the value and the gradient are separable 11-tap windows with zero
// padding: of the images' moments first, then of SSIM's derivatives with respect to these moments. Of either only as
// many
// rows exist as two windows one below the other need; they slide down the image in the second-level cache. Two at a
// time,
// because fetching them from there is what takes longest.
//
// With an exposure, what is compared is the picture's colours times a matrix. They are made where a row is taken and
// the
// matrix's gradient is summed up where a row's gradient is made, so that neither costs another walk over the image.
// The way
// back to the picture's own colours needs all three channels; in a training step the next pass goes it, tile by tile.
#include "../engine.hpp"
#include "../unmix.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRadius = 5, kAtOnce = 2, kRowsAlive = 2 * kRadius + kAtOnce, kBlockRows = 16, kMargin = 8;
constexpr int kRing = 16;
static_assert(kRing >= kRadius + kAtOnce && kBlockRows % kAtOnce == 0);
constexpr int kMoments = 4;  // x, y, x^2 + y^2 and xy: SSIM needs the two variances only as their sum
constexpr int kMaps = 3;     // its derivatives by E[x], E[x^2] and E[xy]
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

// The last rows of something that is made row by row. A row has all planes for eight pixels, then for the next eight,
// so that
// there is one stream to follow; beyond the width there are zeros up to a whole vector.
struct Sliding {
  int stride;
  float* row[kRowsAlive];
  Sliding(float* memory, int floats) : stride(floats) {
    for (int k = 0; k < kRowsAlive; k++) row[k] = memory + size_t(k) * stride;
  }
  float* next() {  // the oldest one's memory
    float* oldest = row[0];
    for (int k = 0; k + 1 < kRowsAlive; k++) row[k] = row[k + 1];
    return row[kRowsAlive - 1] = oldest;
  }
};

// Of a row, an odd number of cache lines: the rows of a window then do not meet in the same sets of the first-level
// cache.
INLINE int stride_for(int vectors, int planes) { return ((vectors * planes * 8 + 15) / 16 | 1) * 16; }

struct Rows {  // sums down a window, plane by plane, with zero margins, so that the window across needs no borders
  float* row[kMoments];
  Rows(float* memory, int stride) {
    for (int k = 0; k < kMoments; k++) row[k] = memory + size_t(k) * stride + kMargin;
  }
};

// One channel, and where its windows are.
struct Image {
  int width, height;
  const float* render;
  const uint8_t* photo;
  Sliding moments, maps;
  int first = 0, next = 0;          // rows of the image that came into the window since it was begun anew
  double similarities[kRing] = {};  // of the last rows
  const float* planes[3] = {};      // of the picture, and this channel's row of the exposure's matrix
  float mix[4] = {};
  bool has(int y) const { return y >= 0 && y < height; }
};

// Calls body(x, number of pixels) for each vector of a row; all but the last know at compile time that they are full.
template <class Body>
INLINE void each_vector(int width, Body&& body) {
  int x = 0;
  for (; x + 8 <= width; x += 8) body(x, 8);
  if (x < width) body(x, width - x);
}

INLINE f8 across(const float* row, int x) {
  f8 sum = load(row + x) * window.tap[0];
  for (int k = 1; k <= kRadius; k++) sum += (load(row + x - k) + load(row + x + k)) * window.tap[k];
  return sum;
}

template <int Planes>
INLINE void down(const Sliding& sliding, int width, Rows* rows) {
  each_vector(
      width, [&](int x, int) __attribute__((always_inline)) {
        for (int q = 0; q < Planes; q++) {
          f8 at[kRowsAlive];
          for (int k = 0; k < kRowsAlive; k++) at[k] = load(sliding.row[k] + Planes * x + 8 * q);
          for (int r = 0; r < kAtOnce; r++) {
            f8 sum = at[r + kRadius] * window.tap[0];
            for (int k = 1; k <= kRadius; k++) sum += (at[r + kRadius - k] + at[r + kRadius + k]) * window.tap[k];
            store(rows[r].row[q] + x, sum);
          }
        }
      });
}

INLINE f8 mixed(const Image& image, size_t at, int n) {
  f8 sum = load_first(image.planes[0] + at, n) * image.mix[0] + image.mix[3];
  for (int c = 1; c < 3; c++) sum += load_first(image.planes[c] + at, n) * image.mix[c];
  return n == 8 ? sum : keep_where(lane_mask(n), sum);
}

template <bool Exposed>
INLINE void take_row(Image& image, int y) {
  float* to = image.moments.next();
  if (!image.has(y)) {
    memset(to, 0, size_t(image.moments.stride) * sizeof(float));
    return;
  }
  const size_t row = size_t(y) * image.width;
  each_vector(
      image.width, [&](int x, int n) __attribute__((always_inline)) {
        uint64_t bytes = 0;
        memcpy(&bytes, image.photo + row + x, size_t(n));
        const f8 u = Exposed ? mixed(image, row + x, n) : load_first(image.render + row + x, n),
                 v = bytes_to_float(bytes) * (1.f / 255.f);
        const f8 moments[kMoments] = {u, v, u * u + v * v, u * v};
        for (int q = 0; q < kMoments; q++) store(to + kMoments * x + 8 * q, moments[q]);
      });
}

// SSIM of the row in the middle of the window, summed up; its derivatives go to `maps` if that is not null.
INLINE double similarity_row(const Image& image, const Rows& rows, float* maps) {
  f8 total = all(0.f);
  each_vector(
      image.width, [&](int x, int n) __attribute__((always_inline)) {
        f8 u = across(rows.row[0], x), v = across(rows.row[1], x), squares = across(rows.row[2], x),
           uv = across(rows.row[3], x);
        f8 means = u * u + v * v, product = u * v;
        f8 a = 2 * product + kC1, b = 2 * (uv - product) + kC2, c = means + kC1, d = squares - means + kC2;
        f8 inverse = 1.f / (c * d), s = a * b * inverse;
        total += n == 8 ? s : keep_where(lane_mask(n), s);
        if (!maps) return;
        f8 by_squares = -s * (c * inverse);  // dS/dE[x^2]
        f8 by_uv = 2 * a * inverse;          // dS/dE[xy]
        f8 by_mean = 2 * v * b * inverse - 2 * u * s * (d * inverse) - 2 * u * by_squares - v * by_uv;
        const f8 derivatives[kMaps] = {by_mean, by_squares, by_uv};
        for (int q = 0; q < kMaps; q++)
          store(maps + kMaps * x + 8 * q, n == 8 ? derivatives[q] : keep_where(lane_mask(n), derivatives[q]));
      });
  return sum_of(total);
}

// Moments of the rows y and y + 1 in the middle of the windows, and SSIM's derivatives with respect to them.
INLINE void compare_rows(Image& image, int y, Rows* rows, bool with_maps) {
  down<kMoments>(image.moments, image.width, rows);
  for (int r = 0; r < kAtOnce; r++) {
    float* maps = with_maps ? image.maps.next() : nullptr;
    if (image.has(y + r))
      image.similarities[(y + r) % kRing] = similarity_row(image, rows[r], maps);
    else if (maps)
      memset(maps, 0, size_t(image.maps.stride) * sizeof(float));
  }
}

INLINE double l1_row(int width, const float* moments) {
  f8 total = all(0.f);
  each_vector(
      width, [&](int x, int) __attribute__((always_inline)) {
        total += absolute(load(moments + kMoments * x) - load(moments + kMoments * x + 8));
      });
  return sum_of(total);
}

INLINE f8 sign_of(f8 v) { return keep_where(v != 0.f, (f8)(((i8)v & (i8)all(-0.f)) | (i8)all(1.f))); }

struct Weights {
  float ssim, l1;
};

// Of a row of the image; what the exposure's gradient gets of it is added to `sums`: by colours, and of the constant.
template <bool Exposed>
INLINE void gradient_row(const Image& image, int y, const float* moments, const Rows& rows, Weights weights,
                         float* gradient, double* sums) {
  const size_t row = size_t(y) * image.width;
  f8 parts[4] = {all(0.f), all(0.f), all(0.f), all(0.f)};
  each_vector(
      image.width, [&](int x, int n) __attribute__((always_inline)) {
        const f8 u = load(moments + kMoments * x), v = load(moments + kMoments * x + 8);
        f8 by_mean = across(rows.row[0], x), by_squares = across(rows.row[1], x), by_uv = across(rows.row[2], x);
        f8 g = weights.ssim * (by_mean + 2 * u * by_squares + v * by_uv) + weights.l1 * sign_of(u - v);
        store_first(gradient + row + x, g, n);
        if constexpr (!Exposed) return;
        if (n < 8) g = keep_where(lane_mask(n), g);
        for (int c = 0; c < 3; c++) parts[c] += g * load_first(image.planes[c] + row + x, n);
        parts[3] += g;
      });
  if (Exposed)
    for (int c = 0; c < 4; c++) sums[c] += sum_of(parts[c]);
}

// A block of rows; gradient is null if only the sums are wanted. A row's gradient needs the derivatives five rows
// further
// down, and these the images another five: so far a row lags behind the last one taken. Unless the block before was
// done just
// now, as many rows above it are taken first.
template <bool Exposed>
LossValue do_block(Image& image, int block, bool anew, Rows* rows, Weights weights, float* gradient,
                   double* exposure_sums) {
  const int lag = gradient ? 2 * kRadius : kRadius;
  const int begin = block * kBlockRows, end = begin + kBlockRows < image.height ? begin + kBlockRows : image.height;
  if (anew) image.first = image.next = begin - lag;
  LossValue sums{0, 0};
  for (; image.next < end + lag; image.next += kAtOnce) {
    for (int r = 0; r < kAtOnce; r++) take_row<Exposed>(image, image.next + r);
    const int middle = image.next - kRadius, y = image.next - lag;
    if (middle >= image.first + kRadius) compare_rows(image, middle, rows, gradient);
    if (y < begin) continue;
    if (gradient) down<kMaps>(image.maps, image.width, rows);
    for (int r = 0; r < kAtOnce && y + r < end; r++) {
      const float* moments = image.moments.row[2 * kRadius - lag + r];
      sums.ssim += image.similarities[(y + r) % kRing];
      sums.l1 += l1_row(image.width, moments);
      if (gradient) gradient_row<Exposed>(image, y + r, moments, rows[r], weights, gradient, exposure_sums);
    }
  }
  return sums;
}

void unmix_all(Engine& engine, size_t plane, const float* transform, float* gradient) {
  constexpr size_t kStretch = 8192;
  engine.pool.each(int((plane + kStretch - 1) / kStretch), [&](int part, int) {
    const size_t end = plane < (part + 1) * kStretch ? plane : (part + 1) * kStretch;
    for (size_t i = part * kStretch; i < end; i += 8) {
      const int n = end - i < 8 ? int(end - i) : 8;
      f8 g[3];
      for (int c = 0; c < 3; c++) g[c] = load_first(gradient + c * plane + i, n);
      unmix(g, transform);
      for (int c = 0; c < 3; c++) store_first(gradient + c * plane + i, g[c], n);
    }
  });
}

template <bool Exposed>
LossValue loss_of(Engine& engine, int width, int height, const float* render, const uint8_t* photo, float ssim_weight,
                  float* gradient, Exposure* exposure) {
  const size_t plane = size_t(width) * height;
  const int threads = engine.pool.size();
  const int vectors = (width + 7) / 8, stride = 8 * vectors + 2 * kMargin;
  const size_t row_floats = size_t(kMoments) * stride;
  const int moments_stride = stride_for(vectors, kMoments), maps_stride = stride_for(vectors, kMaps);
  const size_t windows = size_t(kRowsAlive) * (moments_stride + maps_stride);
  float* window_memory = engine.window_planes.at_least(threads * windows);
  float* row_memory = engine.window_rows.at_least(threads * kAtOnce * row_floats);
  memset(row_memory, 0, threads * kAtOnce * row_floats * sizeof(float));
  const int blocks = (height + kBlockRows - 1) / kBlockRows;  // of each channel; sums are kept by block, whoever did it
  LossValue* sums = engine.loss_sums.at_least(3 * blocks);
  double* exposure_sums = Exposed ? engine.exposure_sums.at_least(12 * blocks) : nullptr;
  if (Exposed) memset(exposure_sums, 0, 12 * size_t(blocks) * sizeof(double));
  const float scale = 1.f / (3.f * plane);
  const Weights weights{-ssim_weight * scale, (1 - ssim_weight) * scale};
  engine.pool.each_in_runs(3 * blocks, [&](auto&& next_block, int worker) {
    float* memory = window_memory + worker * windows;
    Image image{width,
                height,
                nullptr,
                nullptr,
                {memory, moments_stride},
                {memory + size_t(kRowsAlive) * moments_stride, maps_stride}};
    float* first_row = row_memory + worker * kAtOnce * row_floats;
    Rows rows[kAtOnce] = {{first_row, stride}, {first_row + row_floats, stride}};
    for (int before = -1, k; (k = next_block()) >= 0; before = k) {
      const size_t channel = size_t(k / blocks) * plane;
      image.render = render + channel;
      image.photo = photo + channel;
      if (Exposed) {
        for (int c = 0; c < 3; c++) image.planes[c] = render + c * plane;
        memcpy(image.mix, exposure->transform + 4 * (k / blocks), sizeof image.mix);
      }
      const bool anew = k != before + 1 || k % blocks == 0;
      sums[k] = do_block<Exposed>(image, k % blocks, anew, rows, weights, gradient ? gradient + channel : nullptr,
                                  Exposed ? exposure_sums + 4 * k : nullptr);
    }
  });
  LossValue value{0, 0};
  for (int k = 0; k < 3 * blocks; k++) {
    value.ssim += sums[k].ssim;
    value.l1 += sums[k].l1;
  }
  value.ssim /= 3.0 * plane;
  value.l1 /= 3.0 * plane;
  if (!Exposed) return value;
  for (double& entry : exposure->gradient) entry = 0;
  for (int k = 0; k < 3 * blocks; k++)
    for (int c = 0; c < 4; c++) exposure->gradient[4 * (k / blocks) + c] += exposure_sums[4 * k + c];
  if (gradient && exposure->unmixed) unmix_all(engine, plane, exposure->transform, gradient);
  return value;
}

}  // namespace

LossValue loss(Engine& engine, int width, int height, const float* render, const uint8_t* photo, float ssim_weight,
               float* gradient, Exposure* exposure) {
  return exposure ? loss_of<true>(engine, width, height, render, photo, ssim_weight, gradient, exposure)
                  : loss_of<false>(engine, width, height, render, photo, ssim_weight, gradient, nullptr);
}

}  // namespace splat::SPLAT_LEVEL
