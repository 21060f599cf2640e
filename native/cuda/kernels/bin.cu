// Pass 3: what is visible, together; then for each tile the Gaussians that reach it, front to back. Pairs are emitted
// in
// the order of depth and sorted by tile, which keeps that order. A pair is its number at emission, which is also its
// gradient's slot: a Gaussian's slots follow each other.
#include "block.hpp"
#include "ellipse.hpp"

namespace splat::card {

INLINE u32 row_of_item(int k) { return blockIdx.x * kBlockItems + threadIdx.x * kItems + k; }

// How many rows of each block are visible, their pairs, and the farthest depth.
KERNEL(kThreads, count_rows, CountArguments) {
  u32 visible = 0, farthest = 0;
  u64 pairs = 0;
  for (int k = 0; k < kItems; k++) {
    const u32 row = row_of_item(k), tiles = row < a.count ? fetch(a.tiles, row) : 0;
    if (!(tiles & kVisible)) continue;
    visible++;
    pairs += tiles & ~kVisible;
    farthest = max(farthest, fetch(a.depths, row));
  }
  visible = block_sum(visible);
  pairs = block_sum(pairs);
  farthest = block_reduce(farthest, [](u32 x, u32 y) { return max(x, y); });
  if (threadIdx.x == 0) {
    store(a.visible, blockIdx.x, visible);
    store(a.pairs, blockIdx.x, pairs);
    store(a.farthest, blockIdx.x, farthest);
  }
}

KERNEL(kThreads, count_top, CountArguments) {
  u32 carry = 0, farthest = 0;
  u64 pairs = 0;
  for (u32 base = 0; base < a.blocks; base += kThreads) {
    const u32 i = base + threadIdx.x;
    u32 all;
    const u32 before = block_scan(i < a.blocks ? load(a.visible, i) : 0u, all);
    if (i < a.blocks) {
      store(a.visible, i, carry + before);
      pairs += fetch(a.pairs, i);
      farthest = max(farthest, fetch(a.farthest, i));
    }
    carry += all;
  }
  pairs = block_sum(pairs);
  farthest = block_reduce(farthest, [](u32 x, u32 y) { return max(x, y); });
  if (threadIdx.x == 0)
    store(a.counters, 0, Counters{carry, pairs < 0xffffffffull ? u32(pairs) : 0xffffffffu, farthest, 0});
}

KERNEL(kThreads, compact, CountArguments) {
  u32 visible = 0, all;
  for (int k = 0; k < kItems; k++) visible += row_of_item(k) < a.count && (fetch(a.tiles, row_of_item(k)) & kVisible);
  u32 at = fetch(a.visible, blockIdx.x) + block_scan(visible, all);
  for (int k = 0; k < kItems; k++) {
    const u32 row = row_of_item(k);
    if (row >= a.count || !(fetch(a.tiles, row) & kVisible)) continue;
    store(a.keys, at, fetch(a.depths, row) - kNearBits);
    store(a.rows, at, row);
    at++;
  }
}

constexpr u32 kManyTiles = 32;  // from so many on a Gaussian's pairs are written by the whole warp

INLINE void store_pair(const EmitArguments& a, u32 at, u32 end, u32 tile, u32 row) {
  if (at < end) {
    store(a.keys, at, tile);
    store(a.pair_rows, at, row);
  }
}

// Writes as many pairs as project has counted, neither more nor fewer, whatever is found here: every slot has its
// owner.
// Should some be missing, theirs lie in a tile behind the last, which nobody draws.
KERNEL(kThreads, emit, EmitArguments) {
  const u32 i = thread_number(), visible = fetch(&a.counters->visible, 0),
            nowhere = u32(a.frame.tile_columns * a.frame.tile_rows);
  const bool works = i < visible;
  const u32 row = works ? fetch(a.order, i) : 0, first = works ? fetch(a.offsets, i) : 0;
  const u32 pairs = works ? fetch(a.tiles, row) & ~kVisible : 0, end = min(first + pairs, a.capacity);
  if (works) store(a.first_pair, row, first);
  if (works && pairs < kManyTiles) {
    u32 at = first;
    each_run(a.frame, fetch_splat(a.splats, row), [&](int r, int from, int to) {
      for (int c = from; c <= to; c++) store_pair(a, at++, end, u32(r * a.frame.tile_columns + c), row);
    });
    for (; at < end; at++) store_pair(a, at, end, nowhere, row);
  }
  for (u32 large = __ballot_sync(kAllLanes, pairs >= kManyTiles); large; large &= large - 1) {
    const int who = __ffs(int(large)) - 1;
    const u32 its_row = __shfl_sync(kAllLanes, row, who), its_end = __shfl_sync(kAllLanes, end, who);
    u32 at = __shfl_sync(kAllLanes, first, who);
    each_run(a.frame, fetch_splat(a.splats, its_row), [&](int r, int from, int to) {
      for (int c = from + lane_number(); c <= to; c += 32)
        store_pair(a, at + u32(c - from), its_end, u32(r * a.frame.tile_columns + c), its_row);
      at += u32(to - from + 1);
    });
    for (at += u32(lane_number()); at < its_end; at += 32) store_pair(a, at, its_end, nowhere, its_row);
  }
}

// Where each tile's pairs begin. Tiles without any begin where the next one does.
KERNEL(kThreads, tile_begins, TileBeginsArguments) {
  const u32 i = thread_number(), pairs = min(fetch(&a.counters->pairs, 0), a.capacity);
  if (i > pairs) return;
  const u32 from = i == 0 ? 0 : fetch(a.keys, i - 1) + 1, to = i == pairs ? a.tiles : fetch(a.keys, i);
  for (u32 tile = from; tile <= to; tile++) store(a.begins, tile, i);
}

}  // namespace splat::card
