// Pass 2: the visible Gaussians by depth. A radix sort over the bits of the float in three digits, as wide as the
// depths' range asks for; stable, so that equal depths keep the order of rows, whatever the number of threads.
#include "../engine.hpp"
#include "../simd.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kMostBits = 11;
constexpr size_t kMostValues = size_t{1} << kMostBits;

constexpr int kPartsPerThread = 4;

struct Digit {
  int shift, bits;
};

// One digit. each_key(part, visit) goes through a part's keys in their order, once to count them and once to put them.
template <class EachKey, class Put>
void sort_digit(ThreadPool& pool, int parts, uint32_t* histograms, Digit digit, EachKey&& each_key, Put&& put) {
  const int shift = digit.shift, values = 1 << digit.bits;
  pool.each(parts, [&](int part, int) {
    uint32_t* histogram = histograms + part * kMostValues;
    memset(histogram, 0, values * sizeof(uint32_t));
    each_key(part, [&](uint64_t key) { histogram[key >> shift & (values - 1)]++; });
  });
  uint32_t total = 0;
  for (int value = 0; value < values; value++)
    for (int part = 0; part < parts; part++) {
      uint32_t& slot = histograms[part * kMostValues + value];
      uint32_t n = slot;
      slot = total;
      total += n;
    }
  pool.each(parts, [&](int part, int) {
    uint32_t* next = histograms + part * kMostValues;
    each_key(part, [&](uint64_t key) { put(next[key >> shift & (values - 1)]++, key); });
  });
}

}  // namespace

void sort_by_depth(Engine& engine) {
  const int count = engine.visible_count, parts = engine.pool.parts_of(count, kPartsPerThread);
  uint32_t* histograms = engine.histograms.at_least(parts * kMostValues);
  const uint32_t range = count ? engine.farthest - engine.nearest : 0;
  const int range_bits = range ? 32 - __builtin_clz(range) : 1, bits = (range_bits + 2) / 3;
  uint64_t *a = engine.depth_keys[0].data(), *b = engine.depth_keys[1].data();
  uint32_t* order = engine.depth_order.at_least(count);
  auto begin_of = [&](int part) { return int(int64_t(count) * part / parts); };
  auto by_chunk = [&](int part, auto&& visit) {  // a chunk belongs to the part in which its first key lies
    for (int k = 0, before = 0; k < engine.chunk_count; before += engine.chunks.data()[k++].count) {
      if (before < begin_of(part) || before >= begin_of(part + 1)) continue;
      const uint64_t *keys = a + size_t(k) * kChunk, *end = keys + engine.chunks.data()[k].count,
                     nearest = uint64_t(engine.nearest) << 32;
      for (; keys < end; keys++) visit(*keys - nearest);
    }
  };
  auto in_a_row = [&](const uint64_t* keys) {
    return [&, keys](int part, auto&& visit) {
      for (int i = begin_of(part); i < begin_of(part + 1); i++) visit(keys[i]);
    };
  };
  auto digit = [&](int k) { return Digit{32 + k * bits, bits}; };
  sort_digit(engine.pool, parts, histograms, digit(0), by_chunk, [&](uint32_t at, uint64_t key) { b[at] = key; });
  sort_digit(engine.pool, parts, histograms, digit(1), in_a_row(b), [&](uint32_t at, uint64_t key) { a[at] = key; });
  sort_digit(engine.pool, parts, histograms, digit(2), in_a_row(a),
             [&](uint32_t at, uint64_t key) { order[at] = uint32_t(key); });
}

}  // namespace splat::SPLAT_LEVEL
