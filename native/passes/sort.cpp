// Pass 2: the visible Gaussians by depth. A radix sort over the bits of the float in three digits, as wide as the
// depths' range asks for; stable, so that equal depths keep the order of rows, whatever the number of threads.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kMostBits = 11;
constexpr size_t kMostValues = size_t{1} << kMostBits;

struct Digit { int shift, bits; };

template <class Place>
void sort_digit(ThreadPool& pool, uint32_t* histograms, int count, Digit digit, const uint64_t* from, Place&& place) {
  const int parts = pool.size(), shift = digit.shift, values = 1 << digit.bits;
  auto begin_of = [&](int part) { return int(int64_t(count) * part / parts); };
  pool.each(parts, [&](int part, int) {
    uint32_t* histogram = histograms + part * kMostValues;
    memset(histogram, 0, values * sizeof(uint32_t));
    for (int i = begin_of(part); i < begin_of(part + 1); i++) histogram[from[i] >> shift & (values - 1)]++;
  });
  uint32_t total = 0;
  for (int value = 0; value < values; value++)
    for (int part = 0; part < parts; part++) {
      uint32_t& slot = histograms[part * kMostValues + value];
      uint32_t n = slot;
      slot = total, total += n;
    }
  pool.each(parts, [&](int part, int) {
    uint32_t* next = histograms + part * kMostValues;
    for (int i = begin_of(part); i < begin_of(part + 1); i++) place(next[from[i] >> shift & (values - 1)]++, from[i]);
  });
}

}  // namespace

void sort_by_depth(Engine& engine) {
  uint32_t* histograms = engine.histograms.at_least(engine.pool.size() * kMostValues);
  const int range_bits = engine.depth_range ? 32 - __builtin_clz(engine.depth_range) : 1, bits = (range_bits + 2) / 3;
  uint64_t *a = engine.depth_keys[0].data(), *b = engine.depth_keys[1].data();
  uint32_t* order = engine.depth_order.at_least(engine.visible_count);
  auto digit = [&](int k, const uint64_t* from, auto&& place) {
    sort_digit(engine.pool, histograms, engine.visible_count, {32 + k * bits, bits}, from, place);
  };
  digit(0, b, [&](uint32_t at, uint64_t key) { a[at] = key; });
  digit(1, a, [&](uint32_t at, uint64_t key) { b[at] = key; });
  digit(2, b, [&](uint32_t at, uint64_t key) { order[at] = uint32_t(key); });
}

}  // namespace splat::SPLAT_LEVEL
