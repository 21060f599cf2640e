// Images and losses that can be known beforehand.
#include "testing.hpp"

namespace splat::testing {
namespace {

struct Picture {
  Floats color, transmittance;
};

Picture picture_of(const Kernels& kernels, const Table& table, int width, int height) {
  Engine engine(2);
  engine.table = table;
  engine.camera = camera_of(width, height, 0.4f);
  for (int k = 0; k < 3; k++) engine.settings.background[k] = 0.25f * float(k + 1);
  Picture picture{Floats(3 * size_t(width) * height), Floats(size_t(width) * height)};
  kernels.project(engine);
  kernels.sort_by_depth(engine);
  kernels.bin(engine);
  kernels.blend_forward(engine, picture.color.data(), picture.transmittance.data());
  return picture;
}

void no_gaussians_leave_the_background(const Kernels& kernels) {
  Model none(0), hidden(40, false);
  for (int i = 0; i < 40; i++) hidden.geometry[size_t(i) * kGeometryWidth + kMean + 2] = -100;  // all behind the camera
  for (Model* model : {&none, &hidden}) {
    const Picture p = picture_of(kernels, model->table(0), 37, 21);
    bool background = true;
    for (size_t i = 0; i < p.color.size(); i++)
      background &= p.color[i] == 0.25f * float(i / p.transmittance.size() + 1);
    for (float t : p.transmittance) background &= t == 1;
    check(background, "no visible Gaussian leaves the background");
  }
}

void lazy_rows_look_like_settled_ones(const Kernels& kernels) {
  Model model(300, false);
  for (size_t i = 0; i < model.moments.size(); i++)
    model.moments[i] = i % kGeometryMomentsWidth < kSecondGeometry ? 0.5f : 1.f;
  for (size_t i = 0; i < model.first.size(); i++) {
    model.first[i] = -0.5f;
    model.second[i] = 1;
  }
  for (int i = 0; i < 300; i++) model.geometry[size_t(i) * kGeometryWidth + kLastUpdate] = float(i % 7);
  Table table = model.table(600);  // some ages lie beyond the table of ages
  for (float& rate : table.pending.rates) rate = 0.2f;
  const Picture lazy = picture_of(kernels, table, 61, 35);
  Table still = table;
  still.pending = {};
  check(share_apart(lazy.color, picture_of(kernels, still, 61, 35).color, 1e-4f) > 0.1,
        "what rows owe changes the picture");
  ThreadPool pool(3);
  kernels.settle(pool, table);
  check(share_apart(lazy.color, picture_of(kernels, table, 61, 35).color, 1e-4f) < 0.01,
        "lazy rows look like settled ones");
  const Floats once = model.geometry;
  kernels.settle(pool, table);
  check(same_bits(once, model.geometry), "settled rows owe nothing");
}

void the_loss_of_equal_images_is_zero(const Kernels& kernels) {
  const int sizes[][2] = {{1, 1}, {5, 3}, {8, 8}, {29, 31}};
  for (auto& size : sizes) {
    const size_t values = 3 * size_t(size[0]) * size[1];
    Floats render(values), gradient(values);
    std::vector<uint8_t> photo(values);
    for (size_t i = 0; i < values; i++) {
      photo[i] = uint8_t(i * 37);
      render[i] = float(photo[i]) * (1.f / 255.f);
    }
    Engine one(1), three(3);
    const LossValue equal =
        kernels.loss(one, size[0], size[1], render.data(), photo.data(), 0.2f, gradient.data(), nullptr);
    check(equal.l1 == 0 && std::fabs(equal.ssim - 1) < 1e-6, "equal images have no loss");
    for (float& value : render) value = 1 - value;
    const LossValue apart =
        kernels.loss(one, size[0], size[1], render.data(), photo.data(), 0.2f, gradient.data(), nullptr);
    const LossValue without =
        kernels.loss(three, size[0], size[1], render.data(), photo.data(), 0.2f, nullptr, nullptr);
    check(apart.l1 > 0 && apart.ssim < 1, "other images have a loss");
    check(apart.l1 == without.l1 && apart.ssim == without.ssim, "the loss is the same with and without gradient");
  }
}

// The identity is no exposure at all, and its gradient is what the picture's colours and gradient give.
void an_exposure_is_applied_to_the_picture(const Kernels& kernels) {
  const int width = 29, height = 37;
  const size_t plane = size_t(width) * height;
  Floats render(3 * plane), gradient(3 * plane), own(3 * plane), mixed(3 * plane);
  std::vector<uint8_t> photo(3 * plane);
  for (size_t i = 0; i < 3 * plane; i++) {
    photo[i] = uint8_t(i * 37);
    render[i] = float(i * 53 % 101) * 0.01f;
  }
  Engine one(1), three(3);
  Exposure identity = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {}};
  const LossValue plain = kernels.loss(one, width, height, render.data(), photo.data(), 0.2f, own.data(), nullptr);
  const LossValue same =
      kernels.loss(three, width, height, render.data(), photo.data(), 0.2f, gradient.data(), &identity);
  // Up to roundings: the two ways through the pass are compiled apart, and multiply-adds may be fused in one only.
  float apart = 0;
  for (size_t i = 0; i < 3 * plane; i++) apart = std::max(apart, std::fabs(own[i] - gradient[i]));
  const bool equal = std::fabs(plain.l1 - same.l1) < 1e-7 && std::fabs(plain.ssim - same.ssim) < 1e-7;
  check(equal && apart < 1e-5f / float(3 * plane), "the identity changes nothing");
  for (int c = 0; c < 3; c++) {
    double sum = 0, constant = 0;
    for (size_t i = 0; i < plane; i++) {
      sum += double(own[c * plane + i]) * render[i];
      constant += own[c * plane + i];
    }
    check(std::fabs(identity.gradient[4 * c] - sum) < 1e-5 && std::fabs(identity.gradient[4 * c + 3] - constant) < 1e-5,
          "an exposure's gradient is a sum over pixels");
  }
  Exposure warm = {{1.2f, 0.1f, 0, 0.02f, 0, 0.9f, 0.05f, 0, 0.1f, 0, 0.7f, -0.01f}, {}};
  for (size_t i = 0; i < plane; i++)
    for (int c = 0; c < 3; c++) {
      const float* row = warm.transform + 4 * c;
      mixed[c * plane + i] = row[0] * render[i] + row[1] * render[plane + i] + row[2] * render[2 * plane + i] + row[3];
    }
  const LossValue exposed = kernels.loss(one, width, height, render.data(), photo.data(), 0.2f, gradient.data(), &warm);
  const LossValue expected = kernels.loss(one, width, height, mixed.data(), photo.data(), 0.2f, own.data(), nullptr);
  check(std::fabs(exposed.l1 - expected.l1) < 1e-6 && std::fabs(exposed.ssim - expected.ssim) < 1e-5,
        "an exposed picture has the loss of its colours");
  Exposure again = {{1.2f, 0.1f, 0, 0.02f, 0, 0.9f, 0.05f, 0, 0.1f, 0, 0.7f, -0.01f}, {}};
  kernels.loss(three, width, height, render.data(), photo.data(), 0.2f, own.data(), &again);
  check(same_bits(own, gradient) && !std::memcmp(warm.gradient, again.gradient, sizeof warm.gradient),
        "exposures have the same bits for any number of threads");
}

}  // namespace

void test_images(const Kernels& kernels) {
  no_gaussians_leave_the_background(kernels);
  lazy_rows_look_like_settled_ones(kernels);
  the_loss_of_equal_images_is_zero(kernels);
  an_exposure_is_applied_to_the_picture(kernels);
}

}  // namespace splat::testing
