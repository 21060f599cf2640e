#include "step.hpp"

#include <cmath>
#include <stdexcept>

namespace splat {

void forward(Engine& engine, float* color, float* transmittance) {
  const Kernels& k = kernels();
  engine.forward_number++;  // earlier tapes are stale from here on, also where this does not end well
  {
    Stopwatch w{engine.seconds[kProject]};
    k.project(engine);
  }
  if (engine.slot_count > kMostSlots)
    throw std::invalid_argument("these Gaussians touch more than 2^32 tiles of one image: they are far too large");
  {
    Stopwatch w{engine.seconds[kSort]};
    k.sort_by_depth(engine);
  }
  {
    Stopwatch w{engine.seconds[kBin]};
    k.bin(engine);
  }
  {
    Stopwatch w{engine.seconds[kBlendForward]};
    k.blend_forward(engine, color, transmittance);
  }
}

void backward(Engine& engine, const float* color_gradient, const float* transmittance_gradient) {
  Stopwatch w{engine.seconds[kBlendBackward]};
  kernels().blend_backward(engine, color_gradient, transmittance_gradient);
}

void update(Engine& engine, const AdamStep* step) {
  Stopwatch w{engine.seconds[kUpdate]};
  kernels().update(engine, step);
}

LossValue loss(Engine& engine, int width, int height, const float* image, const uint8_t* photo, float ssim_weight,
               float* gradient, Exposure* exposure) {
  Stopwatch w{engine.seconds[kLoss]};
  return kernels().loss(engine, width, height, image, photo, ssim_weight, gradient, exposure);
}

StepResult train_step(Engine& engine, LazyAdam& adam, Exposures& exposures, const StepOrder& order) {
  const int width = engine.camera.width, height = engine.camera.height;
  const size_t pixels = size_t(width) * height;
  float* color = engine.step_images.at_least(7 * pixels);
  float *gradient = color + 3 * pixels, *transmittance = gradient + 3 * pixels;
  forward(engine, color, transmittance);
  StepResult result;
  const bool exposed = order.exposure.photo >= 0;
  Exposure exposure = exposed ? exposure_of(exposures, order.exposure.photo) : Exposure{};
  exposure.unmixed = false;  // the backward pass reads the gradient anyway
  result.loss = loss(engine, width, height, color, order.photo, float(order.ssim_weight), gradient,
                     exposed ? &exposure : nullptr);
  const double total = (1 - order.ssim_weight) * result.loss.l1 + order.ssim_weight * (1 - result.loss.ssim);
  result.finite = std::isfinite(total);
  if (!result.finite) return result;
  engine.unmix = exposed ? exposure.transform : nullptr;
  backward(engine, gradient, nullptr);
  engine.unmix = nullptr;
  if (!order.learns) {
    update(engine, nullptr);
    return result;
  }
  const AdamStep step = adam_step(adam.steps + 1, order.rates, adam.constants);
  update(engine, &step);
  if (exposed) learn_exposure(exposures, order.exposure, exposure.gradient);
  adam.advance(order.rates);
  engine.table.pending = adam.pending();
  if (adam.steps % adam.settle_interval == 0)
    kernels().settle(engine.pool, engine.table);  // by the count alone: a resumed run does the same
  return result;
}

}  // namespace splat
