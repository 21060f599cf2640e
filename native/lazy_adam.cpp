#include "lazy_adam.hpp"

#include <cmath>
#include <cstring>

namespace splat {

AdamStep adam_step(int number, const Rates& rates, const AdamConstants& constants) {
  const auto [beta1, beta2, epsilon] = constants;
  AdamStep step;
  step.number = number;
  step.beta1 = float(beta1);
  step.beta2 = float(beta2);
  step.epsilon = float(epsilon);
  step.rest1 = float(1 - beta1);
  step.rest2 = float(1 - beta2);
  step.second_correction = float(1 / std::sqrt(1 - std::pow(beta2, number)));
  spread_rates(rates, 1 / (1 - std::pow(beta1, number)), float(rates.mean), step.rates, step.rate_dc, step.rate_rest);
  return step;
}

namespace {

// How much higher the rates other than the means' were one step before; exactly 1 where they stay.
double fallen(const Rates& before, const Rates& now) {
  const double sums[2] = {before.dc + before.opacity + before.scale + before.rotation,
                          now.dc + now.opacity + now.scale + now.rotation};
  return sums[0] != 0 && sums[1] != 0 ? sums[0] / sums[1] : 1;
}

}  // namespace

void LazyAdam::restore(int steps_done, const Rates* last, const double* tables) {
  steps = steps_done;
  begun = last != nullptr;
  if (last) rates = *last;
  if (tables) std::memcpy(drifts, tables, sizeof drifts);
  tabulate();
}

void LazyAdam::advance(const Rates& now) {
  steps++;
  const double correction = std::sqrt(1 - std::pow(constants.beta2, steps)) / (1 - std::pow(constants.beta1, steps));
  double older[2 * kPendingAges];
  one_step_older(kPendingAges, drifts, fading, correction, now.mean * correction, begun ? fallen(rates, now) : 1,
                 older);
  std::memcpy(drifts, older, sizeof drifts);
  rates = now;
  begun = true;
  tabulate();
}

void LazyAdam::tabulate() {
  for (int age = 0; age < kPendingAges; age++)
    by_age_[age] = {float(drifts[age]), float(drifts[kPendingAges + age]), first_decay[age], second_decay[age]};
}

Pending LazyAdam::pending() const {
  Pending owed;
  if (!begun) return owed;
  owed.step = steps;
  owed.by_age = by_age_;
  owed.moves = anything_moves(by_age_);
  spread_rates(rates, 1, 1.f, owed.rates, owed.rate_dc, owed.rate_rest);
  return owed;
}

}  // namespace splat
