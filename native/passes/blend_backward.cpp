// Pass 6: front to back again, so that the forward's own code reproduces the transmittance.
// With g = dL/dcolor, everything behind a Gaussian contributes R = sum of w c.g behind it + T_final background.g;
// R starts as the pixel's finished colour times g and loses w c.g at each Gaussian. Then
// q = dL/d(ln alpha) = w c.g - R alpha / (1 - alpha); sums of q with powers of (dx, e) are all a Gaussian needs.
#include "../blend.hpp"
#include "../unmix.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

enum Plane { kT, kBehind, kRed, kGreen, kBlue, kPlanes };
struct alignas(64) State {
  float at[kStrips][kTile][kPlanes][kStrip];
};

struct Inputs {
  const float *color_gradient, *transmittance_gradient;
};

INLINE void open_tile(const Engine& engine, const Inputs& in, int x0, int y0, State& state) {
  const int width = engine.camera.width, height = engine.camera.height;
  const size_t plane = size_t(width) * height;
  for (int s = 0; s < kStrips; s++)
    for (int r = 0; r < kTile; r++) {
      int n = y0 + r < height ? width - x0 - 8 * s : 0;
      n = n < 0 ? 0 : n > 8 ? 8 : n;
      size_t at = size_t(y0 + r) * width + x0 + 8 * s;
      f8 behind = all(0.f), g[3];
      for (int c = 0; c < 3; c++) g[c] = n ? load_first(in.color_gradient + c * plane + at, n) : all(0.f);
      if (engine.unmix) unmix(g, engine.unmix);
      for (int c = 0; c < 3; c++) {
        if (n) behind += g[c] * load_first(engine.color + c * plane + at, n);
        store(state.at[s][r][kRed + c], g[c]);
      }
      if (n && in.transmittance_gradient)
        behind += load_first(in.transmittance_gradient + at, n) * load_first(engine.transmittance + at, n);
      store(state.at[s][r][kBehind], behind);
      store(state.at[s][r][kT], choose(lane_mask(n), all(1.f), all(-1.f)));
    }
}

struct Sums {
  f8 red, green, blue, q, qx, qe, qxx, qxe, qee, absolute;
};

// One item's share of a pair's gradient. With alpha below one neither `left` nor what follows from it is ever zero,
// and a dead pixel's weight is: no further masks are needed.
template <ItemKind Kind, bool Absolute, bool Cut>
INLINE void gather_item(const Engine& engine, State& state, const Batch& batch, Item item, int j, Sums& sum) {
  const int k = item.member;
  const f8 cap = all(engine.settings.max_alpha), red = all(batch.red[k]), green = all(batch.green[k]),
           blue = all(batch.blue[k]);
  // d(ln alpha)/d(centre), in units of half the image: the gof criterion adds its absolute values pixel by pixel
  const float half_x = 0.5f * engine.camera.width, half_y = 0.5f * engine.camera.height;
  const float per_dx = 2 / kLog2E * batch.across[k], per_e = 2 / kLog2E * batch.down[k];
  const Columns columns = columns_of(batch, item);
  const f8 dx = columns.dx;
  auto* rows = state.at[item.strip];
  f8 q0 = all(0.f), q1 = all(0.f), q2 = all(0.f);
  each_row<Kind>(
      batch, item, j, columns, [&](int y, f8 value, f8 e) __attribute__((always_inline)) {
        float(*pixel)[kStrip] = rows[y];
        f8 T = load(pixel[kT]), weight = alpha_of<Kind>(value, cap) * T;
        f8 left;
        if (Cut) {
          weight = keep_where(exceeds(T, engine.settings.light_cut), weight);
          left = T - weight;
          store(pixel[kT], left);
        } else {
          left = T - weight;
          i8 live = exceeds(left, kMinTransmittance);
          weight = keep_where(live, weight);
          store(pixel[kT], choose(live, left, all(-1.f)));
        }
        f8 gr = load(pixel[kRed]), gg = load(pixel[kGreen]), gb = load(pixel[kBlue]);
        f8 by_weight = red * gr + green * gg + blue * gb, behind = load(pixel[kBehind]) - weight * by_weight;
        store(pixel[kBehind], behind);
        sum.red += weight * gr;
        sum.green += weight * gg;
        sum.blue += weight * gb;
        f8 q = weight * (by_weight - behind / left);
        if (Kind != kSmooth) q = keep_where(value <= cap, q);  // the cap has no slope
        if (Kind == kSteep) {
          q0 += q;
          q1 += q * e;
          q2 += q * e * e;
        } else {
          q0 += q;
          q1 += q0;
          q2 += q1;
        }
        if (Absolute) {
          f8 by_y = per_e * e, by_x = per_dx * dx - batch.tilt[k] * by_y;
          sum.absolute += absolute(q * by_x) * half_x + absolute(q * by_y) * half_y;
        }
      });
  if (Kind != kSteep) {  // sums of sums count a row n, n - 1, ... 1 times: moments about the row after the last
    f8 after = columns.e + float(item.y1 - item.y0), about_after = q1;
    q1 = after * q0 - about_after;
    q2 = after * (q1 - about_after) + 2.f * q2 - about_after;
  }
  f8 qx = q0 * dx;
  sum.q += q0;
  sum.qx += qx;
  sum.qe += q1;
  sum.qxx += qx * dx;
  sum.qxe += q1 * dx;
  sum.qee += q2;
}

template <bool Absolute>
INLINE void store_pair(float* out, const Sums& s) {
  const f8 eight[8] = {s.red, s.green, s.blue, s.q, s.qx, s.qe, s.qxx, s.qxe};
  store(out, sums_of(eight));
  out[8] = sum_of(s.qee);
  out[9] = Absolute ? sum_of(s.absolute) : 0;
  out[10] = out[11] = 0;
}

template <bool Absolute, bool Cut>
void blend_tile(Engine& engine, const Inputs& in, int tile) {
  State state;
  Batch batch;
  batch.nearly_cap = nearly_cap_of(engine.settings.max_alpha);
  const Splat* splats = engine.splats.data();
  const Pair* pairs = engine.pairs.data();
  float* gradients = engine.pair_gradients.data();
  const int x0 = tile % engine.tile_columns * kTile, y0 = tile / engine.tile_columns * kTile;
  const uint32_t end = engine.tile_end.data()[tile], list_end = engine.tile_begin.data()[tile + 1];
  uint32_t i = engine.tile_begin.data()[tile];
  const Item* items = engine.items.data() + size_t(i) * kStrips;
  open_tile(engine, in, x0, y0, state);
  for (int n, count; i < end; i += n, items += count) {
    n = int(end - i < kBatch ? end - i : kBatch);
    look_ahead(pairs, i + kBatch, end, [&](Pair pair) {
      __builtin_prefetch(&splats[pair.place]);
      __builtin_prefetch(gradients + size_t(pair.slot) * kPairWidth, 1);
    });
    f8 g[8], g2[8];
    gather_batch(splats, pairs + i, n, x0 + 0.5f, y0 + 0.5f, batch, g, g2);
    const uint8_t* counts = engine.item_counts.data() + i;
    count = 0;
    for (int k = 0; k < n; k++) count += counts[k];
    start_items(items, count, batch);
    for (int k = 0, j = 0; k < n; k++) {
      float* out = gradients + size_t(pairs[i + k].slot) * kPairWidth;
      if (!counts[k]) {
        memset(out, 0, kPairWidth * sizeof(float));
        continue;
      }
      Sums sums = {};
      for (const int end_of_items = j + counts[k]; j < end_of_items; j++)
        with_kind(
            batch.kind[j], [&](auto kind) __attribute__((always_inline)) {
              gather_item<kind.value, Absolute, Cut>(engine, state, batch, items[j], j, sums);
            });
      store_pair<Absolute>(out, sums);
    }
  }
  for (; i < list_end; i++) memset(gradients + size_t(pairs[i].slot) * kPairWidth, 0, kPairWidth * sizeof(float));
}

}  // namespace

void blend_backward(Engine& engine, const float* color_gradient, const float* transmittance_gradient) {
  engine.pair_gradients.at_least(size_t(engine.slot_count) * kPairWidth);
  const Inputs in{color_gradient, transmittance_gradient};
  const bool absolute_too = engine.settings.absolute_gradients;
  with_end_of_light(engine.settings, [&](auto cut) {
    constexpr bool Cut = decltype(cut)::value;
    engine.pool.each(engine.tile_columns * engine.tile_rows, [&](int tile, int) {
      absolute_too ? blend_tile<true, Cut>(engine, in, tile) : blend_tile<false, Cut>(engine, in, tile);
    });
  });
}

}  // namespace splat::SPLAT_LEVEL
