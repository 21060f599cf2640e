// Scans and stable sorts of arrays on the card; nothing here waits.
#pragma once
#include "card.hpp"

namespace splat::card {

// Of (values[order[i]] >> shift) & mask, i < min(*count, limit). order and count may be null, out may be values.
struct Scan {
  const u32* values;
  u32 limit;
  u32* out;
  const u32 *order = nullptr, *count = nullptr;
  u32 shift = 0, mask = 0xffffffffu;
  u32* total = nullptr;
};

class Scanner {
 public:
  Scanner(Card& card, Arena& arena) : card_(card), sums_(arena, "the sums of a scan") {}
  void operator()(const Scan& scan);
  void release() { sums_.release(); }

 private:
  Card& card_;
  CardBuffer<u32> sums_;
};

template <class Key>
struct Sorted {
  const Key* keys;
  const u32* values;
};

// Keeps two buffers of keys and values and goes to and fro between them. What is handed in stays as it is.
template <class Key>
class Sorter {
 public:
  Sorter(Card& card, Arena& arena, Scanner& scanner, const char* name)
      : card_(card),
        scan_(scanner),
        counts_(arena, name),
        keys_{{arena, name}, {arena, name}},
        values_{{arena, name}, {arena, name}} {}
  // By the digits of bits `from` to `to`; values null: the index. The result may be handed in again, for more digits.
  Sorted<Key> operator()(const Key* keys, const u32* values, const u32* count, u32 limit, int from, int to);
  void reserve(u32 limit);  // so that sorting so many allocates nothing
  void release();
  void keep_only(const u32* values);  // of what it returned last

 private:
  Card& card_;
  Scanner& scan_;
  CardBuffer<u32> counts_;
  CardBuffer<Key> keys_[2];
  CardBuffer<u32> values_[2];
};

}  // namespace splat::card
