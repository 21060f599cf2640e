// Lazy Adam's account: what steps without a gradient add up to, by age. The readable twin, with the formulas, is
// src/splatmeter/backends/lazy_adam.py; its tables come from there, so that both have the same bits.
#pragma once
#include <cstddef>

#include "engine.hpp"

namespace splat {

struct Rates {
  double mean, dc, rest, opacity, scale, rotation;
};

// One rate per geometry column; the means' own is given apart, because what rows owe has it inside.
inline void spread_rates(const Rates& rates, double factor, float mean, float* columns, float& dc, float& rest) {
  for (int j = 0; j < kOptimized; j++)
    columns[j] = float(factor * (j < kLogScale       ? mean
                                 : j < kRotation     ? rates.scale
                                 : j < kOpacityLogit ? rates.rotation
                                                     : rates.opacity));
  dc = float(factor * rates.dc);
  rest = float(factor * rates.rest);
}

struct AdamConstants {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-15;
};
AdamStep adam_step(int number, const Rates& rates, const AdamConstants& constants);

// `drift` and `mean_drift` [2, ages] after one more step: sums of one term more, at one age more.
inline void one_step_older(size_t ages, const double* drifts, const double* terms, double unit_rate, double mean_rate,
                           double fallen, double* older) {
  const double *unit = drifts, *mean = unit + ages;
  double *older_unit = older, *older_mean = older_unit + ages;
  older_unit[0] = unit_rate * terms[0];
  older_mean[0] = mean_rate * terms[0];
  for (size_t k = 1; k < ages; k++) {
    older_unit[k] = unit_rate * terms[k] + fallen * unit[k - 1];
    older_mean[k] = mean_rate * terms[k] + mean[k - 1];
  }
}

// Whether any row, of whatever age, is owed a change of place: nowhere where momentum waits.
inline bool anything_moves(const Owed* by_age) {
  for (int age = 0; age < kPendingAges; age++)
    if (by_age[age].drift != 0 || by_age[age].mean_drift != 0) return true;
  return false;
}

class LazyAdam {
 public:
  AdamConstants constants;
  double fading[kPendingAges] = {};  // by age: what a missed step adds, rate 1
  float first_decay[kPendingAges] = {}, second_decay[kPendingAges] = {};
  int settle_interval = 500;

  int steps = 0;
  bool begun = false;  // a step was done, here or before a checkpoint: rates are known
  Rates rates = {};
  double drifts[2 * kPendingAges] = {};

  void restore(int steps_done, const Rates* last, const double* tables);  // null: nothing was done or is owed
  void advance(const Rates& now);  // one step was done: everyone grows one step older and owes one more term
  Pending pending() const;         // valid until the next change

 private:
  void tabulate();
  Owed by_age_[kPendingAges] = {};
};

}  // namespace splat
