#include "engine.hpp"

namespace splat::card {

void Scanner::operator()(const Scan& scan) {
  const u32 blocks = blocks_of(scan.limit, kBlockItems);
  const ScanArguments a = {scan.values, scan.order, scan.count, scan.limit,
                           scan.shift,  scan.mask,  blocks,     sums_.at_least(blocks),
                           scan.out,    scan.total};
  card_.launch(Card::k_scan_sums, {blocks}, kThreads, a);
  card_.launch(Card::k_scan_top, {}, kThreads, a);
  card_.launch(Card::k_scan_apply, {blocks}, kThreads, a);
}

template <class Key>
Sorted<Key> Sorter<Key>::operator()(const Key* keys, const u32* values, const u32* count, u32 limit, int from, int to) {
  constexpr bool wide = sizeof(Key) == 8;
  const u32 blocks = blocks_of(limit, kBlockItems);
  reserve(limit);
  u32* counts = counts_.data();
  Sorted<Key> sorted = {keys, values};
  for (int shift = from; shift < to; shift += kDigitBits) {
    const int turn = sorted.keys == keys_[0].data();  // never onto what is read
    const SortArguments<Key> a = {sorted.keys,        sorted.values,       count, limit, u32(shift), blocks, counts,
                                  keys_[turn].data(), values_[turn].data()};
    card_.launch(wide ? Card::k_radix_count_wide : Card::k_radix_count, {blocks}, kThreads, a);
    scan_({.values = counts, .limit = kDigits * blocks, .out = counts});
    card_.launch(wide ? Card::k_radix_scatter_wide : Card::k_radix_scatter, {blocks}, kThreads, a);
    sorted = {a.new_keys, a.new_values};
  }
  return sorted;
}

template <class Key>
void Sorter<Key>::reserve(u32 limit) {
  counts_.at_least(size_t(kDigits) * blocks_of(limit, kBlockItems));
  for (int k = 0; k < 2; k++) {
    keys_[k].at_least(limit);
    values_[k].at_least(limit);
  }
}

template <class Key>
void Sorter<Key>::release() {
  counts_.release();
  for (int k = 0; k < 2; k++) {
    keys_[k].release();
    values_[k].release();
  }
}

template <class Key>
void Sorter<Key>::keep_only(const u32* values) {
  counts_.release();
  for (int k = 0; k < 2; k++) {
    keys_[k].release();
    if (values_[k].data() != values) values_[k].release();
  }
}

// ---- for tests ---------------------------------------------------------------------------------------------------
u32 Engine::scan_words(const u32* values, u32 count, u32 shift, u32 mask, u32* out) {
  card_.use();
  CardBuffer<u32> in(arena_, "a test"), sums(arena_, "a test"), total(arena_, "a test");
  card_.to_card(in.at_least(count), values, count);
  scan_({.values = in.data(),
         .limit = count,
         .out = sums.at_least(count),
         .shift = shift,
         .mask = mask,
         .total = total.at_least(1)});
  u32 sum = 0;
  card_.to_host(out, static_cast<const u32*>(sums.data()), count);
  card_.to_host(&sum, static_cast<const u32*>(total.data()), 1);
  card_.synchronize();
  return sum;
}

template <class Key>
void Engine::sort_keys(const Key* keys, u32 count, int bits, u32* order) {
  card_.use();
  CardBuffer<Key> in(arena_, "a test");
  Sorter<Key> sort(card_, arena_, scan_, "a test");
  card_.to_card(in.at_least(count), keys, count);
  card_.to_host(order, sort(in.data(), nullptr, nullptr, count, 0, bits).values, count);
  card_.synchronize();
}
template void Engine::sort_keys(const u32*, u32, int, u32*);
template void Engine::sort_keys(const u64*, u32, int, u32*);

template class Sorter<u32>;
template class Sorter<u64>;

}  // namespace splat::card
