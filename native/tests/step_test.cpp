// A whole step in one go: the passes apart to the last bit, any number of threads, and nothing changed by a bad loss.
#include "../step.hpp"
#include "testing.hpp"

namespace splat::testing {
namespace {

constexpr int kWidth = 50, kHeight = 37, kSteps = 12, kSettleInterval = 5;
constexpr int kPhotos = 4;
constexpr Rates kRates = {1e-3, 2e-3, 1e-4, 0.05, 5e-3, 1e-3};

LazyAdam lazy_adam() {
  LazyAdam adam;
  adam.settle_interval = kSettleInterval;
  for (int age = 0; age < kPendingAges; age++) {
    adam.first_decay[age] = std::pow(0.9f, float(age));
    adam.second_decay[age] = std::pow(0.999f, float(age));
    adam.fading[age] = age ? std::pow(0.9, age) * std::pow(0.999, -0.5 * age) : 0;
  }
  return adam;
}

std::vector<double> identities() {
  std::vector<double> all(kExposureWidth * kPhotos);
  for (size_t k = 0; k < all.size(); k++) all[k] = k % kExposureWidth % 5 == 0;
  return all;
}

class Training {
 public:
  explicit Training(int threads) : engine_(threads), model_(400), photo_(3 * kWidth * kHeight) {
    for (size_t i = 0; i < photo_.size(); i++) photo_[i] = uint8_t(i * 37 % 251);
  }

  StepResult step(int number, float background = 0.2f) {
    look(number, background);
    const StepOrder order{photo_.data(), 0.2, rates(number), number % 4 != 0, exposure_step(number)};
    return train_step(engine_, adam_, exposures_, order);
  }

  void step_by_passes(int number) {
    look(number, 0.2f);
    Floats color(3 * kWidth * kHeight), gradient(color.size()), transmittance(kWidth * kHeight);
    forward(engine_, color.data(), transmittance.data());
    const ExposureStep exposed = exposure_step(number);
    Exposure exposure = exposure_of(exposures_, exposed.photo < 0 ? 0 : exposed.photo);
    loss(engine_, kWidth, kHeight, color.data(), photo_.data(), 0.2f, gradient.data(),
         exposed.photo < 0 ? nullptr : &exposure);
    backward(engine_, gradient.data(), nullptr);
    if (number % 4 == 0) return update(engine_, nullptr);
    const AdamStep step = splat::adam_step(adam_.steps + 1, rates(number), adam_.constants);
    update(engine_, &step);
    if (exposed.photo >= 0) learn_exposure(exposures_, exposed, exposure.gradient);
    adam_.advance(rates(number));
    Table table = model_table();
    if (adam_.steps % kSettleInterval == 0) kernels().settle(engine_.pool, table);
  }

  Floats result() const {
    Floats kept;
    for (const Floats* part : {&model_.geometry, &model_.harmonics, &model_.moments, &model_.first, &model_.second})
      kept.insert(kept.end(), part->begin(), part->end());
    for (double drift : adam_.drifts) kept.push_back(float(drift));
    for (const auto* part : {&transforms_, &first_, &second_, &visits_})
      for (double value : *part) kept.push_back(float(value));
    return kept;
  }

  LazyAdam& adam() { return adam_; }
  const std::vector<double>& transforms() const { return transforms_; }

 private:
  static Rates rates(int number) {
    Rates now = kRates;
    // what is owed must follow both
    now.mean *= std::pow(0.9, number);
    now.scale *= number > 6 ? 0.5 : 1;
    return now;
  }
  static ExposureStep exposure_step(int number) {  // every third step without
    return number % 3 == 0 ? ExposureStep{} : ExposureStep{number / 2 % kPhotos, 0.01, 0.01};
  }
  Table model_table() {
    Table table = model_.table(0);
    table.pending = adam_.pending();
    return table;
  }
  void look(int number, float background) {
    engine_.table = model_table();
    engine_.camera = camera_of(kWidth, kHeight, 0.4f * number);
    engine_.settings.sh_degree = number % 4;
    engine_.settings.absolute_gradients = true;
    engine_.settings.light_cut = number % 3 == 1 ? 0.02f : 0.f;
    for (float& channel : engine_.settings.background) channel = background;
  }

  Engine engine_;
  Model model_;
  LazyAdam adam_ = lazy_adam();
  std::vector<uint8_t> photo_;
  std::vector<double> transforms_ = identities(), first_ = std::vector<double>(12 * kPhotos), second_ = first_,
                      visits_ = std::vector<double>(kPhotos);
  Exposures exposures_ = {kPhotos, transforms_.data(), first_.data(), second_.data(), visits_.data()};
};

Floats trained(int threads) {
  Training training(threads);
  for (int number = 1; number <= kSteps; number++)
    check(training.step(number).finite, "the loss of a step is a number");
  return training.result();
}

void a_step_is_its_passes() {
  Training apart(2);
  for (int number = 1; number <= kSteps; number++) apart.step_by_passes(number);
  check(same_bits(trained(2), apart.result()), "a step in one go is its passes");
}

void the_mean_exposure_stays() {
  Training training(2);
  for (int number = 1; number <= kSteps; number++) training.step(number);
  double moved = 0;
  for (int k = 0; k < kExposureWidth; k++) {
    double mean = 0;
    for (int photo = 0; photo < kPhotos; photo++)
      mean += training.transforms()[size_t(photo) * kExposureWidth + k] / kPhotos;
    check(std::fabs(mean - identities()[size_t(k)]) < 1e-12, "the mean exposure is the identity");
    moved += std::fabs(training.transforms()[size_t(k)] - identities()[size_t(k)]);
  }
  check(moved > 0.01, "exposures are learned");
}

void a_bad_loss_changes_nothing() {
  Training training(2);
  training.step(1);
  training.step(2);
  const Floats before = training.result();
  check(!training.step(3, std::numeric_limits<float>::quiet_NaN()).finite,
        "a picture without numbers has no finite loss");
  check(same_bits(before, training.result()), "a step without a finite loss changes nothing");
  check(training.step(3).finite && !same_bits(before, training.result()), "the next step learns");
}

void an_account_goes_round() {
  LazyAdam one = lazy_adam(), other = lazy_adam();
  check(!one.pending().by_age, "before the first step nothing is owed");
  for (int number = 0; number < 7; number++) one.advance(kRates);
  other.restore(one.steps, &one.rates, one.drifts);
  one.advance(kRates);
  other.advance(kRates);
  check(!std::memcmp(one.drifts, other.drifts, sizeof one.drifts) && other.steps == 8,
        "a restored account goes on alike");
  check(one.drifts[0] == 0 && one.drifts[3] > one.drifts[2], "age 0 owes nothing, older rows owe more");
  check(other.pending().by_age[5].drift == float(one.drifts[5]), "what is owed by age is the account's");
}

}  // namespace

void test_step(const Kernels& kernels) {
  check(force_kernels(kernels.name), "an instruction set that is there can be asked for");
  const Floats one = trained(1);
  for (int threads : {2, 3})
    check(same_bits(one, trained(threads)), "steps in one go give the same bits for any number of threads");
  a_step_is_its_passes();
  the_mean_exposure_stays();
  a_bad_loss_changes_nothing();
  an_account_goes_round();
}

}  // namespace splat::testing
