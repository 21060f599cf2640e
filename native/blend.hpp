// What forward and backward blending share. A tile's Gaussians are taken in batches of eight, front to back; for each
// the exact range of rows in each strip of eight pixels becomes a work item (Gaussian, strip, y0, y1).
#pragma once
#include <type_traits>

#include "engine.hpp"
#include "simd.hpp"

namespace splat::SPLAT_LEVEL {

constexpr int kBatch = 8;  // one vector; more were slower: they share the first-level cache with the tile's state

// Down a column alpha is 2^(constant - down e^2), so the ratio of neighbouring rows changes by a constant factor:
// value(y+1) = value(y) r(y),  r(y+1) = r(y) 2^(-2 down). One multiplication a row instead of an exponential.
struct alignas(64) Start {
  float value[8], ratio[8];
};  // side by side, so that both are one vector of sixteen

// Most items are smooth. Capped ones may exceed the largest alpha allowed; steep ones fall too fast for the
// recurrence, and each of their rows gets its own exponential.
enum ItemKind : uint8_t { kSmooth, kCapped, kSteep };

struct alignas(64) Batch {
  float x[kBatch], y[kBatch], across[kBatch], tilt[kBatch], down[kBatch], log2_opacity[kBatch];
  float red[kBatch], green[kBatch], blue[kBatch], curvature[kBatch];  // curvature = 2^(-2 down)
  Start starts[kBatch * kStrips];
  float nearly_cap;  // log2 of an opacity from which on the largest alpha may be exceeded
  ItemKind kind[kBatch * kStrips];
};

struct LiveRows {
  uint8_t begin[kStrips], end[kStrips];
};  // from the first to after the last with a live pixel, per strip
INLINE LiveRows all_rows() {
  LiveRows live = {};
  for (int s = 0; s < kStrips; s++) live.end[s] = kTile;
  return live;
}

// value > limit for a positive limit, compared as integers: the units that compare floats have to multiply.
INLINE i8 exceeds(f8 value, float limit) {
  int32_t bits;
  memcpy(&bits, &limit, sizeof bits);
  return (i8)value > bits;
}

// When is a pixel finished? By the original's rule, when a Gaussian would leave no more light than kMinTransmittance:
// that one is not blended, however much light it would have caught. With a light cut, when no more than that is left;
// whatever caught the light is blended. That is less work a row, too: the transmittance alone tells who is dead.
template <class Body>
INLINE void with_end_of_light(const Settings& settings, Body&& body) {
  if (settings.light_cut > 0)
    body(std::true_type());
  else
    body(std::false_type());
}

// Tile state is [strip][row][planes][8 pixels]; plane 0 is the transmittance, whose sign bit marks a dead pixel, or
// that it is not above the cut. The dead stay dead: the borders only ever move inwards. False when nothing is left.
template <bool Cut, int Planes>
INLINE bool narrow(const float (*state)[kTile][Planes][kStrip], float cut, LiveRows& live) {
  bool any = false;
  for (int s = 0; s < kStrips; s++) {
    auto dead = [&](int row) {
      const f8 T = load(state[s][row][0]);
      return Cut ? sign_bits(exceeds(T, cut)) == 0 : sign_bits((i8)T) == kAllLanes;
    };
    int begin = live.begin[s], end = live.end[s];
    while (begin < end && dead(begin)) begin++;
    while (begin < end && dead(end - 1)) end--;
    live.begin[s] = uint8_t(begin);
    live.end[s] = uint8_t(end);
    any |= begin < end;
  }
  return any;
}

// Rows of the ellipse within each strip as words of an Item, lanes = Gaussians; the sign bit marks those without
// rows. A little too many rows are fine: each pixel decides for itself whether alpha reaches 1/255.
INLINE void item_words(const f8* g, const f8* g2, const LiveRows& live, i8* word) {
  const i8 member = truncate(lane_numbers());
  f8 x = g[0], y = g[1], across = g[2], tilt = g[3], reach = g[6], half_width = g2[2], half_height = g2[3];
  f8 inverse = 1.f / g[4], dx_extreme = tilt * half_width * half_width / half_height;  // at the lowest point
  for (int s = 0; s < kStrips; s++) {
    f8 left = 8.f * s - x, right = left + 7.f;
    f8 dx_bottom = clamp(dx_extreme, left, right), dx_top = clamp(-dx_extreme, left, right);
    f8 under_bottom = reach - across * dx_bottom * dx_bottom, under_top = reach - across * dx_top * dx_top;
    f8 bottom = tilt * dx_bottom + square_root(maximum(under_bottom, all(0.f)) * inverse) + (y + 1.01f);
    f8 top = tilt * dx_top - square_root(maximum(under_top, all(0.f)) * inverse) + (y + 0.99f);
    i8 beside = minimum(under_bottom, under_top) < -1e-5f * reach;
    i8 y0 = truncate(clamp(top, all(float(live.begin[s])), all(float(kTile))));
    i8 y1 = truncate(clamp(bottom, all(0.f), all(float(live.end[s]))));
    word[s] = (member | (s << 8) | y0 << 16 | y1 << 24) | (((y0 >= y1) | beside) & INT32_MIN);
  }
}

// Appends the items of a batch, of which the first n Gaussians count, and says how many each has.
INLINE Item* append_items(i8* word, int n, Item* items, uint8_t* counts) {
  transpose_quads(word);
  for (int half = 0; half < 2; half++)
    for (int l = 0; l < 4 && 4 * half + l < n; l++) {
      i4 quad;
      memcpy(&quad, (const char*)&word[l] + 16 * half, sizeof quad);
      const Packing& packing = kPackings.of[sign_bits(word[l]) >> 4 * half & 15];
      quad = pack(quad, packing);
      memcpy(items, &quad, sizeof quad);  // four words always fit: no Gaussian has more
      items += packing.count;
      counts[4 * half + l] = uint8_t(packing.count);
    }
  return items;
}
static_assert(sizeof(Item) == 4 && kStrips == 4, "items are made as words, four to a Gaussian");

// Gathers n Gaussians of a tile whose first pixel's centre is (origin_x, origin_y), and leaves their records as
// columns.
INLINE void gather_batch(const Splat* splats, const Pair* pairs, int n, float origin_x, float origin_y, Batch& batch,
                         f8* g, f8* g2) {
  for (int l = 0; l < kBatch; l++) {
    const float* splat = &splats[pairs[l < n ? l : n - 1].place].x;
    g[l] = load(splat);
    g2[l] = load(splat + 8);
  }
  transpose(g);
  transpose(g2);
  g[0] -= origin_x;
  g[1] -= origin_y;
  store(batch.x, g[0]);
  store(batch.y, g[1]);
  store(batch.across, g[2]);
  store(batch.tilt, g[3]);
  store(batch.down, g[4]);
  store(batch.log2_opacity, g[5]);
  store(batch.red, g[7]);
  store(batch.green, g2[0]);
  store(batch.blue, g2[1]);
  store(batch.curvature, exp2_of(maximum(-2 * g[4], all(-126.f))));
}

// One strip's eight columns at the item's first row.
struct Columns {
  f8 dx, constant, e;
};
INLINE Columns columns_of(const Batch& batch, Item item) {
  const int k = item.member;
  f8 dx = lane_numbers() + (8.f * item.strip - batch.x[k]);
  return {dx, batch.log2_opacity[k] - batch.across[k] * dx * dx, (float(item.y0) - batch.y[k]) - batch.tilt[k] * dx};
}

constexpr float kLeastPower = -126.f;  // of two, that a normal float can hold

// The recurrence is good to 1e-5.
INLINE float nearly_cap_of(float max_alpha) { return __builtin_log2f(max_alpha) - 1e-3f; }

INLINE void start_items(const Item* items, int count, Batch& batch) {
  for (int j = 0; j < count; j++) {
    const Item item = items[j];
    const float down = batch.down[item.member], height = float(item.y1 - item.y0 - 1);
    const Columns c = columns_of(batch, item);
    f8 power = c.constant - down * c.e * c.e, step = -down * (2.f * c.e + 1.f);
    step = clamp(step, all(kLeastPower), all(-kLeastPower));
    store_powers(&batch.starts[j], power, step, kLeastPower);
    const bool steep = !(down * height * height < 70.f), capped = !(batch.log2_opacity[item.member] < batch.nearly_cap);
    batch.kind[j] = steep ? kSteep : capped ? kCapped : kSmooth;
  }
}

template <ItemKind K>
struct KindConstant {
  static constexpr ItemKind value = K;
};
template <class Body>
INLINE void with_kind(ItemKind kind, Body&& body) {
  if (__builtin_expect(kind == kSmooth, 1))
    body(KindConstant<kSmooth>());
  else if (kind == kCapped)
    body(KindConstant<kCapped>());
  else
    body(KindConstant<kSteep>());
}

// Runs row(y, alpha before the cap, e) over the rows of the batch's item number j.
template <ItemKind Kind, class Row>
INLINE void each_row(const Batch& batch, Item item, int j, const Columns& c, Row&& row) {
  f8 e = c.e;
  if (Kind != kSteep) {
    f8 value = load(batch.starts[j].value), ratio = load(batch.starts[j].ratio);
    const f8 curvature = all(batch.curvature[item.member]);
    for (int y = item.y0; y < item.y1; y++, e += 1.f) {
      row(y, value, e);
      value *= ratio;
      ratio *= curvature;
    }
  } else {
    for (int y = item.y0; y < item.y1; y++, e += 1.f) {
      f8 power = c.constant - batch.down[item.member] * e * e;
      row(y, keep_where(power >= kLeastPower, exp2_of(maximum(power, all(kLeastPower)))), e);
    }
  }
}

constexpr float kBelowMinAlpha = 0x1.0101p-8f;  // the float before 1/255
static_assert(kBelowMinAlpha < kMinAlpha && kMinAlpha - kBelowMinAlpha < 5e-10f);

// What counts of a value: at least one grey level, at most the cap.
template <ItemKind Kind>
INLINE f8 alpha_of(f8 value, f8 cap) {
  return keep_where(exceeds(value, kBelowMinAlpha), Kind == kSmooth ? value : minimum(value, cap));
}

// Calls fetch(pair) for the pairs of a later batch, of those before `end`.
template <class Fetch>
INLINE void look_ahead(const Pair* pairs, uint32_t first, uint32_t end, Fetch&& fetch) {
  for (uint32_t k = first; k < first + kBatch && k < end; k++) fetch(pairs[k]);
}

}  // namespace splat::SPLAT_LEVEL
