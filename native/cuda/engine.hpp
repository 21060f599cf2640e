// The engine on a card: the table of Gaussians there, and one training step. The host waits once a step, for the number
// of pairs, while the card sorts; everything else comes back a step later.
#pragma once
#include <vector>

#include "frame.hpp"
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

struct HostGradients { float *geometry, *harmonics, *mean2d, *absolute; u8* visible; };
struct LossValues { double l1, ssim; };

class Engine {
 public:
  Engine(int device, const std::vector<Image>& images);
  Card& card() { return card_; }
  Arena& arena() { return arena_; }

  // ---- the table (table.cpp)
  void upload(u32 count, const HostRows& rows, bool trainable);
  void download(u32 first, u32 count, const HostRows& rows);
  u32 count() const { return table_.count; }
  void set_pending(int step, const Rates& rates, const float* by_age);  // [kPendingAges][4]; null: nothing is owed

  // ---- a step (step.cpp)
  void forward(const View& view, const DrawSettings& settings);
  void image_to_host(float* colour, float* transmittance);
  LossValues loss(const u8* photo, float ssim_weight, float* gradient);  // of what was drawn last; waits
  void gradients(const float* colour_gradient, const float* transmittance_gradient, const HostGradients& out);
  void update(const float* colour_gradient, const Adam* adam);           // null: statistics only
  // The whole step; without an Adam step only statistics move. Returns its number, which its report will carry.
  u32 train_step(const View& view, const DrawSettings& settings, const u8* photo, float ssim_weight, const Adam* adam);
  std::vector<Report> reports(bool all);  // those that have come since the last call; all: wait for the rest
  void forgive();                         // after a stop: go on, with the model as it is
  u32 pair_count() const { return counters_.pairs; }
  u32 visible_count() const { return counters_.visible; }

 private:
  friend class Rows;
  friend class Growth;
  void project();
  void sort_by_depth();
  void wait_for_counters();
  void bin();
  void blend_forward();
  void launch_loss(const u8* photo, float ssim_weight, bool with_gradient);
  void launch_total(float ssim_weight, u32 step);
  void blend_backward(const float* colour_gradient, const float* transmittance_gradient);
  UpdateArguments update_arguments(const Adam* adam);
  void check_image(const View& view) const;
  void release_workspace();               // everything that grows with the Gaussians

  Card card_;
  Arena arena_;
  CardTable table_;
  CardImages images_;
  Pending pending_ = {};
  std::vector<float> owed_;               // the host's copy of what is owed by age; empty: nothing
  CardBuffer<float> ages_;
  PinnedArray<float> ages_on_their_way_;

  // workspace of a step
  Scanner scan_;
  Sorter<u32> depth_sort_, pair_sort_;
  CardBuffer<float> splats_, slots_;
  CardBuffer<u32> depths_, tiles_, block_visible_, block_farthest_, keys_, rows_, offsets_, first_pair_, pair_keys_, pair_rows_, begins_, ends_;
  CardBuffer<u64> block_pairs_;
  CardBuffer<u8> touched_;
  CardBuffer<Counters> counters_on_card_;
  CardBuffer<u32> stopped_;
  CardBuffer<Report> report_;
  PinnedArray<Counters> counters_on_their_way_;
  PinnedArray<Report> reports_on_their_way_;
  Event counters_there_, ages_taken_;
  Sorted<u32> by_depth_ = {}, by_tile_ = {};

  Frame frame_ = {};
  bool absolute_ = false, drawn_ = false;
  Counters counters_ = {};
  u32 pair_capacity_ = 0, steps_ = 0, steps_reported_ = 0;
  std::vector<Report> reports_;
};

}  // namespace splat::card
