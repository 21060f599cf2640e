// The engine on a card: the table of Gaussians there, and one training step. The host waits once a step, for the number
// of pairs, while the card sorts; everything else comes back a step later.
#pragma once
#include <optional>
#include <vector>

#include "frame.hpp"
#include "memory_model.hpp"
#include "opened.hpp"
#include "primitives.hpp"

namespace splat::card {

struct HostRows {  // of the table, as in ops.py; moments may be null
  float *geometry, *harmonics, *moments, *first_moments, *second_moments;
};

struct CardTable {
  explicit CardTable(Arena& arena);
  u32 count = 0;
  bool trainable = false;
  CardBuffer<float> geometry, harmonics, moments, first_moments, second_moments;
};

// The camera's image, one of each size.
struct CardImages {
  explicit CardImages(Arena& arena);
  CardBuffer<float> colour, transmittance, gradient, maps, loss_sums, given_gradient, transmittance_gradient;
  CardBuffer<u8> photo;
};

struct HostGradients {
  float *geometry, *harmonics, *mean2d, *absolute;
  u8* visible;
};
struct LossValues {
  double l1, ssim;
};

struct Cut {
  double distance, length, width, opacity;
};  // halves: see densify/division.py
struct GrowthRule {
  double threshold = 0.0002;      // of the mean gradient; infinite: nothing grows
  bool by_absolute = true;        // gof's second criterion too
  double lowest_opacity = 0.005;  // fainter rows go
  double small_limit = 0,
         size_limit = 0;  // scales: up to the first a row is cloned and not split, beyond the second it goes
  double shrink = 1.6;    // children are this much smaller
  u32 budget = kNoBudget;
  u32 child_keys[2][kRandomKeys] = {};  // name the draws of first and second children
  std::optional<Cut> cut = {};          // all candidates are cut in two; nothing is cloned, shrunk or drawn
};
struct Change {
  u32 cloned, split, pruned, wanted;  // wanted: candidates before the budget; relocation has none
};
struct ModelSummary {
  double mean_opacity;
  u32 finite_rows;
};

class Engine {
 public:
  explicit Engine(std::shared_ptr<OpenedCard> opened);
  ~Engine();
  Card& card() { return card_; }
  Arena& arena() { return arena_; }
  Photos& photos() { return photos_; }

  // ---- the table (table.cpp)
  void upload(u32 count, const HostRows& rows, bool trainable);
  void download(u32 first, u32 count, const HostRows& rows);
  u32 count() const { return table_.count; }
  bool whole() const { return whole_; }  // not while, and not after, the table's arrays are replaced and that fails
  void set_pending(int step, const Rates& rates, const float* by_age);  // [kPendingAges][4]; null: nothing is owed

  // ---- a step (step.cpp)
  void forward(const View& view, const Settings& settings);
  void image_to_host(float* colour, float* transmittance);
  LossValues loss(const u8* photo, float ssim_weight, float* gradient);  // of what was drawn last; waits
  void gradients(const float* colour_gradient, const float* transmittance_gradient, const HostGradients& out);
  void update(const float* colour_gradient, const Adam* adam);  // null: statistics only
  // The whole step; without an Adam step only statistics move. Returns its number, which its report will carry.
  u32 train_step(const View& view, const Settings& settings, HostPhoto photo, float ssim_weight, const Adam* adam);
  std::vector<Report> reports(bool all);  // those that have come since the last call; all: wait for the rest
  void forgive();                         // after a stop: go on, with the model as it is

  // ---- all rows (rows.cpp); the table must be settled where it says so
  void settle(bool unless_stopped = false);            // unless the card knows of a loss that was not a number
  void explore(const Exploration& exploration);        // likewise
  u32 refresh_filter(const std::vector<View>& views);  // returns how many rows some camera sees
  void reset_opacities();                              // settled
  ModelSummary summary();

  // ---- growth (growth.cpp): rows are settled while they move. What cannot fit is refused before anything has changed.
  Change grow(const GrowthRule& rule);
  // 3DGS-MCMC (relocate.cpp): faint rows become copies of opaque ones; `keys` name the draws. Settled.
  Change relocate(u32 budget, double lowest_opacity, const u32* keys);

  // ---- for tests (primitives.cpp): the host's arrays through scan and sort
  u32 scan_words(const u32* values, u32 count, u32 shift, u32 mask, u32* out);
  void scan_wide(u64* values, u32 count);  // relocate.cpp
  template <class Key>
  void sort_keys(const Key* keys, u32 count, int bits, u32* order);

  u32 pair_count() const { return counters_.pairs; }
  u32 visible_count() const { return counters_.visible; }

 private:
  struct GrowthSpace;
  void select(GrowthSpace& space, bool quantile);
  GrowthArguments decide(const GrowthRule& rule, GrowthSpace& space);
  const u32* morton_order(const float* means, u32 stride, u32 count, Sorter<u64>& sort, CardBuffer<float>& bounds,
                          CardBuffer<u64>& codes);
  size_t room_for(u32 count) const;
  void wide_scan(u64* values, u32 count, CardBuffer<u64>& sums);
  void cut_children(u32 count, u32 first_child, const Cut& cut, const u32* order);
  void rearrange(u32 count, u32 first_child, float shrink, const u64* sources, const float* means, const u32* order);
  void project();
  void sort_by_depth();
  void wait_for_counters();
  void bin();
  void blend_forward();
  void launch_loss(const u8* photo, float ssim_weight, bool with_gradient);
  void launch_total(float ssim_weight, u32 step);
  void reserve_image();
  void release_gradients();
  void reserve_gradients();
  void blend_backward(const float* colour_gradient, const float* transmittance_gradient);
  UpdateArguments update_arguments(const Adam* adam);
  void check_image(const View& view) const;
  void release_workspace();  // everything that grows with the Gaussians

  std::shared_ptr<OpenedCard> opened_;
  Card& card_;
  Arena& arena_;
  Photos& photos_;
  CardTable table_;
  CardImages images_;
  Pending pending_ = {};
  std::vector<float> owed_;  // the host's copy of what is owed by age; empty: nothing
  CardBuffer<float> ages_;
  PinnedArray<float> ages_on_their_way_;

  // workspace of a step
  Scanner scan_;
  Sorter<u32> depth_sort_, pair_sort_;
  CardBuffer<float> splats_, slots_;
  CardBuffer<u32> depths_, tiles_, block_visible_, block_farthest_, keys_, rows_, offsets_, first_pair_, pair_keys_,
      pair_rows_, begins_, ends_;
  CardBuffer<u64> block_pairs_;
  CardBuffer<u8> touched_;
  CardBuffer<Counters> counters_on_card_;
  CardBuffer<u32> stopped_;
  CardBuffer<Report> report_;
  PinnedArray<Counters> counters_on_their_way_;
  PinnedArray<Report> reports_on_their_way_;
  OwnedEvent counters_there_, ages_taken_;
  Sorted<u32> by_depth_ = {}, by_tile_ = {};

  Frame frame_ = {};
  bool absolute_ = false, drawn_ = false, whole_ = true;
  Counters counters_ = {};
  u32 pair_capacity_ = 0, steps_ = 0, steps_reported_ = 0;
  std::vector<Report> reports_;
};

}  // namespace splat::card
