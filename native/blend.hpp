// What forward and backward blending share. A tile's Gaussians are taken in batches, front to back; for each
// the exact range of rows in each strip of eight pixels becomes a work item (Gaussian, strip, y0, y1).
#pragma once
#include "engine.hpp"
#include "simd.hpp"

namespace splat::SPLAT_LEVEL {

constexpr int kBatch = 32;

struct Item { uint8_t member, strip, y0, y1; };

// Down a column alpha is 2^(constant - down e^2), so the ratio of neighbouring rows changes by a constant factor:
// value(y+1) = value(y) r(y),  r(y+1) = r(y) 2^(-2 down). One multiplication a row instead of an exponential.
struct alignas(64) Start { float value[8], ratio[8]; };

struct alignas(64) Batch {
  float x[kBatch], y[kBatch], across[kBatch], tilt[kBatch], down[kBatch], log2_opacity[kBatch];
  float red[kBatch], green[kBatch], blue[kBatch], curvature[kBatch];  // curvature = 2^(-2 down)
  int32_t y0[kStrips][kBatch], y1[kStrips][kBatch];
  uint16_t first_item[kBatch + 1];
  Item items[kBatch * kStrips + 8];
  Start starts[kBatch * kStrips + 8];
  uint8_t direct[kBatch * kStrips + 8];  // too steep for the recurrence: compute each row's exponential
};

struct LiveRows { uint8_t begin[kStrips], end[kStrips]; };  // rows that still have a live pixel, per strip

// Tile state is [strip][row][planes][8 pixels]; plane 0 is the transmittance, whose sign bit marks a dead pixel.
template <int Planes>
INLINE bool find_live_rows(const float (*state)[kTile][Planes][kStrip], LiveRows& live) {
  bool any = false;
  for (int s = 0; s < kStrips; s++) {
    int first = kTile, last = 0;
    for (int r = 0; r < kTile; r++)
      if (sign_bits((i8)load(state[s][r][0])) != kAllLanes) {
        if (first == kTile) first = r;
        last = r + 1;
      }
    live.begin[s] = uint8_t(first), live.end[s] = uint8_t(last);
    any |= last > 0;
  }
  return any;
}

// Rows of the ellipse within each strip, lanes = Gaussians. A little too many rows are fine: each pixel decides
// for itself whether alpha reaches 1/255.
INLINE void row_ranges(const f8* g, const f8* g2, const LiveRows& live, Batch& batch, int at) {
  f8 x = g[0], y = g[1], across = g[2], tilt = g[3], reach = g[6], half_width = g2[2], half_height = g2[3];
  f8 inverse = 1.f / g[4], dx_extreme = tilt * half_width * half_width / half_height;  // at the lowest point
  for (int s = 0; s < kStrips; s++) {
    f8 left = 8.f * s - x, right = left + 7.f;
    f8 dx_bottom = clamp(dx_extreme, left, right), dx_top = clamp(-dx_extreme, left, right);
    f8 under_bottom = reach - across * dx_bottom * dx_bottom, under_top = reach - across * dx_top * dx_top;
    f8 bottom = tilt * dx_bottom + square_root(maximum(under_bottom, all(0.f)) * inverse) + (y + 1.01f);
    f8 top = tilt * dx_top - square_root(maximum(under_top, all(0.f)) * inverse) + (y + 0.99f);
    bottom = choose(minimum(under_bottom, under_top) < -1e-5f * reach, all(0.f), bottom);  // beside the strip
    i8 y0 = truncate(clamp(top, all(float(live.begin[s])), all(float(kTile))));
    i8 y1 = truncate(clamp(bottom, all(0.f), all(float(live.end[s]))));
    memcpy(&batch.y0[s][at], &y0, sizeof y0), memcpy(&batch.y1[s][at], &y1, sizeof y1);
  }
}

// Gathers n Gaussians of a tile whose first pixel's centre is (origin_x, origin_y); returns the number of items.
INLINE int prepare(const Splat* splats, const Pair* pairs, int n, float origin_x, float origin_y, const LiveRows& live, Batch& batch) {
  for (int i = 0; i < n; i += 8) {
    f8 g[8], g2[8];
    for (int l = 0; l < 8; l++) {
      const float* splat = &splats[pairs[i + l < n ? i + l : n - 1].row].x;
      g[l] = load(splat), g2[l] = load(splat + 8);
    }
    transpose(g), transpose(g2);
    g[0] -= origin_x, g[1] -= origin_y;
    store(batch.x + i, g[0]), store(batch.y + i, g[1]), store(batch.across + i, g[2]), store(batch.tilt + i, g[3]);
    store(batch.down + i, g[4]), store(batch.log2_opacity + i, g[5]), store(batch.red + i, g[7]);
    store(batch.green + i, g2[0]), store(batch.blue + i, g2[1]);
    store(batch.curvature + i, exp2_of(maximum(-2 * g[4], all(-126.f))));
    row_ranges(g, g2, live, batch, i);
  }
  int items = 0;
  for (int k = 0; k < n; k++) {
    batch.first_item[k] = uint16_t(items);
    for (int s = 0; s < kStrips; s++) {
      int y0 = batch.y0[s][k], y1 = batch.y1[s][k];
      batch.items[items] = Item{uint8_t(k), uint8_t(s), uint8_t(y0), uint8_t(y1)};
      items += y0 < y1;
    }
  }
  batch.first_item[n] = uint16_t(items);
  return items;
}

// One strip's eight columns at the item's first row.
struct Columns { f8 dx, constant, e; };
INLINE Columns columns_of(const Batch& batch, Item item) {
  const int k = item.member;
  f8 dx = lane_numbers() + (8.f * item.strip - batch.x[k]);
  return {dx, batch.log2_opacity[k] - batch.across[k] * dx * dx, (float(item.y0) - batch.y[k]) - batch.tilt[k] * dx};
}

constexpr float kLeastPower = -126.f;  // of two, that a normal float can hold

INLINE void start_items(Batch& batch, int items) {
  for (int j = 0; j < items; j++) {
    const Item item = batch.items[j];
    const float down = batch.down[item.member], height = float(item.y1 - item.y0 - 1);
    const Columns c = columns_of(batch, item);
    f8 power = c.constant - down * c.e * c.e, step = -down * (2.f * c.e + 1.f);
    store(batch.starts[j].value, keep_where(power >= kLeastPower, exp2_of(power)));
    store(batch.starts[j].ratio, exp2_of(clamp(step, all(kLeastPower), all(-kLeastPower))));
    batch.direct[j] = !(down * height * height < 70.f);
  }
}

// Runs row(y, alpha before the cap, mask of alpha >= 1/255, e) over the item's rows.
template <class Row>
INLINE void each_row(const Batch& batch, int j, const Columns& c, Row&& row) {
  const Item item = batch.items[j];
  const f8 least = all(kMinAlpha);
  f8 e = c.e;
  if (__builtin_expect(!batch.direct[j], 1)) {
    f8 value = load(batch.starts[j].value), ratio = load(batch.starts[j].ratio);
    const f8 curvature = all(batch.curvature[item.member]);
    for (int y = item.y0; y < item.y1; y++, e += 1.f) {
      row(y, value, value >= least, e);
      value *= ratio, ratio *= curvature;
    }
  } else {
    for (int y = item.y0; y < item.y1; y++, e += 1.f) {
      f8 power = c.constant - batch.down[item.member] * e * e;
      f8 value = keep_where(power >= kLeastPower, exp2_of(maximum(power, all(kLeastPower))));
      row(y, value, value >= least, e);
    }
  }
}

INLINE void prefetch_batch(const Splat* splats, const Pair* pairs, int n) {
  for (int i = 0; i < n; i++) __builtin_prefetch(&splats[pairs[i].row]);
}

}  // namespace splat::SPLAT_LEVEL
