// Growth on the card: one readback of a few counts, then the rows of the new table, array by array.
#include <cmath>

#include "engine.hpp"

namespace splat::card {
namespace {

constexpr int kKeyBits = 64, kFloatBits = 32;
constexpr float kNothingIsSmall = -1;  // no scale is smaller

float loss_of(double share) { return float(-std::log(share)); }

}  // namespace

// Buffers that live only while the table changes; the step's own are given up meanwhile.
struct Engine::GrowthSpace {
  explicit GrowthSpace(Engine& e)
      : gradient(e.arena_, "growth"),
        absolute(e.arena_, "growth"),
        means(e.arena_, "growth"),
        bounds(e.arena_, "growth"),
        keys(e.arena_, "growth"),
        least(e.arena_, "growth"),
        codes(e.arena_, "growth"),
        sources(e.arena_, "growth"),
        flags(e.arena_, "growth"),
        counts(e.arena_, "growth"),
        digit_counts(e.arena_, "growth"),
        ties(e.arena_, "growth"),
        state(e.arena_, "growth"),
        sort(e.card_, e.arena_, e.scan_, "the order of rows") {}
  void let_go(const u32* order) {  // all but what rearranging needs
    sort.keep_only(order);
    codes.release();
    bounds.release();
    gradient.release();
    absolute.release();
    keys.release();
    least.release();
    flags.release();
    counts.release();
    digit_counts.release();
    ties.release();
  }
  CardBuffer<float> gradient, absolute, means, bounds;
  CardBuffer<u64> keys, least, codes, sources;
  CardBuffer<u32> flags, counts, digit_counts, ties;
  CardBuffer<GrowthState> state;
  Sorter<u64> sort;
};

// Among the absolute gradients, for the quantile, or among how urgent rows are.
void Engine::select(GrowthSpace& space, bool quantile) {
  const u32 n = table_.count, blocks = blocks_of(n, kBlockItems);
  SelectArguments a = {n,
                       blocks,
                       0,
                       space.keys.data(),
                       quantile ? space.absolute.data() : nullptr,
                       space.digit_counts.at_least(size_t(kSelectDigits) * blocks),
                       space.least.at_least(blocks),
                       space.state.data()};
  for (int shift = kKeyBits - kSelectBits; shift >= (quantile ? kKeyBits - kFloatBits : 0); shift -= kSelectBits) {
    a.shift = u32(shift);
    card_.launch(Card::k_select_count, {blocks}, kThreads, a);
    card_.launch(Card::k_select_pick, {}, kThreads, a);
  }
  if (!quantile) return;
  card_.launch(Card::k_select_next, {blocks}, kThreads, a);
  card_.launch(Card::k_quantile_level, {}, kThreads, a);
}

// Flags of what happens to each row, and how often.
GrowthArguments Engine::decide(const GrowthRule& rule, GrowthSpace& space) {
  const u32 n = table_.count, blocks = blocks_of(n, kThreads);
  GrowthArguments a = {};
  a.pending = pending_;
  a.moments = table_.moments.data();
  a.count = n;
  a.blocks = blocks;
  a.budget = rule.budget;
  a.by_absolute = rule.by_absolute;
  a.threshold = float(rule.threshold);
  a.urgency_threshold = rule.threshold;
  a.lowest_logit = float(std::log(rule.lowest_opacity / (1 - rule.lowest_opacity)));
  a.small_limit = float(rule.small_limit);
  a.size_limit = float(rule.size_limit);
  a.shrink = float(rule.shrink);
  a.geometry = table_.geometry.data();
  a.harmonics = table_.harmonics.data();
  a.gradient = space.gradient.at_least(n);
  a.absolute = space.absolute.at_least(n);
  a.keys = space.keys.at_least(n);
  a.flags = space.flags.at_least(n);
  a.counts = space.counts.at_least(size_t(kGrowthCounts) * blocks);
  a.state = space.state.at_least(1);
  a.ties_before = space.ties.at_least(n);
  if (rule.cut) {
    a.cuts = 1;
    a.small_limit = kNothingIsSmall;
    a.cut_distance = float(rule.cut->distance);
    a.cut_loss = loss_of(rule.cut->length);
    a.cut_width_loss = loss_of(rule.cut->width);
  }
  for (int child = 0; child < 2; child++)
    std::copy(rule.child_keys[child], rule.child_keys[child] + kRandomKeys, a.child_keys[child]);
  card_.launch(Card::k_growth_look, {blocks}, kThreads, a);
  card_.launch(Card::k_quantile_begin, {}, kThreads, a);
  if (rule.by_absolute) select(space, true);
  card_.launch(Card::k_growth_choose, {blocks}, kThreads, a);
  card_.launch(Card::k_growth_budget, {}, kThreads, a);
  if (rule.budget != kNoBudget) select(space, false);
  card_.launch(Card::k_growth_ties, {blocks}, kThreads, a);
  scan_({.values = a.flags, .limit = n, .out = space.ties.data(), .shift = kTieShift, .mask = 1});
  card_.launch(Card::k_growth_decide, {blocks}, kThreads, a);
  card_.launch(Card::k_growth_total, {}, kThreads, a);
  return a;
}

// The table with the rows that `sources` names, in the order of `order`; one array after the other, each old one
// given up.
// Harmonics come before their moments, and geometry beside its own: what they owe is in moments that have not faded
// yet.
void Engine::rearrange(u32 count, u32 first_child, float shrink, const u64* sources, const float* means,
                       const u32* order) {
  TakeArguments a = {};
  a.pending = pending_;
  a.count = count;
  a.sources = sources;
  a.order = order;
  a.means = means;
  a.first_child = first_child;
  a.shrink = shrink;
  const auto take = [&](TablePart part, u32 width, const CardBuffer<float>& from, const CardBuffer<float>& moments) {
    a.part = part;
    a.vectors = width / 4;
    a.from = from.data();
    a.moments = moments.data();
    if (count) card_.launch(Card::k_take_rows, {blocks_of(size_t(count) * a.vectors, kThreads)}, kThreads, a);
  };
  struct Part {
    TablePart name;
    CardBuffer<float>& rows;
  };
  for (const Part& part : {Part{kPartHarmonics, table_.harmonics}, Part{kPartFirst, table_.first_moments},
                           Part{kPartSecond, table_.second_moments}}) {
    if (part.name != kPartHarmonics && !table_.trainable) continue;
    CardBuffer<float> moved(arena_, "the new Gaussians");
    a.to = moved.at_least(size_t(count) * kHarmonicsWidth);
    take(part.name, kHarmonicsWidth, part.rows, table_.first_moments);
    whole_ = false;
    part.rows.swap(moved);
  }
  CardBuffer<float> geometry(arena_, "the new Gaussians"), moments(arena_, "the new Gaussians");
  a.to = geometry.at_least(size_t(count) * kGeometryWidth);
  if (table_.trainable) a.to_moments = moments.at_least(size_t(count) * kGeometryMomentsWidth);
  take(kPartGeometry, kGeometryWidth + (table_.trainable ? kGeometryMomentsWidth : 0), table_.geometry, table_.moments);
  table_.geometry.swap(geometry);
  table_.moments.swap(moments);
  table_.count = count;
  drawn_ = false;
  whole_ = true;
}

void Engine::cut_children(u32 count, u32 first_child, const Cut& cut, const u32* order) {
  if (count == first_child) return;
  const CutArguments a = {
      count, first_child, order, table_.geometry.data(), loss_of(cut.length), loss_of(cut.width), cut.opacity};
  whole_ = false;
  card_.launch(Card::k_cut_children, {blocks_of(count, kThreads)}, kThreads, a);
  whole_ = true;
}

// What growth to `count` rows takes at its worst moment: arrays are replaced one by one.
size_t Engine::room_for(u32 count) const {
  size_t more = 0, worst = 0;
  for (size_t width : {kHarmonicsWidth, kHarmonicsWidth, kHarmonicsWidth, kGeometryWidth + kGeometryMomentsWidth}) {
    worst = std::max(worst, more + 4 * width * count);
    more += 4 * width * (count > table_.count ? count - table_.count : 0);
  }
  return worst +
         size_t(count) * (8 + 12 + 8 + 2 * 12 + kDigits * 4 / kBlockItems);  // sources, means, codes and their sort
}

Change Engine::grow(const GrowthRule& rule) {
  if (!table_.count) return {};
  card_.use();
  release_workspace();
  GrowthSpace space(*this);
  GrowthArguments a = decide(rule, space);
  GrowthState state;
  card_.to_host(&state, static_cast<const GrowthState*>(a.state), 1);
  card_.synchronize();
  const u32 first_child = state.kept + state.cloned, count = first_child + 2 * state.split;
  const Change change = {state.chosen_clones, state.chosen_splits, state.pruned, state.candidates};
  arena_.require_room("the new Gaussians", room_for(count));
  a.sources = space.sources.at_least(count);
  a.means = space.means.at_least(3 * size_t(count));
  card_.launch(Card::k_growth_place, {a.blocks}, kThreads, a);
  const u32* order = morton_order(a.means, 3, count, space.sort, space.bounds, space.codes);
  space.let_go(order);
  rearrange(count, first_child, rule.cut ? 0.f : float(std::log(rule.shrink)), a.sources, a.means, order);
  if (rule.cut) cut_children(count, first_child, *rule.cut, order);
  card_.synchronize();
  return change;
}

}  // namespace splat::card
