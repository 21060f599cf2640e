// Passes over all rows: settling, exploring, the 3D filter, resets, a summary; and rows in a new order.
#include <cmath>

#include "engine.hpp"

namespace splat::card {
namespace {

constexpr u32 kSettleVectors = 15;  // as in rows.cu: three of geometry and twelve of harmonics
constexpr double kFilterVariance = 0.2;
constexpr int kMortonBits = 63;

}  // namespace

void Engine::settle(bool unless_stopped) {
  if (!pending_.by_age || !table_.count) return;
  card_.use();
  const SettleArguments a = {pending_,
                             int(table_.count),
                             unless_stopped ? stopped_.data() : nullptr,
                             table_.geometry.data(),
                             table_.harmonics.data(),
                             table_.moments.data(),
                             table_.first_moments.data(),
                             table_.second_moments.data()};
  card_.launch(Card::k_settle, {blocks_of(size_t(table_.count) * kSettleVectors, kThreads)}, kThreads, a);
  card_.launch(Card::k_settled, {blocks_of(table_.count, kThreads)}, kThreads, a);
}

void Engine::explore(const Exploration& e) {
  if (!table_.count) return;
  card_.use();
  ExploreArguments a = {};
  a.pending = pending_;
  a.count = int(table_.count);
  a.stopped = stopped_.data();
  a.geometry = table_.geometry.data();
  a.moments = table_.moments.data();
  std::copy(e.keys, e.keys + kRandomKeys, a.keys);
  a.noise = e.noise;
  a.opacity_weight = e.opacity_weight;
  a.scale_weight = e.scale_weight;
  a.opacity_distance = e.opacity_distance;
  a.scale_distance = e.scale_distance;
  a.second_correction = e.second_correction;
  card_.launch(Card::k_explore, {blocks_of(table_.count, kThreads)}, kThreads, a);
}

u32 Engine::refresh_filter(const std::vector<View>& views) {
  if (!table_.count) return 0;
  card_.use();
  std::vector<ViewPoint> points;
  double focal = 0;
  for (const View& view : views) {
    points.push_back(view_point_of(view));
    focal = std::max(focal, view.fx);
  }
  const u32 blocks = blocks_of(table_.count, kThreads);
  CardBuffer<ViewPoint> cameras(arena_, "cameras");
  CardBuffer<float> distance(arena_, "the 3D filter"), farthest(arena_, "the 3D filter");
  CardBuffer<u32> seen(arena_, "the 3D filter");
  const FilterArguments a = {int(table_.count),
                             int(views.size()),
                             blocks,
                             views.empty() ? 0.f : float(std::sqrt(kFilterVariance) / focal),
                             cameras.at_least(views.size()),
                             table_.geometry.data(),
                             distance.at_least(table_.count),
                             farthest.at_least(blocks),
                             seen.at_least(blocks)};
  card_.to_card(cameras.data(), static_cast<const ViewPoint*>(points.data()), points.size());
  card_.launch(Card::k_sampling_distance, {blocks}, kThreads, a);
  card_.launch(Card::k_filter_top, {}, kThreads, a);
  card_.launch(Card::k_filter_write, {blocks}, kThreads, a);
  u32 count = 0;
  card_.to_host(&count, static_cast<const u32*>(a.seen), 1);
  card_.synchronize();
  return count;
}

void Engine::reset_opacities() {
  if (!table_.count) return;
  card_.use();
  card_.launch(Card::k_reset_opacities, {blocks_of(table_.count, kThreads)}, kThreads,
               ResetArguments{int(table_.count), table_.geometry.data(), table_.moments.data()});
}

ModelSummary Engine::summary() {
  if (!table_.count) return {0, 0};
  card_.use();
  const u32 blocks = blocks_of(table_.count, kThreads);
  CardBuffer<Summary> sums(arena_, "a summary");
  const SummaryArguments a = {int(table_.count), blocks, table_.geometry.data(), table_.harmonics.data(),
                              sums.at_least(blocks)};
  card_.launch(Card::k_summarize, {blocks}, kThreads, a);
  card_.launch(Card::k_summary_top, {}, kThreads, a);
  Summary total = {};
  card_.to_host(&total, static_cast<const Summary*>(a.sums), 1);
  card_.synchronize();
  return {total.opacity / table_.count, total.finite};
}

// The order of rows that keeps neighbours in space near in memory.
const u32* Engine::morton_order(const float* means, u32 stride, u32 count, Sorter<u64>& sort, CardBuffer<float>& bounds,
                                CardBuffer<u64>& codes) {
  const u32 blocks = blocks_of(count, kBlockItems);
  const MortonArguments a = {count, blocks, stride, means, bounds.at_least(6 * size_t(blocks)), codes.at_least(count)};
  card_.launch(Card::k_morton_bounds, {blocks}, kThreads, a);
  card_.launch(Card::k_morton_top, {}, kThreads, a);
  card_.launch(Card::k_morton_codes, {blocks_of(count, kThreads)}, kThreads, a);
  return sort(a.codes, nullptr, nullptr, count, 0, kMortonBits).values;
}

}  // namespace splat::card
