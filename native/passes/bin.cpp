// Pass 3: for each tile the Gaussians that reach it, front to back. Parts of the depth order are counted and
// scattered independently; lists come out sorted without a sort of pairs and without atomics.
#include <cmath>

#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

// Columns of the ellipse in each row of tiles. Where its leftmost or rightmost point lies outside the row's span
// of pixel centres, the extreme is on the span's border.
template <class Visit>
INLINE void exact_runs(const Splat& g, const TileBox& box, int columns, Visit&& visit) {
  // The same factoring as in Splat, by rows: x = lean dy +- sqrt((reach - along dy^2) / right)
  const float squeeze = g.half_width / g.half_height, lean = g.tilt * squeeze * squeeze;
  const float along = g.reach / (g.half_height * g.half_height), inverse = squeeze * squeeze / g.down;
  const float dy_extreme = g.tilt * g.half_width;  // at the rightmost point; the leftmost has -dy_extreme
  const float slack = 0.01f + 1e-5f * g.half_width;
  const float first_pixel = float(box.column0 * kTile), last_pixel = float(box.column1 * kTile + kTile - 1);
  for (int r = box.row0; r <= box.row1; r++) {
    float low = r * kTile + 0.5f - g.y, high = low + (kTile - 1);
    float dy_right = std::fmin(std::fmax(dy_extreme, low), high), dy_left = std::fmin(std::fmax(-dy_extreme, low), high);
    float right = lean * dy_right + std::sqrt(std::fmax(0.f, g.reach - along * dy_right * dy_right) * inverse);
    float left = lean * dy_left - std::sqrt(std::fmax(0.f, g.reach - along * dy_left * dy_left) * inverse);
    float from = std::fmax(g.x + left - 0.5f - slack, first_pixel), to = std::fmin(g.x + right - 0.5f + slack, last_pixel);
    if (!(from <= to)) continue;
    int first = int(std::ceil(from)) / kTile, last = int(to) / kTile;
    if (first <= last) visit(uint32_t(r * columns + first), uint32_t(last - first + 1));
  }
}

// Calls visit(first tile, number of tiles) for each row of tiles that the Gaussian reaches.
template <class Visit>
INLINE void tile_runs(const Splat* splats, uint32_t row, const TileBox& box, int columns, Visit&& visit) {
  if (box.row0 == box.row1 || box.column0 == box.column1) {
    for (int r = box.row0; r <= box.row1; r++) visit(uint32_t(r * columns + box.column0), uint32_t(box.column1 - box.column0 + 1));
  } else {
    exact_runs(splats[row], box, columns, visit);
  }
}

uint32_t count_part(Engine& engine, const uint32_t* order, int begin, int end, uint32_t* counts) {
  TileBox* boxes = engine.boxes.data();
  uint32_t pairs = 0;
  for (int i = begin; i < end; i++) {
    if (i + 24 < end) __builtin_prefetch(&boxes[order[i + 24]], 1);
    TileBox& box = boxes[order[i]];
    box.first_pair = pairs;
    tile_runs(engine.splats.data(), order[i], box, engine.tile_columns, [&](uint32_t tile, uint32_t length) {
      for (uint32_t k = 0; k < length; k++) counts[tile + k]++;
      pairs += length;
    });
    box.pairs = pairs - box.first_pair;
  }
  return pairs;
}

void scatter_part(Engine& engine, const uint32_t* order, int begin, int end, uint32_t* next, uint32_t first_pair) {
  TileBox* boxes = engine.boxes.data();
  uint32_t *rows = engine.pair_rows.data(), *slots = engine.pair_slots.data();
  for (int i = begin; i < end; i++) {
    if (i + 24 < end) __builtin_prefetch(&boxes[order[i + 24]], 1);
    const uint32_t row = order[i];
    TileBox& box = boxes[row];
    uint32_t pair = box.first_pair += first_pair;
    tile_runs(engine.splats.data(), row, box, engine.tile_columns, [&](uint32_t tile, uint32_t length) {
      for (uint32_t k = 0; k < length; k++) {
        uint32_t place = next[tile + k]++;
        rows[place] = row, slots[place] = pair++;
      }
    });
  }
}

}  // namespace

void bin(Engine& engine) {
  const int count = engine.visible_count, parts = engine.pool.size(), tiles = engine.tile_columns * engine.tile_rows;
  const uint32_t* order = engine.depth_rows[0].data();
  uint32_t* counts = engine.tile_counts.at_least(size_t(parts) * tiles + parts + 1);
  uint32_t *part_pairs = counts + size_t(parts) * tiles, *begins = engine.tile_begin.at_least(tiles + 1);
  auto begin_of = [&](int part) { return int(int64_t(count) * part / parts); };
  engine.pool.each(parts, [&](int part, int) {
    uint32_t* mine = counts + size_t(part) * tiles;
    memset(mine, 0, sizeof(uint32_t) * tiles);
    part_pairs[part] = count_part(engine, order, begin_of(part), begin_of(part + 1), mine);
  });
  uint32_t total = 0;
  for (int tile = 0; tile < tiles; tile++) {  // counts become places to write to
    begins[tile] = total;
    for (int part = 0; part < parts; part++) {
      uint32_t n = counts[size_t(part) * tiles + tile];
      counts[size_t(part) * tiles + tile] = total, total += n;
    }
  }
  begins[tiles] = engine.pair_count = total;
  uint32_t before = 0;
  for (int part = 0; part < parts; part++) { uint32_t n = part_pairs[part]; part_pairs[part] = before, before += n; }
  engine.pair_rows.at_least(total), engine.pair_slots.at_least(total);
  engine.pool.each(parts, [&](int part, int) {
    scatter_part(engine, order, begin_of(part), begin_of(part + 1), counts + size_t(part) * tiles, part_pairs[part]);
  });
}

}  // namespace splat::SPLAT_LEVEL
