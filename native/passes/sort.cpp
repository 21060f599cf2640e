// Pass 2: the visible Gaussians by depth. A radix sort over the bits of the float, three digits of eleven bits;
// stable, so that equal depths keep the order of rows, whatever the number of threads.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kBits = 11, kValues = 1 << kBits;

template <class Place>
void sort_digit(ThreadPool& pool, uint32_t* histograms, int count, int shift, const uint64_t* from, Place&& place) {
  const int parts = pool.size();
  auto begin_of = [&](int part) { return int(int64_t(count) * part / parts); };
  pool.each(parts, [&](int part, int) {
    uint32_t* histogram = histograms + size_t(part) * kValues;
    memset(histogram, 0, kValues * sizeof(uint32_t));
    for (int i = begin_of(part); i < begin_of(part + 1); i++) histogram[from[i] >> shift & (kValues - 1)]++;
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
    for (int i = begin_of(part); i < begin_of(part + 1); i++) place(next[from[i] >> shift & (kValues - 1)]++, from[i]);
  });
}

}  // namespace

void sort_by_depth(Engine& engine) {
  uint32_t* histograms = engine.histograms.at_least(size_t(engine.pool.size()) * kValues);
  uint64_t *a = engine.depth_keys[0].data(), *b = engine.depth_keys[1].data();
  uint32_t* order = engine.depth_order.at_least(engine.visible_count);
  auto digit = [&](int k, const uint64_t* from, auto&& place) {
    sort_digit(engine.pool, histograms, engine.visible_count, 32 + k * kBits, from, place);
  };
  digit(0, b, [&](uint32_t at, uint64_t key) { a[at] = key; });
  digit(1, a, [&](uint32_t at, uint64_t key) { b[at] = key; });
  digit(2, b, [&](uint32_t at, uint64_t key) { order[at] = uint32_t(key); });
}

}  // namespace splat::SPLAT_LEVEL
