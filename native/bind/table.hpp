// The table of Gaussians as Python hands it over, and what its arrays must look like.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "../engine.hpp"

namespace nb = nanobind;
using namespace splat;

template <int Dimensions>
using Floats = nb::ndarray<float, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Photo = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <int Dimensions>
using Doubles = nb::ndarray<const double, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// rates: [mean, dc, rest, opacity, scale, rotation]
void spread_rates(const std::vector<double>& rates, double factor, float mean, float* columns, float& dc, float& rest) {
  require(rates.size() == 6, "six rates are needed: mean, dc, rest, opacity, scale, rotation");
  for (int j = 0; j < kOptimized; j++)
    columns[j] = float(factor * (j < kLogScale ? mean : j < kRotation ? rates[4] : j < kOpacityLogit ? rates[5] : rates[3]));
  dc = float(factor * rates[1]), rest = float(factor * rates[2]);
}

class PyTable {
 public:
  PyTable(Floats<2> geometry, Floats<2> harmonics, Floats<2> moments, Floats<2> first, Floats<2> second)
      : arrays_{geometry, harmonics, moments, first, second} {
    const size_t count = geometry.shape(0);
    require(count < size_t(INT32_MAX), "more Gaussians than 32-bit rows can number");
    require(geometry.shape(1) == kGeometryWidth && harmonics.shape(0) == count && harmonics.shape(1) == kHarmonicsWidth,
            "geometry must be [N, 16] and harmonics [N, 48]");
    table.count = int(count);
    table.geometry = geometry.data(), table.harmonics = harmonics.data();
    if (moments.shape(0) != count || first.shape(0) != count || second.shape(0) != count) return;
    require(moments.shape(1) == kGeometryMomentsWidth && first.shape(1) == kHarmonicsWidth && second.shape(1) == kHarmonicsWidth,
            "moments must be [N, 24], [N, 48] and [N, 48]");
    table.geometry_moments = moments.data(), table.harmonics_first = first.data(), table.harmonics_second = second.data();
  }
  void set_pending(int step, Doubles<1> drift, Doubles<1> mean_drift, Floats<1> first_decay, Floats<1> second_decay, const std::vector<double>& rates) {
    require(table.geometry_moments, "a table without moments owes nothing");
    for (size_t ages : {drift.size(), mean_drift.size(), first_decay.size(), second_decay.size()})
      require(ages == kPendingAges, "pending tables have 512 ages");
    for (int age = 0; age < kPendingAges; age++)
      owed_[age] = {float(drift.data()[age]), float(mean_drift.data()[age]), first_decay.data()[age], second_decay.data()[age]};
    Pending& p = table.pending;
    p.step = step, p.by_age = owed_;
    spread_rates(rates, 1, 1.f, p.rates, p.rate_dc, p.rate_rest);
  }
  // See one_step_older in ops.py.
  static void one_step_older(Doubles<2> drifts, Doubles<1> terms, double unit_rate, double mean_rate, double fallen, nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> older) {
    const size_t ages = terms.size();
    require(drifts.shape(0) == 2 && drifts.shape(1) == ages && older.shape(0) == 2 && older.shape(1) == ages && ages > 0, "tables must be [2, AGES]");
    const double *unit = drifts.data(), *mean = unit + ages, *term = terms.data();
    double *older_unit = older.data(), *older_mean = older_unit + ages;
    older_unit[0] = unit_rate * term[0], older_mean[0] = mean_rate * term[0];
    for (size_t k = 1; k < ages; k++) older_unit[k] = unit_rate * term[k] + fallen * unit[k - 1], older_mean[k] = mean_rate * term[k] + mean[k - 1];
  }
  Table table;

 private:
  Floats<2> arrays_[5];  // kept alive
  Owed owed_[kPendingAges];
};

}  // namespace
