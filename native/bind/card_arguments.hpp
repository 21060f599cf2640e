// What Python hands to the engine on a card, as its C++ takes it.
#pragma once
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "../cuda/engine.hpp"
#include "account.hpp"

namespace {

using Words = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Wide = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Unlocked = nb::gil_scoped_release;

card::View view_of(const std::vector<double>& p) {  // [rotation 9, translation 3, fx, fy, cx, cy, width, height]
  require(p.size() == 18, "a camera has 18 numbers");
  card::View v;
  std::copy(p.begin(), p.begin() + 9, v.rotation);
  std::copy(p.begin() + 9, p.begin() + 12, v.translation);
  v.fx = p[12];
  v.fy = p[13];
  v.cx = p[14];
  v.cy = p[15];
  v.width = int(p[16]);
  v.height = int(p[17]);
  return v;
}

// (degree, kernel size, compensate, background, largest alpha, absolute gradients)
using SettingsTuple = std::tuple<int, float, bool, std::vector<float>, float, bool>;
Settings settings_of(const SettingsTuple& s) {
  const auto& [degree, kernel_size, compensate, background, max_alpha, absolute] = s;
  require(background.size() == 3 && degree >= 0 && degree <= 3, "background or degree are malformed");
  return {degree, kernel_size, compensate, {background[0], background[1], background[2]}, max_alpha, absolute};
}

// (number, six rates, beta1, beta2, epsilon); number 0: no step
using AdamTuple = std::tuple<int, std::vector<double>, double, double, double>;
struct MaybeAdam {
  card::Adam adam = {};
  bool learns;
  explicit MaybeAdam(const AdamTuple& a) : learns(std::get<0>(a) > 0) {
    if (learns)
      adam = card::adam_of(std::get<0>(a), rates_of(std::get<1>(a)), {std::get<2>(a), std::get<3>(a), std::get<4>(a)});
  }
  const card::Adam* get() const { return learns ? &adam : nullptr; }
};

card::HostRows host_rows(size_t count, Floats<2>& geometry, Floats<2>& harmonics, Floats<2>& moments, Floats<2>& first,
                         Floats<2>& second, bool& trainable) {
  require(geometry.shape(0) == count && geometry.shape(1) == kGeometryWidth && harmonics.shape(0) == count &&
              harmonics.shape(1) == kHarmonicsWidth,
          "geometry must be [N, 16] and harmonics [N, 48]");
  trainable = moments.shape(0) == count && first.shape(0) == count && second.shape(0) == count;
  if (trainable)
    require(moments.shape(1) == kGeometryMomentsWidth && first.shape(1) == kHarmonicsWidth &&
                second.shape(1) == kHarmonicsWidth,
            "moments must be [N, 24], [N, 48] and [N, 48]");
  return {geometry.data(), harmonics.data(), trainable ? moments.data() : nullptr, trainable ? first.data() : nullptr,
          trainable ? second.data() : nullptr};
}

}  // namespace
