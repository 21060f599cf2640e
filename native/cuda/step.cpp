// One step, in the order in which the card does it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine.hpp"

namespace splat::card {
namespace {

constexpr size_t kReports = 8;
constexpr int kDepthDigits = 27;  // bits of depth from 0.2 to 13107: three digits; farther ones need a fourth
constexpr u32 kMostPairs = 0x7fffffffu;

struct Window {
  float taps[kWindowRadius + 1];
  Window() {
    double value[kWindowRadius + 1], sum = 0;
    for (int k = 0; k <= kWindowRadius; k++) sum += (k ? 2 : 1) * (value[k] = std::exp(-k * k / 4.5));
    for (int k = 0; k <= kWindowRadius; k++) taps[k] = float(value[k] / sum);
  }
};
const Window window;

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}
int bits_of(u32 values) {  // that numbers below `values` need
  int bits = 1;
  while (bits < 32 && (values - 1) >> bits) bits++;
  return bits;
}

}  // namespace

void Engine::check_image(const View& view) const {
  require(view.width > 0 && view.height > 0 && view.width <= (1 << 20) && view.height <= (1 << 20),
          "image size out of range");
}

// ---- forward -----------------------------------------------------------------------------------------------------
void Engine::project() {
  const size_t n = table_.count;
  const ProjectArguments a = {frame_,
                              frustum_of(frame_, pending_, owed_.empty() ? nullptr : owed_.data()),
                              pending_,
                              int(n),
                              table_.geometry.data(),
                              table_.moments.data(),
                              table_.harmonics.data(),
                              table_.first_moments.data(),
                              splats_.at_least(n * kSplatWidth),
                              depths_.at_least(n),
                              tiles_.at_least(n)};
  const u32 blocks = blocks_of(n, kBlockItems);
  const CountArguments c = {u32(n),
                            blocks,
                            a.depths,
                            a.tiles,
                            block_visible_.at_least(blocks),
                            block_farthest_.at_least(blocks),
                            block_pairs_.at_least(blocks),
                            counters_on_card_.data(),
                            keys_.at_least(n),
                            rows_.at_least(n)};
  if (n) card_.launch(Card::k_project, {blocks_of(n, kProjectThreads)}, kProjectThreads, a);
  card_.launch(Card::k_count_rows, {blocks}, kThreads, c);
  card_.launch(Card::k_count_top, {}, kThreads, c);
  card_.to_host(counters_on_their_way_.data(), static_cast<const Counters*>(counters_on_card_.data()), 1);
  card_.record(counters_there_);
  card_.launch(Card::k_compact, {blocks}, kThreads, c);
}

void Engine::sort_by_depth() {
  const u32* visible = &counters_on_card_.data()->visible;
  by_depth_ = depth_sort_(keys_.data(), rows_.data(), visible, table_.count, 0, kDepthDigits);
}

// The one wait of a step, while the card sorts. What the step before has left is complete by then.
void Engine::wait_for_counters() {
  card_.wait_for(counters_there_);
  counters_ = counters_on_their_way_[0];
  while (steps_reported_ < steps_) reports_.push_back(reports_on_their_way_[steps_reported_++ % kReports]);
  require(counters_.pairs <= kMostPairs,
          "these Gaussians touch more than 2^31 tiles of one image: they are far too large");
  if (counters_.pairs > pair_capacity_ || !pair_capacity_) {
    const size_t wanted = size_t(kSparePairs * counters_.pairs) + kBlockItems;
    const u32 capacity = u32(std::min(wanted, size_t(kMostPairs)));
    pair_capacity_ = 0;  // should there be no room
    release_gradients();
    pair_keys_.at_least(capacity);
    pair_rows_.at_least(capacity);
    pair_sort_.reserve(capacity);
    pair_capacity_ = capacity;
  }
  if (counters_.visible && (counters_.farthest - kNearBits) >> kDepthDigits)
    by_depth_ = depth_sort_(by_depth_.keys, by_depth_.values, &counters_on_card_.data()->visible, table_.count,
                            kDepthDigits, 32);
}

void Engine::bin() {
  const u32 tiles = u32(frame_.tile_columns * frame_.tile_rows), visible = counters_.visible, n = table_.count;
  const Counters* counters = counters_on_card_.data();
  scan_({.values = tiles_.data(),
         .limit = visible,
         .out = offsets_.at_least(n),
         .order = by_depth_.values,
         .mask = ~kVisible});
  const EmitArguments e = {
      frame_,         counters,       by_depth_.values,        offsets_.data(),   tiles_.data(),
      splats_.data(), pair_capacity_, first_pair_.at_least(n), pair_keys_.data(), pair_rows_.data()};
  card_.launch(Card::k_emit, {blocks_of(visible, kThreads)}, kThreads, e);
  by_tile_ = pair_sort_(pair_keys_.data(), nullptr, nullptr, counters_.pairs, 0,
                        bits_of(tiles + 1));  // with the one behind the last
  const TileBeginsArguments t = {by_tile_.keys, counters, pair_capacity_, tiles, begins_.data()};
  card_.launch(Card::k_tile_begins, {blocks_of(size_t(counters_.pairs) + 1, kThreads)}, kThreads, t);
}

void Engine::blend_forward() {
  const size_t tiles = size_t(frame_.tile_columns) * frame_.tile_rows;
  BlendArguments a = {};
  a.frame = frame_;
  a.splats = splats_.data();
  a.begins = begins_.data();
  a.pairs = by_tile_.values;
  a.pair_rows = pair_rows_.data();
  a.colour = images_.colour.data();
  a.transmittance = images_.transmittance.data();
  a.ends = ends_.data();
  card_.launch(Card::k_blend_forward, {blocks_of(tiles, kTilesPerBlock)}, kBlendThreads, a);
}

void Engine::reserve_image() {
  const size_t pixels = size_t(frame_.width) * frame_.height, tiles = size_t(frame_.tile_columns) * frame_.tile_rows;
  if (3 * pixels > images_.colour.capacity()) release_gradients();
  images_.colour.at_least(3 * pixels);
  images_.transmittance.at_least(pixels);
  begins_.at_least(tiles + 1);
  ends_.at_least(tiles);
}

void Engine::forward(const View& view, const Settings& settings) {
  check_image(view);
  require(settings.max_alpha > 0 && settings.max_alpha < 1,
          "max_alpha must lie between 0 and 1: backward divides by what an opaque Gaussian lets through");
  card_.use();
  drawn_ = false;
  frame_ = frame_of(view, settings);
  absolute_ = settings.absolute_gradients;
  reserve_image();
  project();
  sort_by_depth();
  wait_for_counters();
  bin();
  blend_forward();
  drawn_ = true;
}

void Engine::image_to_host(float* colour, float* transmittance) {
  require(drawn_, "nothing has been drawn");
  card_.use();
  const size_t pixels = size_t(frame_.width) * frame_.height;
  if (colour) card_.to_host(colour, static_cast<const float*>(images_.colour.data()), 3 * pixels);
  if (transmittance) card_.to_host(transmittance, static_cast<const float*>(images_.transmittance.data()), pixels);
  card_.synchronize();
}

// ---- loss --------------------------------------------------------------------------------------------------------
void Engine::launch_loss(const u8* photo, float ssim_weight, bool with_gradient) {
  const size_t pixels = size_t(frame_.width) * frame_.height;
  const Grid grid = {blocks_of(size_t(frame_.width), kLossWide), blocks_of(size_t(frame_.height), kLossHigh), 3};
  LossArguments a = {};
  std::copy(window.taps, window.taps + kWindowRadius + 1, a.taps);
  a.width = frame_.width;
  a.height = frame_.height;
  a.render = images_.colour.data();
  a.photo = photo;
  a.ssim_weight = float(-double(ssim_weight) / (3.0 * double(pixels)));
  a.l1_weight = float((1 - double(ssim_weight)) / (3.0 * double(pixels)));
  a.sums = images_.loss_sums.at_least(2 * size_t(grid.x) * grid.y * grid.z);
  if (with_gradient) {
    a.maps = images_.maps.at_least(9 * pixels);
    a.gradient = images_.gradient.at_least(3 * pixels);
  }
  card_.launch(Card::k_loss_values, grid, kThreads, a);
  if (with_gradient) card_.launch(Card::k_loss_gradient, grid, kThreads, a);
}

void Engine::launch_total(float ssim_weight, u32 step) {
  const u32 blocks = blocks_of(size_t(frame_.width), kLossWide) * blocks_of(size_t(frame_.height), kLossHigh) * 3;
  const TotalArguments a = {blocks,
                            pair_capacity_,
                            step,
                            images_.loss_sums.data(),
                            3.0 * frame_.width * frame_.height,
                            ssim_weight,
                            counters_on_card_.data(),
                            stopped_.data(),
                            report_.data() + step % kReports};
  card_.launch(Card::k_loss_total, {}, kThreads, a);
}

LossValues Engine::loss(const u8* photo, float ssim_weight, float* gradient) {
  require(drawn_, "nothing has been drawn");
  card_.use();
  const size_t pixels = size_t(frame_.width) * frame_.height;
  card_.to_card(images_.photo.at_least(3 * pixels), photo, 3 * pixels);
  launch_loss(images_.photo.data(), ssim_weight, gradient != nullptr);
  launch_total(ssim_weight, 0);
  Report report;
  card_.to_host(&report, static_cast<const Report*>(report_.data()), 1);
  if (gradient) card_.to_host(gradient, static_cast<const float*>(images_.gradient.data()), 3 * pixels);
  card_.synchronize();
  return {report.l1, report.ssim};
}

// ---- backward ----------------------------------------------------------------------------------------------------
// Whenever a picture needs more room than any before: it needs no gradients, and so looking takes no more than
// learning.
void Engine::release_gradients() {
  slots_.release();
  touched_.release();
  images_.gradient.release();
  images_.maps.release();
}
void Engine::reserve_gradients() {
  slots_.at_least(size_t(pair_capacity_) * kSlotWidth);
  touched_.at_least(pair_capacity_);
}

void Engine::blend_backward(const float* colour_gradient, const float* transmittance_gradient) {
  const size_t tiles = size_t(frame_.tile_columns) * frame_.tile_rows;
  reserve_gradients();
  BlendArguments a = {};
  a.frame = frame_;
  a.splats = splats_.data();
  a.begins = begins_.data();
  a.pairs = by_tile_.values;
  a.pair_rows = pair_rows_.data();
  a.colour = images_.colour.data();
  a.transmittance = images_.transmittance.data();
  a.ends = ends_.data();
  a.colour_gradient = colour_gradient;
  a.transmittance_gradient = transmittance_gradient;
  a.slots = slots_.data();
  a.touched = touched_.data();
  card_.fill(touched_.data(), counters_.pairs, 0);
  card_.launch(absolute_ ? Card::k_blend_backward_absolute : Card::k_blend_backward, {blocks_of(tiles, kTilesPerBlock)},
               kBlendThreads, a);
}

UpdateArguments Engine::update_arguments(const Adam* adam) {
  UpdateArguments a = {};
  a.frame = frame_;
  a.pending = pending_;
  a.with_step = adam != nullptr;
  a.counters = counters_on_card_.data();
  a.stopped = stopped_.data();
  if (adam) a.adam = *adam;
  a.rows = rows_.data();
  a.tiles = tiles_.data();
  a.first_pair = first_pair_.data();
  a.splats = splats_.data();
  a.slots = slots_.data();
  a.touched = touched_.data();
  a.geometry = table_.geometry.data();
  a.harmonics = table_.harmonics.data();
  a.moments = table_.moments.data();
  a.first_moments = table_.first_moments.data();
  a.second_moments = table_.second_moments.data();
  return a;
}

void Engine::update(const float* colour_gradient, const Adam* adam) {
  require(drawn_, "nothing has been drawn");
  require(table_.trainable, "a table without moments cannot be trained");
  card_.use();
  const size_t pixels = size_t(frame_.width) * frame_.height;
  card_.to_card(images_.given_gradient.at_least(3 * pixels), colour_gradient, 3 * pixels);
  blend_backward(images_.given_gradient.data(), nullptr);
  card_.launch(Card::k_update, {blocks_of(counters_.visible, kUpdateThreads)}, kUpdateThreads, update_arguments(adam));
  card_.synchronize();  // the gradient may go now
}

void Engine::gradients(const float* colour_gradient, const float* transmittance_gradient, const HostGradients& out) {
  require(drawn_, "nothing has been drawn");
  card_.use();
  const size_t n = table_.count, pixels = size_t(frame_.width) * frame_.height;
  card_.to_card(images_.given_gradient.at_least(3 * pixels), colour_gradient, 3 * pixels);
  if (transmittance_gradient)
    card_.to_card(images_.transmittance_gradient.at_least(pixels), transmittance_gradient, pixels);
  blend_backward(images_.given_gradient.data(),
                 transmittance_gradient ? images_.transmittance_gradient.data() : nullptr);
  CardBuffer<float> geometry(arena_, "gradients"), harmonics(arena_, "gradients"), mean2d(arena_, "gradients"),
      absolute(arena_, "gradients");
  CardBuffer<u8> visible(arena_, "gradients");
  UpdateArguments a = update_arguments(nullptr);
  a.geometry_gradient = geometry.at_least(n * kGeometryWidth);
  a.harmonics_gradient = harmonics.at_least(n * kHarmonicsWidth);
  a.mean2d = mean2d.at_least(2 * n);
  a.absolute = absolute.at_least(n);
  a.visible = visible.at_least(n);
  card_.fill(a.geometry_gradient, n * kGeometryWidth, 0);
  card_.fill(a.harmonics_gradient, n * kHarmonicsWidth, 0);
  card_.fill(a.mean2d, 2 * n, 0);
  card_.fill(a.absolute, n, 0);
  card_.fill(a.visible, n, 0);
  card_.launch(Card::k_gradients, {blocks_of(counters_.visible, kUpdateThreads)}, kUpdateThreads, a);
  card_.to_host(out.geometry, static_cast<const float*>(a.geometry_gradient), n * kGeometryWidth);
  card_.to_host(out.harmonics, static_cast<const float*>(a.harmonics_gradient), n * kHarmonicsWidth);
  card_.to_host(out.mean2d, static_cast<const float*>(a.mean2d), 2 * n);
  card_.to_host(out.absolute, static_cast<const float*>(a.absolute), n);
  card_.to_host(out.visible, static_cast<const u8*>(a.visible), n);
  card_.synchronize();
}

// ---- the whole step ----------------------------------------------------------------------------------------------
u32 Engine::train_step(const View& view, const Settings& settings, HostPhoto photo, float ssim_weight,
                       const Adam* adam) {
  require(table_.trainable, "a table without moments cannot be trained");
  check_image(view);
  const Photos::InUse in_use(photos_, photo, 3 * size_t(view.width) * view.height);
  forward(view, settings);
  reserve_gradients();  // before anything is said of this step
  const u32 step = steps_ + 1;
  launch_loss(in_use.planes(), ssim_weight, true);
  launch_total(ssim_weight, step);
  blend_backward(images_.gradient.data(), nullptr);
  card_.launch(Card::k_update, {blocks_of(counters_.visible, kUpdateThreads)}, kUpdateThreads, update_arguments(adam));
  card_.to_host(reports_on_their_way_.data() + (step - 1) % kReports,
                static_cast<const Report*>(report_.data() + step % kReports), 1);
  return steps_ = step;
}

std::vector<Report> Engine::reports(bool all) {
  if (all && steps_reported_ < steps_) {
    card_.use();
    card_.synchronize();
    while (steps_reported_ < steps_) reports_.push_back(reports_on_their_way_[steps_reported_++ % kReports]);
  }
  return std::exchange(reports_, {});
}

void Engine::forgive() { card_.use(), card_.fill(stopped_.data(), 1, 0); }

}  // namespace splat::card
