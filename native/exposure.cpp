#include "exposure.hpp"

#include <cmath>

namespace splat {

Exposure exposure_of(const Exposures& exposures, int photo) {
  Exposure exposure{};
  for (int k = 0; k < kExposureWidth; k++)
    exposure.transform[k] = float(exposures.transforms[size_t(photo) * kExposureWidth + k]);
  return exposure;
}

void learn_exposure(Exposures& exposures, const ExposureStep& step, const double* gradient) {
  const auto [beta1, beta2, epsilon] = AdamConstants{};  // the published ones, whatever Gaussians have
  const size_t row = size_t(step.photo) * kExposureWidth;
  double* transform = exposures.transforms + row;
  const double visit = ++exposures.visits[step.photo];
  const double first_correction = 1 - std::pow(beta1, visit), second_correction = 1 - std::pow(beta2, visit);
  for (int k = 0; k < kExposureWidth; k++) {
    const double identity = k % 5 == 0 ? 1 : 0;  // of three rows of four
    const double g = gradient[k] + 2 * step.pull * (transform[k] - identity);
    double &first = exposures.first[row + k], &second = exposures.second[row + k];
    first = beta1 * first + (1 - beta1) * g;
    second = beta2 * second + (1 - beta2) * (g * g);
    const double moved = step.rate * (first / first_correction) / (std::sqrt(second / second_correction) + epsilon);
    transform[k] -= moved;
    const double shared = moved / exposures.count;  // the mean over all photos stays where it is
    for (int photo = 0; photo < exposures.count; photo++)
      exposures.transforms[size_t(photo) * kExposureWidth + k] += shared;
  }
}

}  // namespace splat
