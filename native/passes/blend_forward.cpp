// Pass 4: tiles of 32x32 pixels, front to back, the whole state of a tile in the first-level cache.
#include "../blend.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

enum Plane { kT, kRed, kGreen, kBlue, kPlanes };
struct alignas(64) State {
  float at[kStrips][kTile][kPlanes][kStrip];
};

INLINE void open_tile(State& state, int columns, int rows) {  // pixels outside the image are born dead
  for (int s = 0; s < kStrips; s++)
    for (int r = 0; r < kTile; r++) {
      f8 inside = lane_numbers() + 8.f * s;
      store(state.at[s][r][kT], choose((inside < float(columns)) & (i8{} + (r < rows ? -1 : 0)), all(1.f), all(-1.f)));
      for (int p = kRed; p < kPlanes; p++) store(state.at[s][r][p], all(0.f));
    }
}

template <bool Cut>
INLINE void blend_items(State& state, const Batch& batch, const Item* items, int count, const Settings& settings) {
  const f8 cap = all(settings.max_alpha);
  for (int j = 0; j < count; j++) {
    const int k = items[j].member;
    const f8 red = all(batch.red[k]), green = all(batch.green[k]), blue = all(batch.blue[k]);
    auto* rows = state.at[items[j].strip];
    with_kind(
        batch.kind[j], [&](auto kind) __attribute__((always_inline)) {
          each_row<kind.value>(
              batch, items[j], j, columns_of(batch, items[j]), [&](int y, f8 value, f8) __attribute__((always_inline)) {
                float(*pixel)[kStrip] = rows[y];
                f8 T = load(pixel[kT]), weight = alpha_of<kind.value>(value, cap) * T;
                if (Cut) {
                  weight = keep_where(exceeds(T, settings.light_cut), weight);
                  store(pixel[kT], T - weight);
                } else {
                  f8 left = T - weight;
                  i8 live = exceeds(left, kMinTransmittance);
                  weight = keep_where(live, weight);
                  store(pixel[kT], choose(live, left, (f8)((i8)T | (i8)all(-0.f))));  // a dead pixel keeps its last T
                }
                store(pixel[kRed], load(pixel[kRed]) + weight * red);
                store(pixel[kGreen], load(pixel[kGreen]) + weight * green);
                store(pixel[kBlue], load(pixel[kBlue]) + weight * blue);
              });
        });
  }
}

INLINE void close_tile(const Engine& engine, const State& state, int x0, int y0, float* color, float* transmittance) {
  const int width = engine.camera.width, height = engine.camera.height;
  const size_t plane = size_t(width) * height;
  for (int r = 0; r < kTile && y0 + r < height; r++)
    for (int s = 0; s < kStrips && x0 + 8 * s < width; s++) {
      int n = width - x0 - 8 * s < 8 ? width - x0 - 8 * s : 8;
      size_t at = size_t(y0 + r) * width + x0 + 8 * s;
      f8 T = absolute(load(state.at[s][r][kT]));
      store_first(transmittance + at, T, n);
      for (int c = 0; c < 3; c++)
        store_first(color + c * plane + at, load(state.at[s][r][kRed + c]) + T * engine.settings.background[c], n);
    }
}

template <bool Cut>
void blend_tile(Engine& engine, int tile, float* color, float* transmittance) {
  State state;
  Batch batch;
  batch.nearly_cap = nearly_cap_of(engine.settings.max_alpha);
  LiveRows live = all_rows();
  const Splat* splats = engine.splats.data();
  const Pair* pairs = engine.pairs.data();
  const int x0 = tile % engine.tile_columns * kTile, y0 = tile / engine.tile_columns * kTile;
  const uint32_t end = engine.tile_begin.data()[tile + 1];
  uint32_t i = engine.tile_begin.data()[tile];
  Item* items = engine.items.data() + size_t(i) * kStrips;
  open_tile(state, engine.camera.width - x0, engine.camera.height - y0);
  for (int n; i < end && narrow<Cut>(state.at, engine.settings.light_cut, live); i += n) {
    n = int(end - i < kBatch ? end - i : kBatch);
    look_ahead(pairs, i + 2 * kBatch, end, [&](Pair pair) { __builtin_prefetch(&splats[pair.place]); });
    f8 g[8], g2[8];
    i8 word[kStrips];
    gather_batch(splats, pairs + i, n, x0 + 0.5f, y0 + 0.5f, batch, g, g2);
    item_words(g, g2, live, word);
    Item* end_of_items = append_items(word, n, items, engine.item_counts.data() + i);
    const int count = int(end_of_items - items);
    start_items(items, count, batch);
    blend_items<Cut>(state, batch, items, count, engine.settings);
    items = end_of_items;
  }
  engine.tile_end.data()[tile] = i;
  close_tile(engine, state, x0, y0, color, transmittance);
}

}  // namespace

void blend_forward(Engine& engine, float* color, float* transmittance) {
  const int tiles = engine.tile_columns * engine.tile_rows;
  engine.tile_end.at_least(tiles);
  engine.items.at_least(size_t(engine.pair_count) * kStrips);
  engine.item_counts.at_least(engine.pair_count);
  with_end_of_light(engine.settings, [&](auto cut) {
    constexpr bool Cut = decltype(cut)::value;
    engine.pool.each(tiles, [&](int tile, int) { blend_tile<Cut>(engine, tile, color, transmittance); });
  });
  engine.color = color;
  engine.transmittance = transmittance;
}

}  // namespace splat::SPLAT_LEVEL
