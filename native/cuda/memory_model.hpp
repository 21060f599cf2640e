// How much of the card's memory training takes, as the arena counts it; a test compares it with what the arena held.
#pragma once
#include <algorithm>
#include <cstddef>

#include "kernels/arguments.hpp"

namespace splat::card {

constexpr double kSparePairs = 1.3;  // pairs are reserved for this much more than were seen

struct MemoryModel {
  static constexpr size_t kTableRow =
      4 * (kGeometryWidth + kHarmonicsWidth + kGeometryMomentsWidth + 2 * kHarmonicsWidth);
  static constexpr size_t kSortRow =
      16 + 4 * kDigits / kBlockItems;  // two buffers of keys and values, and digits' counts
  static constexpr size_t kStepRow =
      4 * kSplatWidth + 6 * 4 + kSortRow;  // splat; depth, tiles, key, row, offset, first pair
  static constexpr size_t kPair = 4 + 4 + 4 * kSlotWidth + 1 + kSortRow;  // key, row, slot, touched
  static constexpr size_t kPixel = 4 * (3 + 1 + 3 + 9);  // colour, transmittance, gradient, the loss's maps
  static constexpr size_t kMovingRow =
      4 * kHarmonicsWidth + 8 + 12 + 4;      // while rows move: one array more, source, mean, order
  static constexpr size_t kFixed = 1 << 20;  // counters, cameras, sums

  // With as many rows as there will ever be, of which pairs are seen in one image of so many pixels.
  static size_t steps(size_t rows, size_t pairs) {
    return rows * (kTableRow + kStepRow) + size_t(kSparePairs * double(pairs)) * kPair;
  }
  static size_t growth(size_t rows) { return rows * (kTableRow + kMovingRow); }
  static size_t training(size_t rows, size_t pairs, size_t pixels, size_t photo_bytes) {
    return std::max(steps(rows, pairs), growth(rows)) + pixels * kPixel + photo_bytes + kFixed;
  }
};

}  // namespace splat::card
