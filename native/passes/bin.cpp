// Pass 3: for each tile the Gaussians that reach it, front to back. Parts of the depth order are counted and
// scattered independently; lists come out sorted without a sort of pairs and without atomics.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

// One instruction each; the standard library's are calls. Like those they give `b` where `a` is not a number (of an
// ellipse so thin that its squeeze overflows), but never `a`: what comes second must be a number.
INLINE float least(float a, float b) { return a < b ? a : b; }
INLINE float most(float a, float b) { return a > b ? a : b; }

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
    float dy_right = least(most(dy_extreme, low), high), dy_left = least(most(-dy_extreme, low), high);
    float right = lean * dy_right + __builtin_sqrtf(most(g.reach - along * dy_right * dy_right, 0.f) * inverse);
    float left = lean * dy_left - __builtin_sqrtf(most(g.reach - along * dy_left * dy_left, 0.f) * inverse);
    float from = most(g.x + left - 0.5f - slack, first_pixel), to = least(g.x + right - 0.5f + slack, last_pixel);
    if (!(from <= to)) continue;
    int first = int(__builtin_ceilf(from)) / kTile, last = int(to) / kTile;
    if (first <= last) visit(uint32_t(r * columns + first), uint32_t(last - first + 1));
  }
}

INLINE bool needs_ellipse(const TileBox& box) { return box.row0 != box.row1 && box.column0 != box.column1; }

// Calls visit(first tile, number of tiles) for each row of tiles that the Gaussian reaches.
template <class Visit>
INLINE void tile_runs(const Splat& splat, const TileBox& box, int columns, Visit&& visit) {
  if (needs_ellipse(box)) return exact_runs(splat, box, columns, visit);
  for (int r = box.row0; r <= box.row1; r++)
    visit(uint32_t(r * columns + box.column0), uint32_t(box.column1 - box.column0 + 1));
}

using Part = BinPart;
constexpr int kPartsPerThread = 8;

// -> where its runs end
TileRun* count_part(Engine& engine, const uint32_t* order, const Part& part) {
  TileBox* boxes = engine.boxes.data();
  TileRun* run = part.runs;
  for (int i = part.begin; i < part.end; i++) {
    if (i + 24 < part.end) {
      __builtin_prefetch(&boxes[order[i + 24]], 1);
      if (needs_ellipse(boxes[order[i + 8]])) __builtin_prefetch(&engine.splats.data()[order[i + 8]]);
    }
    TileBox& box = boxes[order[i]];
    uint32_t pairs = 0;  // not in the part, whose neighbours in the cache line belong to other threads
    tile_runs(engine.splats.data()[order[i]], box, engine.tile_columns, [&](uint32_t tile, uint32_t length) {
      *run++ = {tile, length};
      for (uint32_t k = 0; k < length; k++) part.counts[tile + k]++;
      pairs += length;
    });
    if (box.pairs != pairs) box.pairs = pairs;  // seldom: two threads write to one cache line
  }
  return run;
}

void scatter_part(Engine& engine, const uint32_t* order, const Part& part) {
  const TileBox* boxes = engine.boxes.data();
  const TileRun* run = part.runs;
  Pair* pairs = engine.pairs.data();
  for (int i = part.begin; i < part.end; i++) {
    if (i + 24 < part.end) __builtin_prefetch(&boxes[order[i + 24]]);
    const uint32_t place = order[i];
    uint32_t slot = uint32_t(engine.chunks.data()[place / kChunk].first_slot) + boxes[place].slot;
    for (const uint32_t end = slot + boxes[place].pairs; slot < end; run++)
      for (uint32_t k = 0; k < run->length; k++) pairs[part.counts[run->tile + k]++] = {place, slot++};
  }
}

}  // namespace

void bin(Engine& engine) {
  // Near Gaussians cover more tiles than far ones: several parts a thread even that out.
  const int count = engine.visible_count, tiles = engine.tile_columns * engine.tile_rows;
  const int parts = engine.pool.parts_of(count, kPartsPerThread);
  const uint32_t* order = engine.depth_order.data();
  uint32_t *counts = engine.tile_counts.at_least(size_t(parts) * tiles),
           *begins = engine.tile_begin.at_least(tiles + 1);
  // Each thread writes to a place of its own with room for all runs. The places stay where they are from step to step:
  // so little more memory is touched than the runs fill.
  const int threads = engine.pool.size();
  TileRun* runs = engine.runs.at_least(size_t(threads) * engine.tile_rows_touched);
  TileRun** ends = engine.run_ends.at_least(threads);
  const size_t room = engine.runs.bytes() / sizeof(TileRun) / threads;
  for (int k = 0; k < threads; k++) ends[k] = runs + size_t(k) * room;
  Part* part = engine.parts.at_least(parts);
  auto begin_of = [&](int k) { return int(int64_t(count) * k / parts); };
  engine.pool.each(parts, [&](int k, int thread) {
    part[k] = {begin_of(k), begin_of(k + 1), ends[thread], counts + size_t(k) * tiles};
    memset(part[k].counts, 0, sizeof(uint32_t) * tiles);
    ends[thread] = count_part(engine, order, part[k]);
  });
  uint32_t total = 0;
  for (int tile = 0; tile < tiles; tile++) {
    begins[tile] = total;
    for (int k = 0; k < parts; k++) {
      uint32_t n = part[k].counts[tile];
      part[k].counts[tile] = total;
      total += n;
    }
  }
  begins[tiles] = engine.pair_count = total;
  engine.pairs.at_least(total);
  engine.pool.each(parts, [&](int k, int) { scatter_part(engine, order, part[k]); });
}

}  // namespace splat::SPLAT_LEVEL
