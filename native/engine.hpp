// What the passes share: the table of Gaussians as pointers, the camera, and the workspace of one engine.
#pragma once
#include <cstddef>
#include <cstdint>

#include "buffer.hpp"
#include "layout.hpp"
#include "threads.hpp"

namespace splat {

struct Camera {
  float rotation[9], translation[3], position[3];  // world to camera; position in the world
  float fx, fy, cx, cy;                            // pixels; the first pixel's centre is at 0.5
  int width, height;
  // The slopes x/z and y/z at which the Jacobian is frozen: 15 % of the image beyond its borders.
  float slope_low_x, slope_high_x, slope_low_y, slope_high_y;
};

struct Settings {
  int sh_degree = 3;
  float kernel_size = 0.1f;
  bool compensate = true;
  float background[3] = {0, 0, 0};
  float max_alpha = 0.99f;
  bool absolute_gradients = false;
  float light_cut = 0;  // a pixel is finished when no more of its light is left; 0: the original's rule, see blend.hpp
};

// Steps of Adam without gradient that rows not seen for a while still owe; see Pending in backends/lazy_adam.py.
struct Owed {
  float drift, mean_drift, first_decay, second_decay;
};
struct Pending {
  int step = 0;
  const Owed* by_age = nullptr;  // [kPendingAges]; null: nothing is ever owed
  float rates[kOptimized] = {};  // per geometry column; 1 for means, whose rate is in mean_drift
  float rate_dc = 0, rate_rest = 0;
  bool moves = true;  // false: momentum waits until a row is seen again, and only second moments fade
};

struct Table {
  int count = 0;
  float *geometry = nullptr, *harmonics = nullptr;
  float *geometry_moments = nullptr, *harmonics_first = nullptr, *harmonics_second = nullptr;  // null: none
  Pending pending;
};

struct AdamStep {
  int number = 0;
  float rates[kOptimized] = {}, rate_dc = 0, rate_rest = 0;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-15f;
  float rest1 = 0.1f, rest2 = 0.001f;  // 1 - beta, rounded once; the rates contain 1 / (1 - beta1^number)
  float second_correction = 1;         // 1 / sqrt(1 - beta2^number)
};

// See Exploration in backends/kernels.py; distances are rates times steps.
struct Exploration {
  uint32_t keys[5] = {};  // name the random numbers
  float noise = 0;        // times the gate and the covariance: of a standard normal draw
  float opacity_weight = 0, scale_weight = 0, opacity_distance = 0, scale_distance = 0;
  float second_correction = 1;  // 1 / (1 - beta2^number)
};

struct GradientArrays {  // the unfused backward's output
  float *geometry, *harmonics, *mean2d, *mean2d_absolute;
  bool* visible;
};

// One visible Gaussian as the blending passes see it: one cache line. The ellipse is factored into its profile over
// columns and the profile down one column, whose ridge lies at dy = tilt dx:
//     alpha(dx, dy) = 2^(log2_opacity - across dx^2 - down e^2),   e = dy - tilt dx.
// Unlike the usual quadratic form nothing cancels here, however thin the ellipse.
struct alignas(64) Splat {
  float x, y, across, tilt, down, log2_opacity, reach;  // reach = log2(255 opacity): where alpha falls to 1/255
  float red, green, blue, half_width, half_height;
  uint32_t clamped_channels;  // until the colour is known, this and the next three hold the mean and its age
  float unused[3];
};
static_assert(sizeof(Splat) == 64);

// Rows of the table are projected in chunks. The visible ones of a chunk follow each other from its beginning on: their
// places. Splats, boxes and keys are found by place, so that no cache line is fetched for what nobody sees.
constexpr int kChunk = 2048;
struct Chunk {
  int count, tile_rows;
  uint32_t nearest, farthest;
  uint64_t slots, first_slot;
};

// Tiles touched by the bounding box. Each of them has a slot for its gradient, counted from the chunk's first one, so
// that
// the update reads one after the other; the last ones stay unused where the ellipse does not fill its box.
struct alignas(16) TileBox {
  uint16_t column0, column1, row0, row1;
  uint32_t slot, pairs;
};
constexpr uint64_t kMostSlots = UINT32_MAX;

struct TileRun {
  uint32_t tile, length;
};  // neighbouring tiles in one row of tiles
struct BinPart {
  int begin, end;
  TileRun* runs;
  uint32_t* counts;
};  // counts per tile, then places to write to
struct Pair {
  uint32_t place, slot;
};  // one Gaussian in one tile, and where its gradient goes
struct Item {
  uint8_t member, strip, y0, y1;
};  // rows y0 to y1 of a strip of eight columns, for one of a batch of pairs

constexpr int kPairWidth = 12;  // floats of gradient per pair: 3 colour, 6 moments of q in (dx, e), absolute, 2 unused

enum Pass { kProject, kSort, kBin, kBlendForward, kLoss, kBlendBackward, kUpdate, kPasses };
inline constexpr const char* kPassNames[kPasses] = {"project", "sort",           "bin",   "blend forward",
                                                    "loss",    "blend backward", "update"};

struct LossValue {
  double l1, ssim;
};

// How a photo was exposed: its colours are `transform` (3x4, row by row; the last column is added) times the picture's.
struct Exposure {
  float transform[12];
  double gradient[12];  // of the loss with respect to it
  bool unmixed = true;  // the picture's gradient shall be by its own colours; else by those that were compared
};

struct Engine {
  explicit Engine(int threads) : pool(threads) {}
  ThreadPool pool;
  Table table;
  Camera camera;
  Settings settings;
  uint64_t forward_number = 0;

  // projection
  Buffer<Chunk> chunks;
  Buffer<Splat> splats;            // by place
  Buffer<TileBox> boxes;           // by place
  Buffer<uint32_t> rows;           // of the table, by place; ascending
  Buffer<uint64_t> depth_keys[2];  // depth bits, then place: the bits of a positive float order like the float
  Buffer<uint32_t> depth_order;    // places, front to back
  int chunk_count = 0, visible_count = 0;
  uint32_t nearest = 0, farthest = 0;  // depths, as bits
  size_t tile_rows_touched = 0;        // by all bounding boxes together: at most so many runs

  // binning
  int tile_columns = 0, tile_rows = 0;
  Buffer<uint32_t> histograms, tile_counts, tile_begin;
  Buffer<BinPart> parts;      // ranges of the depth order
  Buffer<TileRun> runs;       // per thread, for one part after the other, in the order of its Gaussians
  Buffer<TileRun*> run_ends;  // per thread
  Buffer<Pair> pairs;         // by tile, front to back
  uint32_t pair_count = 0;
  uint64_t slot_count = 0;

  // blending
  Buffer<uint32_t> tile_end;  // first list position that no live pixel needed
  Buffer<Item> items;  // what forward blended, from kStrips times the tile's first pair on: backward does the same
  Buffer<uint8_t> item_counts;   // of each pair
  Buffer<float> pair_gradients;  // [slots, kPairWidth]
  const float *color = nullptr, *transmittance = nullptr;
  const float* unmix = nullptr;  // an exposure's transform that the picture's gradient has not in it yet

  // loss
  Buffer<float> window_planes, window_rows;
  Buffer<LossValue> loss_sums;   // by channel and block of rows
  Buffer<double> exposure_sums;  // by channel and block of rows, four each

  Buffer<float> step_images;  // of a training step: colour, its gradient, transmittance

  double seconds[kPasses] = {};
  size_t workspace_bytes() const;
};

// The passes of one instruction set.
struct Kernels {
  const char* name;
  void (*project)(Engine&);
  void (*sort_by_depth)(Engine&);
  void (*bin)(Engine&);
  void (*blend_forward)(Engine&, float* color, float* transmittance);
  void (*blend_backward)(Engine&, const float* color_gradient, const float* transmittance_gradient);
  void (*update)(Engine&, const AdamStep*);
  void (*gradients)(Engine&, const GradientArrays&);
  void (*adam)(ThreadPool&, Table&, const float* geometry, const float* harmonics, const AdamStep&);
  void (*settle)(ThreadPool&, Table&);
  LossValue (*loss)(Engine&, int width, int height, const float* image, const uint8_t* photo, float ssim_weight,
                    float* gradient, Exposure*);
  void (*sampling_distance)(ThreadPool&, int count, const float* means, int cameras, const Camera*, float* distance);
  void (*explore)(ThreadPool&, Table&, const Exploration&);
};

const Kernels& kernels();              // the best this machine can run, or the forced one
bool force_kernels(const char* name);  // false: unknown, or this machine cannot run it
int available_kernels(const Kernels* list[4]);

// Passes that gain nothing from wide vectors.
void neighbour_distance(ThreadPool&, int count, const float* points, float* mean_squared);
void morton_order(ThreadPool&, int count, const float* means, int stride, int64_t* order);
void take_rows(ThreadPool&, int rows, int width, const float* from, const int64_t* source, const bool* zeroed,
               float* to);

}  // namespace splat
