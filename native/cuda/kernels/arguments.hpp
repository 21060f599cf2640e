// What the host hands to the kernels: one structure a kernel, the same text on both sides. Pointers are addresses on
// the card. Plain types only: NVRTC has no standard headers.
#pragma once
#include "../../layout.hpp"

namespace splat::card {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

// ---- sizes that host and kernels agree on ------------------------------------------------------------------------
constexpr int kTileSide = 16;  // a tile is 2 x 4 subtiles of 8 x 4 pixels: one warp each time
constexpr int kTilesPerBlock = 2, kSubtiles = 8;
constexpr int kSplatWidth = 12;  // floats: {x, y, tilt, log2 opacity | across, down, half sizes | colour, clamp bits}
constexpr int kSlotWidth = 12;   // floats of gradient a pair: 3 colour, 6 moments of q, absolute, 2 unused
constexpr int kThreads = 256, kItems = 8, kBlockItems = kThreads * kItems;  // of a block that scans or sorts
constexpr int kDigitBits = 9, kDigits = 1 << kDigitBits;
constexpr int kProjectThreads = 128, kUpdateThreads = 128, kBlendThreads = 32 * kTilesPerBlock;
constexpr int kLossWide = 32, kLossHigh = 16;  // pixels of one channel a block
constexpr int kWindowRadius = 5;
constexpr u32 kNearBits = 0x3e4ccccd;  // of kNear: depths are sorted by how far their bits lie beyond
constexpr u32 kVisible = 0x80000000u;  // beside the number of pairs of a row
constexpr int kRandomKeys = 5;

// ---- a step ------------------------------------------------------------------------------------------------------
struct Frame {
  float rotation[9], translation[3], position[3];  // world to camera; position in the world
  float fx, fy, cx, cy;
  float slope_low_x, slope_high_x, slope_low_y, slope_high_y;  // where the Jacobian is frozen
  float kernel_size, background[3], max_alpha;
  int width, height, compensate, sh_degree, tile_columns, tile_rows;
};

// Half-spaces n.mean + d + r radius > 0 outside of which nothing can be seen, whatever a row owes
// (native/passes/project.cpp).
struct Frustum {
  float normal[5][3], offset[5], per_radius[5], growth;
};

// Steps of Adam without gradient that rows not seen for a while still owe; see Pending in ops.py.
struct Pending {
  int step;
  float rates[kOptimized], rate_dc, rate_rest;
  float log2_second_decay;  // of one step, for ages beyond the table
  const float* by_age;      // [kPendingAges][4]: drift, mean drift, first and second decay; null: nothing is ever owed
};

struct Adam {
  int number;
  float rates[kOptimized], rate_dc, rate_rest;  // with 1 / (1 - beta1^number) inside
  float beta1, beta2, rest1, rest2, second_correction, epsilon;
};

struct Counters {
  u32 visible, pairs, farthest, unused;
};  // of one projection; pairs stop at 2^32 - 1
struct Report {
  double l1, ssim;
  u32 visible, pairs, step, stopped;  // stopped: the number of the first step whose loss was not a number, or 0
};

struct ProjectArguments {
  Frame frame;
  Frustum frustum;
  Pending pending;
  int count;
  const float *geometry, *moments, *harmonics, *first_moments;
  float* splats;        // [N, 12]
  u32 *depths, *tiles;  // [N] bits of the depth; pairs, and kVisible
};
struct CountArguments {
  u32 count, blocks;
  const u32 *depths, *tiles;
  u32 *visible, *farthest;  // [blocks]; visible becomes the number before each block
  u64* pairs;               // [blocks]
  Counters* counters;
  u32 *keys, *rows;  // [visible] of what is visible, in the order of rows
};
struct ScanArguments {                // of (values[order[i]] >> shift) & mask, i < min(*count, limit)
  const u32 *values, *order, *count;  // order and count may be null
  u32 limit, shift, mask, blocks;
  u32 *sums, *out, *total;  // total may be null
};
template <class Key>
struct SortArguments {
  const Key* keys;
  const u32 *values, *count;  // values null: the index itself; count may be null
  u32 limit, shift, blocks;
  u32* counts;  // [kDigits][blocks]
  Key* new_keys;
  u32* new_values;
};
struct EmitArguments {
  Frame frame;
  const Counters* counters;
  const u32 *order, *offsets;  // by depth: rows, and their first pair
  const u32* tiles;            // pairs by row
  const float* splats;
  u32 capacity;
  u32 *first_pair, *keys, *pair_rows;
};
struct TileBeginsArguments {
  const u32* keys;
  const Counters* counters;
  u32 capacity, tiles;
  u32* begins;  // [tiles + 1]
};
struct BlendArguments {
  Frame frame;
  const float* splats;
  const u32 *begins, *pairs, *pair_rows;
  float *colour, *transmittance;
  u32* ends;                                              // first list position that no live pixel needed
  const float *colour_gradient, *transmittance_gradient;  // the second may be null
  float* slots;
  u8* touched;  // [pairs] whether a slot was written
};
struct LossArguments {
  float taps[kWindowRadius + 1];
  int width, height;
  float ssim_weight, l1_weight;
  const float* render;
  const u8* photo;
  float *maps, *sums, *gradient;  // maps null: values only; sums [blocks, 2]
};
struct TotalArguments {
  u32 blocks, capacity, step;
  const float* sums;
  double values;  // of one image: 3 width height
  double ssim_weight;
  const Counters* counters;
  u32* stopped;
  Report* report;
};
struct UpdateArguments {
  Frame frame;
  Pending pending;
  Adam adam;
  int with_step;
  const Counters* counters;
  const u32 *stopped, *rows, *tiles, *first_pair;
  const float *splats, *slots;
  const u8* touched;
  float *geometry, *harmonics, *moments, *first_moments, *second_moments;
  float *geometry_gradient, *harmonics_gradient, *mean2d, *absolute;  // of the unfused twin
  u8* visible;
};

// ---- the rest of the trainer -------------------------------------------------------------------------------------
struct SettleArguments {
  Pending pending;
  int count;
  const u32* stopped;  // null: in any case
  float *geometry, *harmonics, *moments, *first_moments, *second_moments;
};
struct ExploreArguments {  // see Exploration in ops.py
  Pending pending;
  int count;
  const u32* stopped;
  u32 keys[kRandomKeys];
  float noise, opacity_weight, scale_weight, opacity_distance, scale_distance, second_correction;
  float* geometry;
  const float* moments;
};
struct ViewPoint {
  float rotation[9], translation[3], fx, fy, cx, cy, width, height;
};
struct FilterArguments {
  int count, cameras;
  u32 blocks;
  float factor;  // sqrt(0.2) / focal length
  const ViewPoint* views;
  float *geometry, *distance;  // distance [N]
  float* farthest;             // [blocks]; the first becomes that of all
  u32* seen;                   // [blocks]; the first becomes that of all
};
struct ResetArguments {
  int count;
  float *geometry, *moments;
};
struct Summary {
  double opacity;
  u32 finite, unused;
};
struct SummaryArguments {
  int count;
  u32 blocks;
  const float *geometry, *harmonics;
  Summary* sums;  // [blocks]; the first becomes that of all
};
struct MortonArguments {
  u32 count, blocks, stride;  // means are floats 0 to 2 of rows of `stride` floats
  const float* means;
  float* bounds;  // [blocks][6]: low, high; the first become those of all
  u64* codes;
};
// Where a new row comes from: the old one's number and kFresh, and above them how many steps it is behind.
constexpr u32 kFresh = 0x80000000u;
constexpr int kAgeShift = 32;

enum TablePart : u32 {
  kPartHarmonics,
  kPartFirst,
  kPartSecond,
  kPartGeometry
};                      // the last with its moments, if there are any
struct TakeArguments {  // rows of float4
  Pending pending;
  TablePart part;
  u32 count, vectors;
  const u64* sources;           // [before the order]
  const float *from, *moments;  // moments: of geometry, or first ones of harmonics, as they were
  float *to, *to_moments;       // the second of geometry only
  const float* means;           // [before the order, 3] of children
  const u32* order;             // [count] places before the order
  u32 first_child;
  float shrink;  // what children's log scales lose
};

// ---- growth ------------------------------------------------------------------------------------------------------
enum RowFlags : u32 { kChosen = 1, kGone = 2, kSmall = 4, kGoneChild = 8, kTieShift = 4, kTie = 16, kAbove = 32 };
constexpr u32 kKeepShift = 6, kCloneShift = 7, kSplitShift = 8;  // what becomes of a row in the end
constexpr u32 kBehindShift = 12, kLongBehind = 0xfffff;          // how many steps it is behind, as far as there is room

enum Selecting : u32 { kSelectNothing, kSelectAmong, kSelectAll };
struct GrowthState {       // what the passes of growth tell each other; the host reads it once, at the end
  u64 prefix, mask, rank;  // radix select: bits found so far, and the rank among those that agree with them
  u64 below, equal;        // elements smaller than the one found, and equal to it
  double position, level;  // of the quantile
  u32 selecting, room;
  u32 candidates, stay, wanted, eligible;    // before the budget; `wanted` are rows that candidates would add
  u32 kept, cloned, split;                   // rows of the new table: kept + cloned + 2 split
  u32 chosen_clones, chosen_splits, pruned;  // for the report
};
constexpr int kGrowthCounts = 6;  // sums a block, in `counts`
constexpr u64 kNoKey = ~0ull;
constexpr u32 kNoBudget = 0xffffffffu;
constexpr int kSelectBits = 8, kSelectDigits = 1 << kSelectBits;
static_assert(kSelectDigits == kThreads, "a thread has one digit");

struct GrowthArguments {
  Pending pending;                         // rows may be behind: they are seen as they will be
  u32 count, blocks, budget, by_absolute;  // by_absolute: gof's second criterion too
  u32 cuts;                                // children are halves, and nothing is drawn
  float threshold, lowest_logit, small_limit, size_limit, shrink;
  float cut_distance,
      cut_loss;  // of halves, along the longest axis: standard deviations to their centres, what its log scale loses
  float cut_width_loss;  // what the other log scales lose
  double urgency_threshold;
  const float *geometry, *harmonics, *moments;
  float *gradient, *absolute;  // [N] means over visits
  u64* keys;                   // [N] how urgent, the most urgent first
  u32* flags;                  // [N]
  u32* counts;                 // [blocks][kGrowthCounts]; the first three in the end of all blocks before
  GrowthState* state;
  const u32* ties_before;  // [N]
  u32 child_keys[2][kRandomKeys];
  u64* sources;  // [M]
  float* means;  // [M, 3]
};
struct CutArguments {  // of children that are still copies of their parents, but for their means
  u32 count, first_child;
  const u32* order;  // [count] places before the order
  float* geometry;
  float loss, width_loss;  // of the longest axis's log scale, of the others
  double opacity;          // what is left of it
};
struct SelectArguments {
  u32 count, blocks, shift;  // of the digit looked at
  const u64* keys;
  const float* values;  // [N] not negative, instead of keys: their bits are the high half of a key
  u32* digit_counts;    // [256][blocks]
  u64* least;           // [blocks] smallest key above the one found
  GrowthState* state;
};

// ---- relocation --------------------------------------------------------------------------------------------------
constexpr int kMostTogether = 51;  // copies beyond that are shared out as if there were so many

struct WideScanArguments {
  u32 count, blocks;
  u64 *values, *sums;
};  // in place, each with itself
struct RelocateArguments {
  u32 count, live, copies;
  float lowest_logit;
  double lowest_opacity;
  u32 keys[kRandomKeys];
  float* geometry;
  const float* harmonics;
  u64* weights;                // [N] opacities in units of 2^-32, later their sums
  u32 *flags, *times;          // [N] whether a row lives; copies of it
  const u32* live_before;      // [N]
  const double* coefficients;  // [kMostTogether + 1][kMostTogether]
  u64* sources;                // [live + copies]; all are settled
  float* means;                // [live + copies, 3]
};

}  // namespace splat::card
