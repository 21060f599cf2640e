// Moving rows: Morton order, and gathering rows into a new array.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine.hpp"

namespace splat {
namespace {

constexpr int kAxisBits = 21;

uint64_t spread(uint64_t v) {  // two zero bits between neighbouring bits
  v = (v | v << 32) & 0x1f00000000ffffULL;
  v = (v | v << 16) & 0x1f0000ff0000ffULL;
  v = (v | v << 8) & 0x100f00f00f00f00fULL;
  v = (v | v << 4) & 0x10c30c30c30c30c3ULL;
  return (v | v << 2) & 0x1249249249249249ULL;
}

struct Keyed {
  uint64_t key;
  int64_t row;
};

void sort_keys(std::vector<Keyed>& keyed) {  // radix, stable; outliers leave the high digits mostly equal
  constexpr int kBits = 11, kValues = 1 << kBits;
  std::vector<Keyed> other(keyed.size());
  for (int shift = 0; shift < 3 * kAxisBits; shift += kBits) {
    size_t histogram[kValues] = {}, total = 0;
    for (const Keyed& k : keyed) histogram[k.key >> shift & (kValues - 1)]++;
    for (size_t& n : histogram) {
      size_t here = n;
      n = total;
      total += here;
    }
    for (const Keyed& k : keyed) other[histogram[k.key >> shift & (kValues - 1)]++] = k;
    keyed.swap(other);
  }
}

}  // namespace

void morton_order(ThreadPool& pool, int count, const float* means, int stride, int64_t* order) {
  float low[3], high[3];
  for (int k = 0; k < 3; k++) {
    low[k] = std::numeric_limits<float>::infinity();
    high[k] = -low[k];
  }
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 3; k++) {
      float v = means[size_t(i) * stride + k];
      if (std::isfinite(v)) {
        low[k] = std::min(low[k], v);
        high[k] = std::max(high[k], v);
      }
    }
  float scale[3];
  for (int k = 0; k < 3; k++) scale[k] = high[k] > low[k] ? float((1 << kAxisBits) - 1) / (high[k] - low[k]) : 0.f;
  std::vector<Keyed> keyed(count);
  pool.each((count + 8191) / 8192, [&](int task, int) {
    for (int i = task * 8192; i < std::min(count, (task + 1) * 8192); i++) {
      uint64_t key = 0;
      for (int k = 0; k < 3; k++) {
        float v = (means[size_t(i) * stride + k] - low[k]) * scale[k];
        key |= spread(v > 0 ? uint64_t(std::min(v, float((1 << kAxisBits) - 1))) : 0) << k;  // NaN sorts first
      }
      keyed[i] = {key, i};
    }
  });
  sort_keys(keyed);
  for (int i = 0; i < count; i++) order[i] = keyed[i].row;
}

void take_rows(ThreadPool& pool, int rows, int width, const float* from, const int64_t* source, const bool* zeroed,
               float* to) {
  constexpr int kRows = 4096;
  const size_t bytes = sizeof(float) * width;
  pool.each((rows + kRows - 1) / kRows, [&](int task, int) {
    for (int i = task * kRows; i < std::min(rows, (task + 1) * kRows); i++) {
      float* row = to + size_t(i) * width;
      if (zeroed && zeroed[i])
        std::memset(row, 0, bytes);
      else
        std::memcpy(row, from + size_t(source[i]) * width, bytes);
    }
  });
}

}  // namespace splat
