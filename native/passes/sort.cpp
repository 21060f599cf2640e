// Pass 2: the visible Gaussians by depth. A radix sort over the bits of the float, three digits of eleven bits;
// stable, so that equal depths keep the order of rows, whatever the number of threads.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kDigits = 3, kBits = 11, kValues = 1 << kBits;

struct Sorted { uint32_t *keys, *rows; };

void sort_digit(ThreadPool& pool, uint32_t* histograms, int count, int digit, Sorted from, Sorted to) {
  const int parts = pool.size(), shift = digit * kBits;
  auto begin_of = [&](int part) { return int(int64_t(count) * part / parts); };
  pool.each(parts, [&](int part, int) {
    uint32_t* histogram = histograms + size_t(part) * kValues;
    memset(histogram, 0, kValues * sizeof(uint32_t));
    for (int i = begin_of(part); i < begin_of(part + 1); i++) histogram[from.keys[i] >> shift & (kValues - 1)]++;
  });
  uint32_t total = 0;
  for (int value = 0; value < kValues; value++)
    for (int part = 0; part < parts; part++) {
      uint32_t& slot = histograms[size_t(part) * kValues + value];
      uint32_t n = slot;
      slot = total, total += n;
    }
  pool.each(parts, [&](int part, int) {
    uint32_t* next = histograms + size_t(part) * kValues;
    for (int i = begin_of(part); i < begin_of(part + 1); i++) {
      uint32_t key = from.keys[i], to_index = next[key >> shift & (kValues - 1)]++;
      to.keys[to_index] = key, to.rows[to_index] = from.rows[i];
    }
  });
}

}  // namespace

void sort_by_depth(Engine& engine) {
  uint32_t* histograms = engine.histograms.at_least(size_t(engine.pool.size()) * kValues);
  Sorted input{engine.depth_keys[1].data(), engine.visible.data()};
  Sorted a{engine.depth_keys[0].data(), engine.depth_rows[0].data()}, b{engine.depth_keys[1].data(), engine.depth_rows[1].data()};
  sort_digit(engine.pool, histograms, engine.visible_count, 0, input, a);
  sort_digit(engine.pool, histograms, engine.visible_count, 1, a, b);
  sort_digit(engine.pool, histograms, engine.visible_count, 2, b, a);
}

}  // namespace splat::SPLAT_LEVEL
