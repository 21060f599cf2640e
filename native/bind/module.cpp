// The Python face of the engine: arrays in, arrays out, the interpreter lock released while it works.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "../dispatch.hpp"
#include "../limits.hpp"
#include "table.hpp"

namespace {

// [rotation 9, translation 3, fx, fy, cx, cy, width, height]
Camera camera_of(const double* p) {
  Camera c;
  for (int k = 0; k < 9; k++) c.rotation[k] = float(p[k]);
  for (int k = 0; k < 3; k++) {
    c.translation[k] = float(p[9 + k]);
    c.position[k] = float(-(p[k] * p[9] + p[3 + k] * p[10] + p[6 + k] * p[11]));
  }
  c.fx = float(p[12]);
  c.fy = float(p[13]);
  c.cx = float(p[14]);
  c.cy = float(p[15]);
  c.width = int(p[16]);
  c.height = int(p[17]);
  const double beyond = 0.15;
  c.slope_low_x = float(-(p[14] + beyond * p[16]) / p[12]);
  c.slope_high_x = float((p[16] - p[14] + beyond * p[16]) / p[12]);
  c.slope_low_y = float(-(p[15] + beyond * p[17]) / p[13]);
  c.slope_high_y = float((p[17] - p[15] + beyond * p[17]) / p[13]);
  return c;
}

AdamStep adam_step_of(int number, const std::vector<double>& rates, double beta1, double beta2, double epsilon) {
  require(number >= 1, "an Adam step needs a number from 1");
  return adam_step(number, rates_of(rates), {beta1, beta2, epsilon});
}

class PyEngine {
 public:
  explicit PyEngine(int threads) : engine_(threads) {}

  uint64_t forward(const PyTable& table, const std::vector<double>& camera, int degree, float kernel_size,
                   bool compensate, const std::vector<float>& background, float max_alpha, bool absolute,
                   float light_cut, Floats<3> color, Floats<2> transmittance) {
    look(table, camera, degree, kernel_size, compensate, background, max_alpha, absolute, light_cut);
    const Camera& c = engine_.camera;
    require(color.shape(0) == 3 && int(color.shape(1)) == c.height && int(color.shape(2)) == c.width &&
                int(transmittance.shape(0)) == c.height && int(transmittance.shape(1)) == c.width,
            "output arrays do not fit the camera");
    nb::gil_scoped_release unlocked;
    splat::forward(engine_, color.data(), transmittance.data());
    return engine_.forward_number;
  }

  // L1, SSIM, and whether the loss is a number; where it is not, nothing was changed.
  nb::tuple train_step(PyTable& table, const std::vector<double>& camera, int degree, float kernel_size,
                       bool compensate, const std::vector<float>& background, float max_alpha, bool absolute,
                       float light_cut, Photo photo, double ssim_weight, const std::vector<double>& rates, bool learns,
                       int exposed_photo, double exposure_rate, double exposure_pull) {
    require(table.table.geometry_moments, "a table without moments cannot be trained");
    look(table, camera, degree, kernel_size, compensate, background, max_alpha, absolute, light_cut);
    const Camera& c = engine_.camera;
    require(photo.shape(0) == 3 && int(photo.shape(1)) == c.height && int(photo.shape(2)) == c.width,
            "the photo does not fit the camera");
    require(exposed_photo >= -1 && exposed_photo < table.exposures.count, "there is no exposure of that photo");
    const StepOrder order{
        photo.data(), ssim_weight, rates_of(rates), learns, {exposed_photo, exposure_rate, exposure_pull}};
    StepResult result;
    {
      nb::gil_scoped_release unlocked;
      result = splat::train_step(engine_, table.adam, table.exposures, order);
      table.table.pending = table.adam.pending();
    }
    return nb::make_tuple(result.loss.l1, result.loss.ssim, result.finite);
  }

  void update(uint64_t number, Floats<3> color_gradient, int step, const std::vector<double>& rates, double beta1,
              double beta2, double epsilon) {
    differentiate(number, color_gradient, nullptr);
    require(engine_.table.geometry_moments || step == 0, "a table without moments cannot be trained");
    AdamStep adam;
    if (step) adam = adam_step_of(step, rates, beta1, beta2, epsilon);
    nb::gil_scoped_release unlocked;
    splat::update(engine_, step ? &adam : nullptr);
  }

  void gradients(uint64_t number, Floats<3> color_gradient, nb::object transmittance_gradient, Floats<2> geometry,
                 Floats<2> harmonics, Floats<2> mean2d, Floats<1> absolute, Flags visible) {
    Floats<2> extra;
    if (!transmittance_gradient.is_none()) extra = nb::cast<Floats<2>>(transmittance_gradient);
    differentiate(number, color_gradient, transmittance_gradient.is_none() ? nullptr : extra.data());
    const size_t count = size_t(engine_.table.count);
    require(geometry.shape(0) == count && geometry.shape(1) == kGeometryWidth && harmonics.shape(0) == count &&
                harmonics.shape(1) == kHarmonicsWidth && mean2d.shape(0) == count && mean2d.shape(1) == 2 &&
                absolute.shape(0) == count && visible.shape(0) == count,
            "gradient arrays do not fit the table");
    nb::gil_scoped_release unlocked;
    kernels().gradients(engine_, {geometry.data(), harmonics.data(), mean2d.data(), absolute.data(), visible.data()});
  }

  nb::tuple loss(Floats<3> render, Photo photo, float ssim_weight, nb::object gradient_array) {
    require(render.shape(0) == 3 && photo.shape(0) == 3 && render.shape(1) == photo.shape(1) &&
                render.shape(2) == photo.shape(2),
            "render and photo differ in size");
    float* gradient = nullptr;
    if (!gradient_array.is_none()) {
      auto array = nb::cast<Floats<3>>(gradient_array);
      require(array.size() == render.size(), "gradient and render differ in size");
      gradient = array.data();
    }
    LossValue value;
    {
      nb::gil_scoped_release unlocked;
      value = splat::loss(engine_, int(render.shape(2)), int(render.shape(1)), render.data(), photo.data(), ssim_weight,
                          gradient);
    }
    return nb::make_tuple(value.l1, value.ssim);
  }

  nb::tuple exposed_loss(Floats<3> render, Photo photo, float ssim_weight, Floats<2> transform, Floats<3> gradient,
                         WritableDoubles<2> transform_gradient) {
    require(render.shape(0) == 3 && photo.shape(0) == 3 && render.shape(1) == photo.shape(1) &&
                render.shape(2) == photo.shape(2) && gradient.size() == render.size(),
            "render, photo and gradient differ in size");
    require(transform.size() == kExposureWidth && transform_gradient.size() == kExposureWidth, "an exposure is [3, 4]");
    Exposure exposure{};
    std::copy_n(transform.data(), kExposureWidth, exposure.transform);
    LossValue value;
    {
      nb::gil_scoped_release unlocked;
      value = splat::loss(engine_, int(render.shape(2)), int(render.shape(1)), render.data(), photo.data(), ssim_weight,
                          gradient.data(), &exposure);
    }
    std::copy_n(exposure.gradient, kExposureWidth, transform_gradient.data());
    return nb::make_tuple(value.l1, value.ssim);
  }

  void adam(PyTable& table, Floats<2> geometry, Floats<2> harmonics, int number, const std::vector<double>& rates,
            double beta1, double beta2, double epsilon) {
    require(table.table.geometry_moments, "a table without moments cannot be trained");
    require(int(geometry.shape(0)) == table.table.count && int(harmonics.shape(0)) == table.table.count,
            "gradients do not fit the table");
    const AdamStep step = adam_step_of(number, rates, beta1, beta2, epsilon);
    nb::gil_scoped_release unlocked;
    kernels().adam(engine_.pool, table.table, geometry.data(), harmonics.data(), step);
  }

  void settle(PyTable& table) {
    nb::gil_scoped_release unlocked;
    kernels().settle(engine_.pool, table.table);
  }

  void explore(PyTable& table, const std::vector<uint32_t>& keys, float noise, float opacity_weight, float scale_weight,
               float opacity_distance, float scale_distance, float second_correction) {
    require(table.table.geometry_moments, "a table without moments cannot be trained");
    require(keys.size() == 5, "five keys are needed");
    Exploration e;
    for (int k = 0; k < 5; k++) e.keys[k] = keys[k];
    e.noise = noise;
    e.second_correction = second_correction;
    e.opacity_weight = opacity_weight;
    e.scale_weight = scale_weight;
    e.opacity_distance = opacity_distance;
    e.scale_distance = scale_distance;
    nb::gil_scoped_release unlocked;
    kernels().explore(engine_.pool, table.table, e);
  }

  void sampling_distance(Floats<2> means, Doubles<2> cameras, Floats<1> distance) {
    require(means.shape(1) == 3 && cameras.shape(1) == 18 && distance.shape(0) == means.shape(0),
            "means must be [N, 3] and cameras [C, 18]");
    std::vector<Camera> list;
    for (size_t i = 0; i < cameras.shape(0); i++) list.push_back(camera_of(cameras.data() + 18 * i));
    nb::gil_scoped_release unlocked;
    kernels().sampling_distance(engine_.pool, int(means.shape(0)), means.data(), int(list.size()), list.data(),
                                distance.data());
  }

  void neighbour_distance(Floats<2> points, Floats<1> out) {
    require(points.shape(1) == 3 && out.shape(0) == points.shape(0), "points must be [N, 3]");
    nb::gil_scoped_release unlocked;
    splat::neighbour_distance(engine_.pool, int(points.shape(0)), points.data(), out.data());
  }

  void morton_order(Floats<2> means, Indices order) {
    require(means.shape(1) == 3 && order.shape(0) == means.shape(0), "means must be [N, 3]");
    nb::gil_scoped_release unlocked;
    splat::morton_order(engine_.pool, int(means.shape(0)), means.data(), 3, order.data());
  }

  void take_rows(Floats<2> from, Indices source, nb::object zeroed, Floats<2> to) {
    require(to.shape(0) == source.shape(0) && to.shape(1) == from.shape(1), "target array does not fit");
    const int64_t rows = int64_t(from.shape(0));
    const int64_t* index = source.data();
    for (size_t i = 0; i < source.shape(0); i++) require(index[i] >= 0 && index[i] < rows, "source row out of range");
    const bool* flags = nullptr;
    Flags array;
    if (!zeroed.is_none()) {
      array = nb::cast<Flags>(zeroed);
      require(array.shape(0) == source.shape(0), "one flag a row is needed");
      flags = array.data();
    }
    nb::gil_scoped_release unlocked;
    splat::take_rows(engine_.pool, int(to.shape(0)), int(to.shape(1)), from.data(), index, flags, to.data());
  }

  nb::dict timings() {
    nb::dict result;
    for (int k = 0; k < kPasses; k++) {
      result[kPassNames[k]] = engine_.seconds[k];
      engine_.seconds[k] = 0;
    }
    return result;
  }

  nb::dict step_work() {
    StepWork work;
    {
      nb::gil_scoped_release unlocked;
      work = splat::step_work(engine_);
    }
    nb::dict result;
    result["gaussians"] = engine_.table.count;
    result["visible"] = work.visible;
    result["visible_behind"] = work.visible_behind;
    result["seen"] = work.seen;
    result["pairs"] = work.pairs;
    result["walked"] = work.walked;
    result["items"] = work.items;
    result["vectors"] = work.vectors;
    result["pixels"] = work.pixels;
    return result;
  }
  double measured_flops() {
    nb::gil_scoped_release unlocked;
    return splat::measured_flops(engine_.pool);
  }
  double measured_bandwidth() {
    nb::gil_scoped_release unlocked;
    return splat::measured_bandwidth(engine_.pool);
  }
  double measured_operations() {
    nb::gil_scoped_release unlocked;
    return splat::measured_operations(engine_.pool);
  }
  double measured_divisions() {
    nb::gil_scoped_release unlocked;
    return splat::measured_divisions(engine_.pool);
  }

  // Everything that grows with the Gaussians, before rows are moved: the table needs the room, and the next forward
  // pass makes it anew.
  void release_workspace() {
    Engine& e = engine_;
    e.splats.release();
    e.boxes.release();
    e.rows.release();
    e.depth_keys[0].release();
    e.depth_keys[1].release();
    e.depth_order.release();
    e.runs.release();
    e.pairs.release();
    e.pair_gradients.release();
    // tapes are stale now
    e.chunk_count = e.visible_count = e.tile_columns = e.tile_rows = 0;
    e.pair_count = 0;
    e.forward_number++;
  }

  int visible_count() const { return engine_.visible_count; }
  uint32_t pair_count() const { return engine_.pair_count; }
  size_t workspace_bytes() const { return engine_.workspace_bytes(); }
  int threads() const { return engine_.pool.size(); }

 private:
  void look(const PyTable& table, const std::vector<double>& camera, int degree, float kernel_size, bool compensate,
            const std::vector<float>& background, float max_alpha, bool absolute, float light_cut) {
    require(camera.size() == 18 && background.size() == 3 && degree >= 0 && degree <= 3,
            "camera, background or degree are malformed");
    require(max_alpha > 0 && max_alpha < 1,
            "max_alpha must lie between 0 and 1: backward divides by what an opaque Gaussian lets through");
    require(light_cut >= 0 && light_cut < 1, "light_cut must be 0 or lie between 0 and 1: it is a share of the light");
    const Camera seen = camera_of(camera.data());
    require(seen.width > 0 && seen.height > 0 && seen.width <= (1 << 20) && seen.height <= (1 << 20),
            "image size out of range");
    engine_.table = table.table;
    engine_.camera = seen;
    engine_.settings = {degree,    kernel_size, compensate, {background[0], background[1], background[2]},
                        max_alpha, absolute,    light_cut};
  }
  void differentiate(uint64_t number, Floats<3>& color_gradient, const float* transmittance_gradient) {
    require(number == engine_.forward_number, "the tape is stale: backward must follow its own forward");
    require(color_gradient.shape(0) == 3 && int(color_gradient.shape(1)) == engine_.camera.height &&
                int(color_gradient.shape(2)) == engine_.camera.width,
            "the gradient does not fit the image");
    nb::gil_scoped_release unlocked;
    splat::backward(engine_, color_gradient.data(), transmittance_gradient);
  }
  Engine engine_;
};

void run_stopwatches(int count) {  // what timing a pass costs, for whoever times this call
  double seconds = 0;
  for (int k = 0; k < count; k++) Stopwatch watch{seconds};
}

std::vector<std::string> instruction_sets() {
  const Kernels* list[4];
  std::vector<std::string> names;
  for (int i = 0, n = available_kernels(list); i < n; i++) names.push_back(list[i]->name);
  return names;
}

}  // namespace

void bind_cuda(nb::module_& module);

NB_MODULE(_native, m) {
  nb::class_<PyTable> table(m, "Table");
  table.def(nb::init<Floats<2>, Floats<2>, Floats<2>, Floats<2>, Floats<2>>());
  table.def("set_exposures", &PyTable::set_exposures);
  bind_account(table);
  nb::class_<PyEngine>(m, "Engine")
      .def(nb::init<int>())
      .def("forward", &PyEngine::forward)
      .def("train_step", &PyEngine::train_step)
      .def("update", &PyEngine::update)
      .def("gradients", &PyEngine::gradients, nb::arg("number"), nb::arg("color_gradient"),
           nb::arg("transmittance_gradient").none(), nb::arg("geometry"), nb::arg("harmonics"), nb::arg("mean2d"),
           nb::arg("absolute"), nb::arg("visible"))
      .def("loss", &PyEngine::loss, nb::arg("render"), nb::arg("photo"), nb::arg("ssim_weight"),
           nb::arg("gradient").none())
      .def("exposed_loss", &PyEngine::exposed_loss)
      .def("adam", &PyEngine::adam)
      .def("settle", &PyEngine::settle)
      .def("explore", &PyEngine::explore)
      .def("sampling_distance", &PyEngine::sampling_distance)
      .def("neighbour_distance", &PyEngine::neighbour_distance)
      .def("morton_order", &PyEngine::morton_order)
      .def("take_rows", &PyEngine::take_rows, nb::arg("rows"), nb::arg("source"), nb::arg("zeroed").none(),
           nb::arg("to"))
      .def("timings", &PyEngine::timings)
      .def("release_workspace", &PyEngine::release_workspace)
      .def("step_work", &PyEngine::step_work)
      .def("measured_flops", &PyEngine::measured_flops)
      .def("measured_bandwidth", &PyEngine::measured_bandwidth)
      .def("measured_operations", &PyEngine::measured_operations)
      .def("measured_divisions", &PyEngine::measured_divisions)
      .def_prop_ro("visible_count", &PyEngine::visible_count)
      .def_prop_ro("pair_count", &PyEngine::pair_count)
      .def_prop_ro("workspace_bytes", &PyEngine::workspace_bytes)
      .def_prop_ro("threads", &PyEngine::threads);
  m.def("instruction_sets", &instruction_sets, "those this machine can run, best first");
  m.def(
      "instruction_set", [] { return std::string(kernels().name); }, nb::call_guard<nb::gil_scoped_release>());
  m.def("instruction_set_note", &kernels_note, nb::call_guard<nb::gil_scoped_release>(),
        "about one that was not used; mostly empty");
  m.def("force_instruction_set", [](const std::string& name) {
    require(force_kernels(name.c_str()), "this machine cannot run that instruction set");
  });
  m.def("run_stopwatches", &run_stopwatches, "start and stop the stopwatch of a pass so many times");
  m.attr("compiler") = SPLAT_COMPILER;
  bind_cuda(m);
}
