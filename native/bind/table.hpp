// The table of Gaussians as Python hands it over, and what its arrays must look like.
#pragma once
#include "account.hpp"

namespace {

class PyTable : public HoldsAccount {
 public:
  PyTable(Floats<2> geometry, Floats<2> harmonics, Floats<2> moments, Floats<2> first, Floats<2> second)
      : arrays_{geometry, harmonics, moments, first, second} {
    const size_t count = geometry.shape(0);
    require(count < size_t(INT32_MAX), "more Gaussians than 32-bit rows can number");
    require(geometry.shape(1) == kGeometryWidth && harmonics.shape(0) == count && harmonics.shape(1) == kHarmonicsWidth,
            "geometry must be [N, 16] and harmonics [N, 48]");
    table.count = int(count);
    table.geometry = geometry.data();
    table.harmonics = harmonics.data();
    if (moments.shape(0) != count || first.shape(0) != count || second.shape(0) != count) return;
    require(moments.shape(1) == kGeometryMomentsWidth && first.shape(1) == kHarmonicsWidth &&
                second.shape(1) == kHarmonicsWidth,
            "moments must be [N, 24], [N, 48] and [N, 48]");
    table.geometry_moments = moments.data();
    table.harmonics_first = first.data();
    table.harmonics_second = second.data();
  }
  void set_account(int steps, const std::vector<double>& rates, Doubles<2> drifts) {
    require(table.geometry_moments || rates.empty(), "a table without moments owes nothing");
    HoldsAccount::set_account(steps, rates, drifts);
    table.pending = adam.pending();
  }
  // How training photos were exposed, which steps change in place: [photos, 3, 4] three times, and [photos].
  void set_exposures(WritableDoubles<3> transforms, WritableDoubles<3> first, WritableDoubles<3> second,
                     WritableDoubles<1> visits) {
    for (const auto* array : {&transforms, &first, &second})
      require(array->shape(0) == visits.shape(0) && array->shape(1) == 3 && array->shape(2) == 4,
              "exposures must be [photos, 3, 4]");
    exposures = {int(visits.shape(0)), transforms.data(), first.data(), second.data(), visits.data()};
    exposure_arrays_[0] = transforms;
    exposure_arrays_[1] = first;
    exposure_arrays_[2] = second;
    visits_ = visits;
  }
  Table table;
  Exposures exposures;

 private:
  Floats<2> arrays_[5];  // kept alive
  WritableDoubles<3> exposure_arrays_[3];
  WritableDoubles<1> visits_;
};

}  // namespace
