// The table of Gaussians on the card: copies in and out, and what rows owe.
#include <cstring>

#include "engine.hpp"

namespace splat::card {
namespace {

constexpr size_t kReports = 8;  // on their way; the host is at most one step ahead

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

struct Part {
  CardBuffer<float>& on_card;
  float* on_host;
  size_t width;
};

std::vector<Part> parts_of(CardTable& t, const HostRows& rows) {
  std::vector<Part> parts = {{t.geometry, rows.geometry, kGeometryWidth},
                             {t.harmonics, rows.harmonics, kHarmonicsWidth}};
  if (!t.trainable) return parts;
  parts.push_back({t.moments, rows.moments, kGeometryMomentsWidth});
  parts.push_back({t.first_moments, rows.first_moments, kHarmonicsWidth});
  parts.push_back({t.second_moments, rows.second_moments, kHarmonicsWidth});
  return parts;
}

std::shared_ptr<OpenedCard> in_this_thread(std::shared_ptr<OpenedCard> opened) { return opened->card.use(), opened; }

}  // namespace

CardTable::CardTable(Arena& arena)
    : geometry(arena, "the Gaussians"),
      harmonics(arena, "the Gaussians' colours"),
      moments(arena, "the optimizer"),
      first_moments(arena, "the optimizer"),
      second_moments(arena, "the optimizer") {}

CardImages::CardImages(Arena& arena)
    : colour(arena, "the image"),
      transmittance(arena, "the image"),
      gradient(arena, "the image's gradient"),
      maps(arena, "the loss"),
      loss_sums(arena, "the loss"),
      given_gradient(arena, "the image's gradient"),
      transmittance_gradient(arena, "the image's gradient"),
      photo(arena, "a photo") {}

Engine::Engine(std::shared_ptr<OpenedCard> opened)
    : opened_(in_this_thread(std::move(opened))),
      card_(opened_->card),
      arena_(opened_->arena),
      photos_(opened_->photos),
      table_(arena_),
      images_(arena_),
      ages_(arena_, "what rows owe"),
      ages_on_their_way_(card_.driver(), 4 * kPendingAges),
      scan_(card_, arena_),
      depth_sort_(card_, arena_, scan_, "the sort by depth"),
      pair_sort_(card_, arena_, scan_, "the sort by tile"),
      splats_(arena_, "the projection"),
      slots_(arena_, "the gradients of pairs"),
      depths_(arena_, "the projection"),
      tiles_(arena_, "the projection"),
      block_visible_(arena_, "the projection"),
      block_farthest_(arena_, "the projection"),
      keys_(arena_, "the sort by depth"),
      rows_(arena_, "the sort by depth"),
      offsets_(arena_, "pairs"),
      first_pair_(arena_, "pairs"),
      pair_keys_(arena_, "pairs"),
      pair_rows_(arena_, "pairs"),
      begins_(arena_, "tiles"),
      ends_(arena_, "tiles"),
      block_pairs_(arena_, "the projection"),
      touched_(arena_, "the gradients of pairs"),
      counters_on_card_(arena_, "counters"),
      stopped_(arena_, "counters"),
      report_(arena_, "reports"),
      counters_on_their_way_(card_.driver(), 1),
      reports_on_their_way_(card_.driver(), kReports),
      counters_there_(card_.driver()),
      ages_taken_(card_.driver()) {
  card_.fill(stopped_.at_least(1), 1, 0);
  card_.record(ages_taken_);
  report_.at_least(kReports);
  counters_on_card_.at_least(1);
}

// In whatever thread: buffers are freed in the context of this one.
Engine::~Engine() { card_.driver().cuCtxSetCurrent(card_.context()); }

void Engine::upload(u32 count, const HostRows& rows, bool trainable) {
  require(count < kVisible, "more Gaussians than rows can be numbered");
  card_.use();
  table_.count = count;
  table_.trainable = trainable;
  drawn_ = false;
  for (const Part& part : parts_of(table_, rows))
    card_.to_card(part.on_card.at_least(count * part.width), static_cast<const float*>(part.on_host),
                  count * part.width);
  card_.synchronize();  // the host's arrays may go now
}

void Engine::download(u32 first, u32 count, const HostRows& rows) {
  require(whole_, "memory ended while these Gaussians were being rearranged: they are lost");
  require(first <= table_.count && count <= table_.count - first, "rows out of range");
  card_.use();
  for (const Part& part : parts_of(table_, rows))
    if (part.on_host)
      card_.to_host(part.on_host, static_cast<const float*>(part.on_card.data() + first * part.width),
                    count * part.width);
  card_.synchronize();
}

void Engine::set_pending(int step, const Rates& rates, const float* by_age) {
  card_.use();
  pending_ = {};
  owed_.clear();
  if (!by_age) return;
  require(table_.trainable, "a table without moments owes nothing");
  const size_t floats = 4 * kPendingAges;
  owed_.assign(by_age, by_age + floats);
  pending_ = pending_of(step, rates, by_age);
  card_.make_sure_of(ages_taken_);  // as a rule it has: the step before has waited for what comes after that copy
  std::memcpy(ages_on_their_way_.data(), by_age, floats * sizeof(float));
  pending_.by_age = ages_.at_least(floats);
  card_.to_card(ages_.data(), static_cast<const float*>(ages_on_their_way_.data()), floats);
  card_.record(ages_taken_);
}

void Engine::release_workspace() {
  card_.synchronize();
  drawn_ = false;
  pair_capacity_ = 0;
  depth_sort_.release();
  pair_sort_.release();
  scan_.release();
  splats_.release();
  slots_.release();
  depths_.release();
  tiles_.release();
  keys_.release();
  rows_.release();
  offsets_.release();
  first_pair_.release();
  pair_keys_.release();
  pair_rows_.release();
  touched_.release();
}

}  // namespace splat::card
