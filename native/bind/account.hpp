// What every binding needs: arrays as Python hands them over, and lazy Adam's account as Python sees it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "../step.hpp"

namespace nb = nanobind;
using namespace splat;

template <int Dimensions>
using Floats = nb::ndarray<float, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Photo = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <int Dimensions>
using Doubles = nb::ndarray<const double, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <int Dimensions>
using WritableDoubles = nb::ndarray<double, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// [mean, dc, rest, opacity, scale, rotation]
inline Rates rates_of(const std::vector<double>& r) {
  require(r.size() == 6, "six rates are needed: mean, dc, rest, opacity, scale, rotation");
  return {r[0], r[1], r[2], r[3], r[4], r[5]};
}

struct HoldsAccount {
  LazyAdam adam;

  // The constants of the optimizer and its tables by age, as backends/lazy_adam.py has them.
  void set_optimizer(double beta1, double beta2, double epsilon, int settle_interval, Doubles<1> fading,
                     Floats<1> first_decay, Floats<1> second_decay) {
    for (size_t ages : {fading.size(), first_decay.size(), second_decay.size()})
      require(ages == kPendingAges, "tables by age have 512 entries");
    require(settle_interval > 0, "rows must be settled now and then");
    adam.constants = {beta1, beta2, epsilon};
    adam.settle_interval = settle_interval;
    std::copy_n(fading.data(), kPendingAges, adam.fading);
    std::copy_n(first_decay.data(), kPendingAges, adam.first_decay);
    std::copy_n(second_decay.data(), kPendingAges, adam.second_decay);
  }
  // Steps done, the rates of the last one (none: nothing was done yet), and what rows owe by age [2, 512].
  void set_account(int steps, const std::vector<double>& rates, Doubles<2> drifts) {
    require(drifts.shape(0) == 2 && drifts.shape(1) == kPendingAges && steps >= 0,
            "tables of what is owed must be [2, 512]");
    Rates last{};
    if (!rates.empty()) last = rates_of(rates);
    adam.restore(steps, rates.empty() ? nullptr : &last, drifts.data());
  }
  int steps() const { return adam.steps; }
  std::vector<double> rates() const {
    const Rates& r = adam.rates;
    return adam.begun ? std::vector<double>{r.mean, r.dc, r.rest, r.opacity, r.scale, r.rotation}
                      : std::vector<double>{};
  }
  void copy_drifts(WritableDoubles<2> drifts) const {
    require(drifts.shape(0) == 2 && drifts.shape(1) == kPendingAges, "tables of what is owed must be [2, 512]");
    std::copy_n(adam.drifts, 2 * kPendingAges, drifts.data());
  }
};

template <class Class>
void bind_account(Class& c) {
  using Holder = typename Class::Type;
  c.def("set_optimizer", &Holder::set_optimizer)
      .def("set_account", &Holder::set_account)
      .def("copy_drifts", &Holder::copy_drifts)
      .def_prop_ro("steps", &Holder::steps)
      .def_prop_ro("rates", &Holder::rates);
}
