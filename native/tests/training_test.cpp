// Training: the same bits for any number of threads, through every pass and through densification.
#include <thread>

#include "testing.hpp"

namespace splat::testing {
namespace {

struct Case {
  int count, width, height, degree;
  bool absolute;
};

class Trainer {
 public:
  Trainer(const Kernels& kernels, int threads, const Case& c)
      : kernels_(kernels),
        case_(c),
        engine_(threads),
        model_(c.count),
        color_(3 * pixels()),
        transmittance_(pixels()),
        gradient_(3 * pixels()),
        photo_(3 * pixels(), 128) {}

  void forward(int number) {
    engine_.table = model_.table(number - 1);
    engine_.camera = camera_of(case_.width, case_.height, 0.5f * number);
    engine_.settings.sh_degree = case_.degree;
    engine_.settings.absolute_gradients = case_.absolute;
    engine_.settings.light_cut = number % 2 ? 0.f : 0.02f;
    kernels_.project(engine_);
    kernels_.sort_by_depth(engine_);
    kernels_.bin(engine_);
    kernels_.blend_forward(engine_, color_.data(), transmittance_.data());
    const LossValue value = kernels_.loss(engine_, case_.width, case_.height, color_.data(), photo_.data(), 0.2f,
                                          gradient_.data(), nullptr);
    check(std::isfinite(value.l1) && std::isfinite(value.ssim), "the loss is finite");
  }
  void step(int number, bool learning) {
    forward(number);
    const AdamStep adam = adam_step(number);
    kernels_.blend_backward(engine_, gradient_.data(), nullptr);
    kernels_.update(engine_, learning ? &adam : nullptr);
  }
  void unfused_step(int number,
                    bool light = false) {  // its twin: gradients as arrays, dense Adam; rows must owe nothing
    settle(number - 1);
    forward(number);
    kernels_.blend_backward(engine_, gradient_.data(), light ? transmittance_.data() : nullptr);
    const size_t n = size_t(model_.count);
    Floats geometry(n * kGeometryWidth), harmonics(n * kHarmonicsWidth), mean2d(2 * n), absolute(n);
    Bools visible(n);
    kernels_.gradients(engine_, {geometry.data(), harmonics.data(), mean2d.data(), absolute.data(),
                                 reinterpret_cast<bool*>(visible.data())});
    kernels_.adam(engine_.pool, engine_.table, geometry.data(), harmonics.data(), adam_step(number));
    keep(mean2d);
    keep(absolute);
  }
  void settle(int number) {
    Table table = model_.table(number);
    kernels_.settle(engine_.pool, table);
  }
  void explore() {
    Exploration exploration;
    for (uint32_t k = 0; k < 5; k++) exploration.keys[k] = k + 1;
    exploration.noise = 100;
    exploration.opacity_weight = exploration.scale_weight = 0.01f;
    exploration.opacity_distance = exploration.scale_distance = 1e-3f;
    Table table = model_.table(6);
    kernels_.explore(engine_.pool, table, exploration);
  }
  void densify() {  // in Morton order every fifth row goes, every third is doubled with fresh moments
    const int n = model_.count;
    std::vector<int64_t> order(static_cast<size_t>(n)), source;
    morton_order(engine_.pool, n, model_.geometry.data(), kGeometryWidth, order.data());
    Bools fresh;
    for (int i = 0; i < n; i++)
      for (int copy = 0; copy < (i % 5 == 0 ? 0 : i % 3 == 0 ? 2 : 1); copy++) {
        source.push_back(order[size_t(i)]);
        fresh.push_back(copy == 1);
      }
    model_.count = int(source.size());
    take(model_.geometry, kGeometryWidth, source, nullptr);
    take(model_.harmonics, kHarmonicsWidth, source, nullptr);
    take(model_.moments, kGeometryMomentsWidth, source, &fresh);
    take(model_.first, kHarmonicsWidth, source, &fresh);
    take(model_.second, kHarmonicsWidth, source, &fresh);
  }
  Floats result() {
    for (const Floats* part : {&model_.geometry, &model_.harmonics, &model_.moments, &model_.first, &model_.second,
                               &color_, &transmittance_, &gradient_})
      keep(*part);
    return std::move(kept_);
  }
  int count() const { return model_.count; }

 private:
  size_t pixels() const { return size_t(case_.width) * case_.height; }
  void keep(const Floats& part) { kept_.insert(kept_.end(), part.begin(), part.end()); }
  void take(Floats& rows, int width, const std::vector<int64_t>& source, const Bools* fresh) {
    Floats taken(source.size() * width);
    const bool* zeroed = fresh ? reinterpret_cast<const bool*>(fresh->data()) : nullptr;
    take_rows(engine_.pool, int(source.size()), width, rows.data(), source.data(), zeroed, taken.data());
    rows = std::move(taken);
  }

  const Kernels& kernels_;
  const Case case_;
  Engine engine_;
  Model model_;
  Floats color_, transmittance_, gradient_, kept_;
  std::vector<uint8_t> photo_;
};

Floats trained(const Kernels& kernels, int threads, const Case& c) {
  Trainer trainer(kernels, threads, c);
  // rows unseen in 3 owe a step in 4
  trainer.step(1, true);
  trainer.step(2, false);
  trainer.step(3, true);
  trainer.densify();
  trainer.step(4, true);
  trainer.unfused_step(5, true);
  trainer.step(6, true);
  trainer.explore();
  trainer.settle(6);
  return trainer.result();
}

void same_bits_for_any_number_of_threads(const Kernels& kernels) {
  const int sizes[][2] = {{1, 1}, {7, 5}, {33, 17}, {100, 64}};
  for (auto& size : sizes)
    for (int count : {0, 1, 9, 300}) {
      const Case c{count, size[0], size[1], (size[0] + count) % 4, (size[1] + count) % 2 == 0};
      const Floats one = trained(kernels, 1, c);
      for (int threads : {2, 3, 5})
        check(same_bits(one, trained(kernels, threads, c)), "training gives the same bits for any number of threads");
    }
  const Case many{9000, 100, 64, 1, true};  // more than one task in every pass
  const Floats one = trained(kernels, 1, many);
  for (int threads : {2, 3})
    check(same_bits(one, trained(kernels, threads, many)),
          "many Gaussians give the same bits for any number of threads");
}

void engines_do_not_disturb_each_other(const Kernels& kernels) {
  const Case c{300, 50, 40, 2, false};
  const Floats alone = trained(kernels, 2, c);
  Floats beside[2];
  std::thread others[2];
  for (int i = 0; i < 2; i++) others[i] = std::thread([&, i] { beside[i] = trained(kernels, 2 + i, c); });
  for (std::thread& other : others) other.join();
  for (const Floats& result : beside)
    check(same_bits(alone, result), "engines side by side give the bits of one alone");
}

void fused_and_unfused_steps_agree(const Kernels& kernels) {
  const Case c{300, 60, 44, 3, false};
  Trainer fused(kernels, 2, c), unfused(kernels, 2, c);
  fused.step(1, true);
  unfused.unfused_step(1);
  const size_t parameters = 300 * (kGeometryWidth + kHarmonicsWidth), extra = 3 * 300;  // what unfused kept before them
  Floats a = fused.result(), b = unfused.result();
  a.resize(parameters);
  b.erase(b.begin(), b.begin() + extra);
  b.resize(parameters);
  for (Floats* part : {&a, &b})
    for (int i = 0; i < 300; i++)
      for (int k : {kGradientSum, kAbsoluteSum, kVisits, kLastUpdate})
        (*part)[size_t(i) * kGeometryWidth + k] = 0;  // only fused counts, and only visible rows
  check(share_apart(a, b, 1e-5f) < 0.01, "fused and unfused steps agree");
}

}  // namespace

void test_training(const Kernels& kernels) {
  same_bits_for_any_number_of_threads(kernels);
  engines_do_not_disturb_each_other(kernels);
  fused_and_unfused_steps_agree(kernels);
}

void test_agreement(const Kernels& a, const Kernels& b) {
  const Case c{300, 100, 64, 3, true};
  check(share_apart(trained(a, 2, c), trained(b, 2, c), 1e-2f) < 0.01, "instruction sets agree to rounding");
}

}  // namespace splat::testing
