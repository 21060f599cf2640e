// Growth: which rows ask for more detail, which go, and where the others and their children come to lie. The same
// rules as
// densify/ in Python, which is its twin: adaptive.py, division.py, prune.py, densifier.py, surgery.py.
#include "block.hpp"
#include "random.hpp"
#include "settling.hpp"

namespace splat::card {

// Sums over the block, added up later by one thread block.
INLINE void store_counts(const GrowthArguments& a, const u32* counts) {
  UNROLL for (int k = 0; k < kGrowthCounts; k++) {
    const u32 sum = block_sum(counts[k]);
    if (threadIdx.x == 0) store(a.counts, blockIdx.x * kGrowthCounts + k, sum);
  }
}
INLINE u32 sum_of_counts(const GrowthArguments& a, int k) {  // right in thread 0
  u32 sum = 0;
  for (u32 block = threadIdx.x; block < a.blocks; block += kThreads) sum += load(a.counts, block * kGrowthCounts + k);
  return block_sum(sum);
}
INLINE void sum_counts(const GrowthArguments& a, u32* totals) {
  UNROLL for (int k = 0; k < kGrowthCounts; k++) totals[k] = sum_of_counts(a, k);
}
// Each block's count becomes the sum of those before it; returns that of all.
INLINE u32 scan_counts(const GrowthArguments& a, int k) {
  u32 carry = 0;
  for (u32 base = 0; base < a.blocks; base += kThreads) {
    const u32 at = (base + threadIdx.x) * kGrowthCounts + k;
    const bool there = base + threadIdx.x < a.blocks;
    u32 all;
    const u32 before = block_scan(there ? load(a.counts, at) : 0u, all);
    if (there) store(a.counts, at, carry + before);
    carry += all;
  }
  return carry;
}

// ---- what each row is like ---------------------------------------------------------------------------------------
INLINE float mean_over_visits(float total, float visits) {
  const float mean = visits > 0 ? __fmul_rn(total, __fdiv_rn(1.f, visits)) : 0.f;
  return is_finite(mean) ? mean : 0.f;
}

// The row as it is once it is settled. Harmonics are finite then if they are now: a step that breaks moments breaks
// both.
INLINE Row current_row(const GrowthArguments& a, u32 row, u32& behind) {
  Row g = load_row(a.geometry, row);
  behind = u32(age_of(a.pending, g.v[kLastUpdate]));
  if (behind) {
    float first[12];
    load_first_moments(a.moments, row, first);
    catch_up(a.pending, owed_at(a.pending, int(behind)), first, g.v);
  }
  return g;
}

INLINE u32 longest_axis(const float* log_scale) {  // the first of equals, as NumPy's argmax
  const u32 first = log_scale[1] > log_scale[0] ? 1 : 0;
  return log_scale[2] > fmaxf(log_scale[0], log_scale[1]) ? 2 : first;
}
INLINE void shorten(float* log_scale, float loss, float width_loss) {
  const u32 longest = longest_axis(log_scale);
  UNROLL for (u32 j = 0; j < 3; j++) log_scale[j] -= j == longest ? loss : width_loss;
}
INLINE float largest_scale(const float* log_scale) {
  return float(exp(double(fmaxf(fmaxf(log_scale[0], log_scale[1]), log_scale[2]))));
}
INLINE float largest_scale_of_children(const GrowthArguments& a, const float* log_scale, float scale) {
  if (!a.cuts) return __fdiv_rn(scale, a.shrink);
  if (!(scale > a.size_limit)) return scale;  // children are never larger: mostly nothing is to be computed
  const float x = log_scale[0], y = log_scale[1], z = log_scale[2], second = fmaxf(fminf(x, y), fminf(fmaxf(x, y), z));
  return float(exp(double(fmaxf(second - a.cut_width_loss, fmaxf(fmaxf(x, y), z) - a.cut_loss))));
}

KERNEL(kThreads, growth_look, GrowthArguments) {
  const u32 row = thread_number();
  u32 counts[kGrowthCounts] = {};
  if (row < a.count) {
    u32 behind;
    const Row g = current_row(a, row, behind);
    const float gradient = mean_over_visits(g.v[kGradientSum], g.v[kVisits]),
                absolute = mean_over_visits(g.v[kAbsoluteSum], g.v[kVisits]);
    const float scale = largest_scale(g.v + kLogScale);
    // before anything else is looked at: fewer registers
    const bool gone_child = largest_scale_of_children(a, g.v + kLogScale, scale) > a.size_limit;
    const bool faint = is_faint(g.v, a.harmonics, row, a.lowest_logit), chosen = gradient >= a.threshold;
    store(a.gradient, row, gradient);
    store(a.absolute, row, absolute);
    store(a.flags, row,
          (chosen ? kChosen : 0u) | (faint || scale > a.size_limit ? kGone : 0u) |
              (scale <= a.small_limit ? kSmall : 0u) | (faint || gone_child ? kGoneChild : 0u) |
              min(behind, kLongBehind) << kBehindShift);
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
  state.candidates = totals[0];
  state.selecting = a.by_absolute ? kSelectAmong : kSelectNothing;
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
    const bool chosen = flags & kChosen, gone = flags & kGone, wasted = flags & (flags & kSmall ? kGone : kGoneChild),
               eligible = chosen && !gone;
    const u64 bits = u64(__double_as_longlong(urgency_of(a, row, level)));
    store(a.keys, row, eligible ? ~bits & (kNoKey >> 1) : kNoKey);
    store(a.flags, row, flags);
    counts[0] = chosen;
    counts[1] = !gone;
    counts[2] = chosen && !wasted;
    counts[3] = chosen && gone && !wasted;
    counts[4] = eligible;
  }
  store_counts(a, counts);
}
// Each candidate adds a row; children of a parent too large to stay add two.
KERNEL(kThreads, growth_budget, GrowthArguments) {
  u32 totals[kGrowthCounts];
  sum_counts(a, totals);
  if (threadIdx.x) return;
  GrowthState state = {};
  state.level = load(&a.state->level, 0);
  state.position = load(&a.state->position, 0);
  state.candidates = totals[0];
  state.stay = totals[1];
  state.wanted = totals[2] + totals[3];
  state.eligible = totals[4];
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
    const bool chosen = is_chosen(a, row, flags), small = flags & kSmall, gone = flags & kGone,
               gone_child = flags & kGoneChild;
    const bool clone = chosen && small, split = chosen && !small;
    const u32 keeps = !split && !gone, clones = clone && !gone, splits = split && !gone_child;
    store(a.flags, row, flags | keeps << kKeepShift | clones << kCloneShift | splits << kSplitShift);
    counts[0] = keeps;
    counts[1] = clones;
    counts[2] = splits;
    counts[3] = clone;
    counts[4] = split;
    counts[5] = (gone && !split) + (gone && clone) + 2 * (gone_child && split);
  }
  store_counts(a, counts);
}
KERNEL(kThreads, growth_total, GrowthArguments) {
  const u32 kept = scan_counts(a, 0), cloned = scan_counts(a, 1), split = scan_counts(a, 2);
  const u32 clones = sum_of_counts(a, 3), splits = sum_of_counts(a, 4), pruned = sum_of_counts(a, 5);
  if (threadIdx.x) return;
  GrowthState* s = a.state;
  store(&s->kept, 0, kept);
  store(&s->cloned, 0, cloned);
  store(&s->split, 0, split);
  store(&s->chosen_clones, 0, clones);
  store(&s->chosen_splits, 0, splits);
  store(&s->pruned, 0, pruned);
}

// ---- the new rows, before their order: kept, clones, first children, second children -----------------------------
INLINE void place(const GrowthArguments& a, u32 at, u32 row, u32 fresh, u32 behind, const float* mean) {
  store(a.sources, at, u64(behind) << kAgeShift | row | fresh);
  UNROLL for (int k = 0; k < 3; k++) store(a.means, 3 * size_t(at) + k, mean[k]);
}
// Most rows stay as they are: of those nothing but the mean is read.
INLINE void current_mean(const GrowthArguments& a, size_t row, u32 behind, float* mean) {
  float4 v = load4(a.geometry, row * 4);
  if (behind) v = settled_geometry(a.pending, 0, v, load4(a.moments, row * 6), owed_at(a.pending, int(behind)));
  mean[0] = v.x;
  mean[1] = v.y;
  mean[2] = v.z;
}
// From a parent to its child, in the parent's axes: e ~ N(0, diag(s^2)), or along the longest axis alone. Raw scales:
// the 3D
// filter has no part in this.
INLINE void drawn_step(const Row& g, u32 row, const u32* keys, float* step) {
  three_exact_normals(row, keys, step);
  UNROLL for (int j = 0; j < 3; j++) step[j] *= float(exp(double(g.v[kLogScale + j])));
}
INLINE void half_step(const Row& g, float distance, float* step) {
  const u32 longest = longest_axis(g.v + kLogScale);
  distance *= largest_scale(g.v + kLogScale);
  UNROLL for (u32 j = 0; j < 3; j++) step[j] = j == longest ? distance : 0.f;
}
INLINE void child_mean(const Row& g, const float* step, float* mean) {
  float q[4], R[9];
  normalized(g.v + kRotation, q);
  rotation_matrix(q, R);
  UNROLL for (int i = 0; i < 3; i++) mean[i] = g.v[kMean + i] + dot3(R + 3 * i, step);
}
// Three counts at once, of at most 256 rows each.
constexpr u32 kCountBits = 10, kCountMask = (1u << kCountBits) - 1;
static_assert(kThreads <= int(kCountMask), "a count has room for a block");

KERNEL(kThreads, growth_place, GrowthArguments) {
  const u32 row = thread_number(), flags = row < a.count ? fetch(a.flags, row) : 0;
  const u32 keeps = flags >> kKeepShift & 1, clones = flags >> kCloneShift & 1, splits = flags >> kSplitShift & 1;
  u32 behind = flags >> kBehindShift, all;
  const u32 before = block_scan(keeps | clones << kCountBits | splits << 2 * kCountBits, all),
            *blocks_before = a.counts + blockIdx.x * kGrowthCounts;
  const u32 kept = fetch(&a.state->kept, 0), cloned = fetch(&a.state->cloned, 0), split = fetch(&a.state->split, 0);
  float mean[3];
  if (keeps) {
    current_mean(a, row, behind, mean);
    place(a, fetch(blocks_before, 0) + (before & kCountMask), row, 0, behind, mean);
  }
  if (clones)
    place(a, kept + fetch(blocks_before, 1) + (before >> kCountBits & kCountMask), row, kFresh, behind,
          mean);  // who is cloned is kept
  if (!splits) return;
  const Row g = current_row(a, row, behind);
  const u32 at = kept + cloned + fetch(blocks_before, 2) + (before >> 2 * kCountBits);
  float step[3];
  for (u32 child = 0; child < 2 && a.cuts; child++) {  // a loop of its own: in one with the draws they spill
    half_step(g, child ? -a.cut_distance : a.cut_distance, step);
    child_mean(g, step, mean);
    place(a, at + child * split, row, kFresh, behind, mean);
  }
  if (a.cuts) return;
  for (u32 child = 0; child < 2; child++) {
    drawn_step(g, row, a.child_keys[child], step);
    child_mean(g, step, mean);
    place(a, at + child * split, row, kFresh, behind, mean);
  }
}

// Halves get their shape once rows lie in their new place: settled there, which an opacity must be before it is
// divided.
KERNEL(kThreads, cut_children, CutArguments) {
  const size_t row = thread_number();
  if (row >= a.count || fetch(a.order, row) < a.first_child) return;
  Row g = load_row(a.geometry, row);
  shorten(g.v + kLogScale, a.loss, a.width_loss);
  const double opacity = a.opacity * sigmoid(g.v[kOpacityLogit]);
  UNROLL for (int j = kLogScale; j < kLogScale + 3; j++) store(a.geometry, row * kGeometryWidth + j, g.v[j]);
  store(a.geometry, row * kGeometryWidth + kOpacityLogit, float(log(opacity) - log1p(-opacity)));
}

}  // namespace splat::card
