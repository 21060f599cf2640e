// Relocation on the card: one readback, of how many rows live.
#include <algorithm>
#include <cmath>

#include "engine.hpp"

namespace splat::card {
namespace {

constexpr double kGrowth = 0.05;  // the set grows by this share at a time until the budget is reached

// Of o'^(k + 1) for N Gaussians in one place: C(N, k + 1) (-1)^k / sqrt(k + 1).
std::vector<double> coefficients() {
  std::vector<double> all(size_t(kMostTogether + 1) * kMostTogether);
  for (int number = 1; number <= kMostTogether; number++) {
    double binomial = 1;
    for (int k = 0; k < number; k++) {
      binomial = std::round(binomial * (number - k) / (k + 1));  // exact: below 2^53
      all[size_t(number) * kMostTogether + k] = (k % 2 ? -binomial : binomial) / std::sqrt(k + 1.0);
    }
  }
  return all;
}

}  // namespace

// Each with itself, in place.
void Engine::wide_scan(u64* values, u32 count, CardBuffer<u64>& sums) {
  const u32 blocks = blocks_of(count, kBlockItems);
  const WideScanArguments a = {count, blocks, values, sums.at_least(blocks)};
  card_.launch(Card::k_wide_scan_sums, {blocks}, kThreads, a);
  card_.launch(Card::k_wide_scan_top, {}, kThreads, a);
  card_.launch(Card::k_wide_scan_apply, {blocks}, kThreads, a);
}

void Engine::scan_wide(u64* values, u32 count) {  // for tests
  card_.use();
  CardBuffer<u64> there(arena_, "a test"), sums(arena_, "a test");
  card_.to_card(there.at_least(count), static_cast<const u64*>(values), count);
  wide_scan(there.data(), count, sums);
  card_.to_host(values, static_cast<const u64*>(there.data()), count);
  card_.synchronize();
}

Change Engine::relocate(u32 budget, double lowest_opacity, const u32* keys) {
  const u32 n = table_.count, blocks = blocks_of(n, kThreads);
  if (!n) return {};
  card_.use();
  release_workspace();
  CardBuffer<u64> weights(arena_, "relocation"), sums(arena_, "relocation"), codes(arena_, "relocation"),
      sources(arena_, "relocation");
  CardBuffer<u32> flags(arena_, "relocation"), times(arena_, "relocation"), live_before(arena_, "relocation"),
      live_count(arena_, "relocation");
  CardBuffer<float> means(arena_, "relocation"), bounds(arena_, "relocation");
  CardBuffer<double> table(arena_, "relocation");
  Sorter<u64> sort(card_, arena_, scan_, "the order of rows");
  RelocateArguments a = {};
  a.count = n;
  a.lowest_opacity = lowest_opacity;
  a.lowest_logit = float(std::log(lowest_opacity / (1 - lowest_opacity)));
  std::copy(keys, keys + kRandomKeys, a.keys);
  a.geometry = table_.geometry.data();
  a.harmonics = table_.harmonics.data();
  a.weights = weights.at_least(n);
  a.flags = flags.at_least(n);
  a.times = times.at_least(n);
  a.live_before = live_before.at_least(n);
  card_.launch(Card::k_relocate_look, {blocks}, kThreads, a);
  scan_({.values = a.flags, .limit = n, .out = live_before.data(), .mask = 1, .total = live_count.at_least(1)});
  u32 live = 0;
  card_.to_host(&live, static_cast<const u32*>(live_count.data()), 1);
  card_.synchronize();
  const bool all_faint = !live;  // nobody to copy: all stay, in a new order
  if (all_faint) {
    live = n;
    card_.fill(a.flags, n, 1);
    scan_({.values = a.flags, .limit = n, .out = live_before.data(), .mask = 1});
  }
  const u32 grown = std::min(budget, n + u32(kGrowth * n)), wanted = std::max(grown, std::min(n, budget));
  a.live = live;
  a.copies = wanted > live && !all_faint ? wanted - live : 0;
  const u32 count = live + a.copies;
  arena_.require_room("the new Gaussians", room_for(count));
  const std::vector<double> factors = coefficients();
  a.coefficients = table.at_least(factors.size());
  a.sources = sources.at_least(count);
  a.means = means.at_least(3 * size_t(count));
  card_.to_card(table.data(), factors.data(), factors.size());
  wide_scan(weights.data(), n, sums);
  card_.launch(Card::k_relocate_keep, {blocks}, kThreads, a);
  if (a.copies) card_.launch(Card::k_relocate_draw, {blocks_of(a.copies, kThreads)}, kThreads, a);
  whole_ = false;  // hosts are changed from here on
  card_.launch(Card::k_relocate_share, {blocks}, kThreads, a);
  const u32* order = morton_order(a.means, 3, count, sort, bounds, codes);
  sort.keep_only(order);
  codes.release();
  weights.release();
  sums.release();
  flags.release();
  times.release();
  live_before.release();
  rearrange(count, count, 0.f, a.sources, a.means, order);
  card_.synchronize();
  return {a.copies, 0, n - live, 0};
}

}  // namespace splat::card
