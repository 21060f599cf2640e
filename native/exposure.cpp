#include "exposure.hpp"

#include <cmath>

namespace splat {

Exposure exposure_of(const Exposures& exposures, int photo) {
  Exposure exposure{};
  for (int k = 0; k < kExposureWidth; k++) exposure.transform[k] = float(exposures.transforms[size_t(photo) * kExposureWidth + k]);
  return exposure;
}

namespace {

// What moves in one photo's transform is taken from all of them: their mean stays where it is.
void move(Exposures& exposures, int photo, int entry, const double* by_feature) {
  double moved = 0;
  for (int f = 0; f < 4; f++) moved += by_feature[f] * exposures.features[f][entry % 4];
  exposures.transforms[size_t(photo) * kExposureWidth + entry] -= moved;
  const double shared = moved / exposures.count;
  for (int other = 0; other < exposures.count; other++) exposures.transforms[size_t(other) * kExposureWidth + entry] += shared;
}

}  // namespace

void learn_exposure(Exposures& exposures, const ExposureStep& step, const double* gradient, const AdamConstants& constants) {
  const auto [beta1, beta2, epsilon] = constants;
  const size_t row = size_t(step.photo) * kExposureWidth;
  const double* transform = exposures.transforms + row;
  const double visit = ++exposures.visits[step.photo];
  const double first_correction = 1 - std::pow(beta1, visit), second_correction = 1 - std::pow(beta2, visit);
  for (int c = 0; c < 3; c++) {
    double pulled[4], moved[4];
    for (int k = 0; k < 4; k++) pulled[k] = gradient[4 * c + k] + 2 * step.pull * (transform[4 * c + k] - (c == k));
    for (int f = 0; f < 4; f++) {
      double g = 0;
      for (int k = 0; k < 4; k++) g += pulled[k] * exposures.features[f][k];
      double &first = exposures.first[row + 4 * c + f], &second = exposures.second[row + 4 * c + f];
      first = beta1 * first + (1 - beta1) * g;
      second = beta2 * second + (1 - beta2) * (g * g);
      moved[f] = step.rate * (first / first_correction) / (std::sqrt(second / second_correction) + epsilon);
    }
    for (int k = 0; k < 4; k++) move(exposures, step.photo, 4 * c + k, moved);
  }
}

}  // namespace splat
