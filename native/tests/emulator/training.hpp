// What the host code's test is made of: the stand-in's knobs, and a short training with everything in it.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "../../cuda/engine.hpp"
#include "../testing.hpp"

namespace splat::testing {

static int checks = 0, failures = 0;
static bool ends_at_once = false;  // with the first failure
void check(bool condition, const char* what) {
  checks++;
  if (condition) return;
  failures++;
  std::printf("FAILED: %s\n", what);
  if (ends_at_once) {
    std::fflush(stdout);
    std::_Exit(1);
  }
}

namespace {

std::vector<card::Image> images;
std::shared_ptr<card::OpenedCard> open() { return card::open_card(0, images); }

struct Standin {
  void* library = dlopen(std::getenv("SPLATMETER_LIBCUDA"), RTLD_NOW);
  template <class F>
  F* find(const char* name) {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  void option(const char* name, long value) {
    find<int(const char*, const char*)>("standin_option")(name, std::to_string(value).c_str());
  }
  unsigned long long count(const char* what) { return find<unsigned long long(const char*)>("standin_count")(what); }
  void forget_error() { find<void()>("standin_forget_error")(); }
};
Standin& standin() {
  static Standin one;
  return one;
}

card::View view_of(int width, int height, double turn) {
  const double c = std::cos(turn), s = std::sin(turn);
  return {
      {c, 0, s, 0, 1, 0, -s, 0, c}, {0, 0, 4}, double(width), double(width), 0.5 * width, 0.5 * height, width, height};
}
const Rates kRates = {1e-3, 1e-3, 1e-4, 1e-2, 5e-3, 1e-3};

// A short training with everything in it: steps, rows that fall behind, a step that only looks, growth, and all that
// happens to whole tables.
class Training {
 public:
  explicit Training(int count, int width = 40, int height = 23, std::shared_ptr<card::OpenedCard> on = open())
      : model_(count), width_(width), height_(height), engine_(std::move(on)) {
    for (uint64_t key = 0; key < 3; key++) {
      std::vector<uint8_t>& photo = photos_[key];
      photo.resize(size_t(3) * width * height);
      for (size_t k = 0; k < photo.size(); k++) photo[k] = uint8_t((k * 7 + key * 50) % 256);
      engine_.photos().put(key, photo.data(), photo.size());
    }
    engine_.upload(card::u32(count),
                   {model_.geometry.data(), model_.harmonics.data(), model_.moments.data(), model_.first.data(),
                    model_.second.data()},
                   true);
    for (Floats* part : {&model_.geometry, &model_.harmonics, &model_.moments, &model_.first, &model_.second})
      std::fill(part->begin(), part->end(), -1.f);
  }
  void step(bool learning = true) {
    owe();
    const card::Adam adam = card::adam_of(learned_ + 1, kRates, {});
    Settings settings;
    settings.absolute_gradients = true;
    engine_.train_step(view_of(width_, height_, 0.7 * steps_), settings,
                       {uint64_t(steps_ % 3), photos_[steps_ % 3].data()}, 0.2f, learning ? &adam : nullptr);
    steps_++;
    learned_ += learning;
  }
  void owe() {  // another table each time
    if (!learned_) return;
    tables_++;
    std::vector<Owed> owed = model_.owed;
    for (Owed& one : owed) one.drift *= 1 + 0.1f * float(tables_);
    engine_.set_pending(learned_, kRates, &owed[0].drift);
  }
  void settle() { owe(), engine_.settle(); }
  void grow() {
    engine_.settle();
    card::GrowthRule rule;
    rule.threshold = 1e-5;
    rule.small_limit = 0.1;
    rule.size_limit = 5;
    rule.budget = card::u32(model_.count * 3 / 2);
    engine_.grow(rule);
    rule.cut = {0.7, 0.5, 0.8, 0.9};
    rule.budget = card::u32(model_.count * 7 / 4);
    engine_.grow(rule);
    const card::u32 keys[card::kRandomKeys] = {5, 4, 3, 2, 1};
    engine_.relocate(card::u32(model_.count * 2), 0.1, keys);
    engine_.refresh_filter({view_of(width_, height_, 0), view_of(width_, height_, 1)});
    engine_.reset_opacities();
    Exploration exploration = {{1, 2, 3, 4, 5}, 10.f, 0.01f, 0.01f, 1e-3f, 1e-3f, 1.f};
    engine_.explore(exploration);
  }
  Floats all() {
    step();
    step(false);
    step();
    settle();
    step();
    grow();
    step();
    step();
    Floats result;
    for (const card::Report& report : engine_.reports(true)) {
      result.push_back(float(report.l1));
      result.push_back(float(report.ssim));
      result.push_back(float(report.pairs));
    }
    const card::ModelSummary summary = engine_.summary();
    result.push_back(float(summary.mean_opacity));
    result.push_back(float(summary.finite_rows));
    const size_t n = engine_.count();
    Floats rows[5] = {Floats(16 * n), Floats(48 * n), Floats(24 * n), Floats(48 * n), Floats(48 * n)};
    engine_.download(0, card::u32(n), {rows[0].data(), rows[1].data(), rows[2].data(), rows[3].data(), rows[4].data()});
    for (const Floats& part : rows) result.insert(result.end(), part.begin(), part.end());
    return result;
  }
  card::Engine& engine() { return engine_; }

 private:
  Model model_;
  int width_, height_, steps_ = 0, learned_ = 0, tables_ = 0;
  card::Engine engine_;
  std::vector<uint8_t> photos_[3];
};

}  // namespace
}  // namespace splat::testing
