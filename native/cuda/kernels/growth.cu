// Growth: which rows ask for more detail, which go, and where the others and their children come to lie. The same rules as
// densify/ in Python, which is its twin: adaptive.py, prune.py, densifier.py, surgery.py.
#include "block.hpp"
#include "projection.hpp"
#include "random.hpp"

namespace splat::card {

// Sums over the block, added up later by one thread block.
INLINE void store_counts(const GrowthArguments& a, const u32* counts) {
  UNROLL for (int k = 0; k < kGrowthCounts; k++) {
    const u32 sum = block_sum(counts[k]);
    if (threadIdx.x == 0) store(a.counts, blockIdx.x * kGrowthCounts + k, sum);
  }
}
INLINE void sum_counts(const GrowthArguments& a, u32* totals) {  // right in thread 0
  UNROLL for (int k = 0; k < kGrowthCounts; k++) {
    u32 sum = 0;
    for (u32 block = threadIdx.x; block < a.blocks; block += kThreads) sum += fetch(a.counts, block * kGrowthCounts + k);
    totals[k] = block_sum(sum);
  }
}

// ---- what each row is like ---------------------------------------------------------------------------------------
INLINE float mean_over_visits(float total, float visits) {
  const float mean = visits > 0 ? __fmul_rn(total, __fdiv_rn(1.f, visits)) : 0.f;
  return is_finite(mean) ? mean : 0.f;
}

KERNEL(kThreads, growth_look, GrowthArguments) {
  const u32 row = thread_number();
  u32 counts[kGrowthCounts] = {};
  if (row < a.count) {
    const Row g = load_row(a.geometry, row);
    const float gradient = mean_over_visits(g.v[kGradientSum], g.v[kVisits]), absolute = mean_over_visits(g.v[kAbsoluteSum], g.v[kVisits]);
    const float scale = float(exp(double(fmaxf(fmaxf(g.v[kLogScale], g.v[kLogScale + 1]), g.v[kLogScale + 2]))));
    const bool faint = is_faint(g.v, a.harmonics, row, a.lowest_logit), chosen = gradient >= a.threshold;
    store(a.gradient, row, gradient), store(a.absolute, row, absolute);
    store(a.keys, row, u64(__double_as_longlong(double(absolute))));
    store(a.flags, row, (chosen ? kChosen : 0u) | (faint || scale > a.size_limit ? kGone : 0u) | (scale <= a.small_limit ? kSmall : 0u) |
                            (faint || __fdiv_rn(scale, a.shrink) > a.size_limit ? kGoneChild : 0u));
    counts[0] = chosen;
  }
  store_counts(a, counts);
}

// gof: the second threshold is the quantile that the first one's share of candidates names.
KERNEL(kThreads, quantile_begin, GrowthArguments) {
  u32 totals[kGrowthCounts];
  sum_counts(a, totals);
  if (threadIdx.x) return;
  GrowthState state = {};
  state.candidates = totals[0], state.selecting = a.by_absolute ? kSelectAmong : kSelectNothing;
  state.position = __dmul_rn(__dadd_rn(1.0, -(double(totals[0]) / double(a.count))), double(a.count - 1));
  const double low = floor(state.position);
  state.rank = low > 0 ? u64(low) : 0;
  store(a.state, 0, state);
}

// ---- candidates and the budget -----------------------------------------------------------------------------------
INLINE double urgency_of(const GrowthArguments& a, u32 row, double level) {
  const double plain = double(fetch(a.gradient, row)) / a.urgency_threshold;
  if (!a.by_absolute || !(level > 0)) return plain;
  const double absolute = double(__fdiv_rn(fetch(a.absolute, row), float(level)));
  return plain > absolute ? plain : absolute;
}

// Keys for the budget's selection: the most urgent come first. What cannot be afforded anyway has none.
KERNEL(kThreads, growth_choose, GrowthArguments) {
  const u32 row = thread_number();
  u32 counts[kGrowthCounts] = {};
  if (row < a.count) {
    const double level = fetch(&a.state->level, 0);
    u32 flags = load(a.flags, row);
    if (a.by_absolute && double(fetch(a.absolute, row)) >= level) flags |= kChosen;
    const bool chosen = flags & kChosen, gone = flags & kGone, wasted = flags & (flags & kSmall ? kGone : kGoneChild), eligible = chosen && !gone;
    const u64 bits = u64(__double_as_longlong(urgency_of(a, row, level)));
    store(a.keys, row, eligible ? ~bits & (kNoKey >> 1) : kNoKey), store(a.flags, row, flags);
    counts[0] = chosen, counts[1] = !gone, counts[2] = chosen && !wasted, counts[3] = chosen && gone && !wasted, counts[4] = eligible;
  }
  store_counts(a, counts);
}
// Each candidate adds a row; children of a parent too large to stay add two.
KERNEL(kThreads, growth_budget, GrowthArguments) {
  u32 totals[kGrowthCounts];
  sum_counts(a, totals);
  if (threadIdx.x) return;
  GrowthState state = {};
  state.level = load(&a.state->level, 0), state.position = load(&a.state->position, 0);
  state.candidates = totals[0], state.stay = totals[1], state.wanted = totals[2] + totals[3], state.eligible = totals[4];
  state.room = a.budget > state.stay ? a.budget - state.stay : 0;
  const bool binds = a.budget != kNoBudget && u64(state.stay) + state.wanted > a.budget;
  state.selecting = !binds ? kSelectNothing : state.eligible <= state.room ? kSelectAll : kSelectAmong;
  state.rank = state.room ? state.room - 1 : 0;
  store(a.state, 0, state);
}
KERNEL(kThreads, growth_ties, GrowthArguments) {
  const u32 row = thread_number();
  if (row >= a.count || fetch(&a.state->selecting, 0) != kSelectAmong) return;
  const u64 key = fetch(a.keys, row), found = fetch(&a.state->prefix, 0);
  store(a.flags, row, load(a.flags, row) | (key < found ? kAbove : 0u) | (key == found ? kTie : 0u));
}

INLINE bool is_chosen(const GrowthArguments& a, u32 row, u32 flags) {
  const u32 selecting = fetch(&a.state->selecting, 0), room = fetch(&a.state->room, 0);
  if (selecting == kSelectNothing) return flags & kChosen;
  if (selecting == kSelectAll) return (flags & kChosen) && !(flags & kGone);
  if (!room) return false;
  return (flags & kAbove) || ((flags & kTie) && fetch(a.ties_before, row) + fetch(&a.state->below, 0) < room);
}
KERNEL(kThreads, growth_decide, GrowthArguments) {
  const u32 row = thread_number();
  u32 counts[kGrowthCounts] = {};
  if (row < a.count) {
    const u32 flags = load(a.flags, row);
    const bool chosen = is_chosen(a, row, flags), small = flags & kSmall, gone = flags & kGone, gone_child = flags & kGoneChild;
    const bool clone = chosen && small, split = chosen && !small;
    const u32 keeps = !split && !gone, clones = clone && !gone, splits = split && !gone_child;
    store(a.flags, row, flags | keeps << kKeepShift | clones << kCloneShift | splits << kSplitShift);
    counts[0] = keeps, counts[1] = clones, counts[2] = splits, counts[3] = clone, counts[4] = split;
    counts[5] = (gone && !split) + (gone && clone) + 2 * (gone_child && split);
  }
  store_counts(a, counts);
}
KERNEL(kThreads, growth_total, GrowthArguments) {
  u32 totals[kGrowthCounts];
  sum_counts(a, totals);
  if (threadIdx.x) return;
  GrowthState* s = a.state;
  store(&s->kept, 0, totals[0]), store(&s->cloned, 0, totals[1]), store(&s->split, 0, totals[2]);
  store(&s->chosen_clones, 0, totals[3]), store(&s->chosen_splits, 0, totals[4]), store(&s->pruned, 0, totals[5]);
}

// ---- the new rows, before their order: kept, clones, first children, second children -----------------------------
INLINE void place(const GrowthArguments& a, u32 at, u32 row, u32 fresh, const float* mean) {
  store(a.sources, at, row | fresh);
  UNROLL for (int k = 0; k < 3; k++) store(a.means, 3 * size_t(at) + k, mean[k]);
}
// R(q) e with e ~ N(0, diag(s^2)): raw scales, the 3D filter has no part in this.
INLINE void child_mean(const Row& g, u32 row, const u32* keys, float* mean) {
  float draw[3], q[4], R[9];
  three_exact_normals(row, keys, draw);
  normalized(g.v + kRotation, q);
  rotation_matrix(q, R);
  UNROLL for (int j = 0; j < 3; j++) draw[j] *= float(exp(double(g.v[kLogScale + j])));
  UNROLL for (int i = 0; i < 3; i++) mean[i] = g.v[kMean + i] + dot3(R + 3 * i, draw);
}
KERNEL(kThreads, growth_place, GrowthArguments) {
  const u32 row = thread_number();
  if (row >= a.count) return;
  const u32 flags = fetch(a.flags, row), kept = fetch(&a.state->kept, 0), cloned = fetch(&a.state->cloned, 0), split = fetch(&a.state->split, 0);
  const Row g = load_row(a.geometry, row);
  if (flags >> kKeepShift & 1) place(a, fetch(a.kept_before, row), row, 0, g.v + kMean);
  if (flags >> kCloneShift & 1) place(a, kept + fetch(a.cloned_before, row), row, kFresh, g.v + kMean);
  if (!(flags >> kSplitShift & 1)) return;
  for (u32 child = 0; child < 2; child++) {
    float mean[3];
    child_mean(g, row, a.child_keys[child], mean);
    place(a, kept + cloned + child * split + fetch(a.split_before, row), row, kFresh, mean);
  }
}

}  // namespace splat::card
