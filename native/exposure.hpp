// How each training photo was exposed: a 3x4 colour transform a photo, learned beside the Gaussians by an Adam of its
// own.
// The readable twin, with the reasons, is src/splatmeter/backends/exposure.py.
#pragma once
#include "lazy_adam.hpp"

namespace splat {

constexpr int kExposureWidth = 12;  // 3x4, row by row

struct Exposures {
  int count = 0;
  double *transforms = nullptr, *first = nullptr, *second = nullptr;  // [count, 12]; Adam's moments beside them
  double* visits = nullptr;                                           // [count] steps that saw the photo
};

struct ExposureStep {
  int photo = -1;  // none: pictures are compared as they are
  double rate = 0;
  double pull = 0;  // weight in the loss of the squared distance from the identity
};

Exposure exposure_of(const Exposures&, int photo);
void learn_exposure(Exposures&, const ExposureStep&, const double* gradient);

}  // namespace splat
