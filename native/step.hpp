// One step of training in one go: forward, loss, backward, Adam and its account. The passes apart are its twin.
#pragma once
#include <chrono>
#include <cstdint>

#include "exposure.hpp"
#include "lazy_adam.hpp"

namespace splat {

struct Stopwatch {
  double& seconds;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  ~Stopwatch() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

// Of the engine's table through its camera with its settings.
void forward(Engine&, float* color, float* transmittance);
void backward(Engine&, const float* color_gradient, const float* transmittance_gradient);
void update(Engine&, const AdamStep*);  // without a step only the statistics move
LossValue loss(Engine&, int width, int height, const float* image, const uint8_t* photo, float ssim_weight,
               float* gradient, Exposure* = nullptr);

struct StepOrder {
  const uint8_t* photo;
  double ssim_weight;
  Rates rates;
  bool learns;  // else only the statistics of densification move
  ExposureStep exposure = {};
};
struct StepResult {
  LossValue loss;
  bool finite;  // where it is not, nothing was changed
};
StepResult train_step(Engine&, LazyAdam&, Exposures&, const StepOrder&);

}  // namespace splat
