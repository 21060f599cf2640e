// The Python face of the engine on a card: arrays in, arrays out, the interpreter lock released while it works.
#include "card.hpp"

namespace {

// The five arrays of a table by number, as ops.WIDTHS has them.
constexpr size_t kWidths[] = {kGeometryWidth, kHarmonicsWidth, kGeometryMomentsWidth, kHarmonicsWidth, kHarmonicsWidth};

std::optional<card::Cut> cut_of(nb::object cut) {  // (distance, length, width, opacity) or None
  if (cut.is_none()) return {};
  const auto numbers = nb::cast<std::vector<double>>(cut);
  const auto share = [](double number) { return number > 0 && number <= 1; };
  require(numbers.size() == 4 && share(numbers[1]) && share(numbers[2]) && share(numbers[3]) && numbers[3] < 1,
          "halves have a distance, a length and a width above 0 up to 1, an opacity between 0 and 1");
  return card::Cut{numbers[0], numbers[1], numbers[2], numbers[3]};
}

// A table of Gaussians on a card, and all that the card itself can do.
class PyCardModel : public PyCard, public HoldsAccount {
 public:
  explicit PyCardModel(const PyCard& on) : PyCard(on) {
    Unlocked unlocked;
    engine_ = std::make_unique<card::Engine>(opened_);
  }

  void upload(Floats<2> geometry, Floats<2> harmonics, Floats<2> moments, Floats<2> first, Floats<2> second) {
    bool trainable;
    const card::HostRows rows = host_rows(geometry.shape(0), geometry, harmonics, moments, first, second, trainable);
    Unlocked unlocked;
    engine_->upload(card::u32(geometry.shape(0)), rows, trainable);
  }
  void download(uint32_t first_row, Floats<2> geometry, Floats<2> harmonics, Floats<2> moments, Floats<2> first,
                Floats<2> second) {
    bool trainable;
    const card::HostRows rows = host_rows(geometry.shape(0), geometry, harmonics, moments, first, second, trainable);
    Unlocked unlocked;
    engine_->download(first_row, card::u32(geometry.shape(0)), rows);
  }
  void download_array(size_t number, uint32_t first_row, Floats<2> rows) {
    require(number < 5 && rows.shape(1) == kWidths[number], "there is no such array, or it has another width");
    card::HostRows wanted = {};
    float** const places[] = {&wanted.geometry, &wanted.harmonics, &wanted.moments, &wanted.first_moments,
                              &wanted.second_moments};
    *places[number] = rows.data();
    Unlocked unlocked;
    engine_->download(first_row, card::u32(rows.shape(0)), wanted);
  }
  void set_pending(int step, const std::vector<double>& rates, nb::object by_age) {
    if (by_age.is_none()) return engine_->set_pending(0, {}, nullptr);
    const auto array = nb::cast<Floats<2>>(by_age);
    require(array.shape(0) == kPendingAges && array.shape(1) == 4, "what is owed by age must be [512, 4]");
    engine_->set_pending(step, rates_of(rates), array.data());
  }

  void forward(const std::vector<double>& camera, const SettingsTuple& settings, Floats<3> colour,
               Floats<2> transmittance) {
    const card::View view = view_of(camera);
    require(colour.shape(0) == 3 && int(colour.shape(1)) == view.height && int(colour.shape(2)) == view.width &&
                int(transmittance.shape(0)) == view.height && int(transmittance.shape(1)) == view.width,
            "output arrays do not fit the camera");
    const Settings drawing = settings_of(settings);
    drawn_ = size_t(view.width) * view.height;
    Unlocked unlocked;
    engine_->forward(view, drawing);
    engine_->image_to_host(colour.data(), transmittance.data());
  }
  nb::tuple loss(Photo photo, float ssim_weight, nb::object gradient) {
    require(photo.size() == 3 * drawn_, "render and photo differ in size");
    float* out = nullptr;
    if (!gradient.is_none()) {
      auto array = nb::cast<Floats<3>>(gradient);
      require(array.size() == 3 * drawn_, "gradient and render differ in size");
      out = array.data();
    }
    card::LossValues values;
    {
      Unlocked unlocked;
      values = engine_->loss(photo.data(), ssim_weight, out);
    }
    return nb::make_tuple(values.l1, values.ssim);
  }
  void gradients(Floats<3> colour_gradient, nb::object transmittance_gradient, Floats<2> geometry, Floats<2> harmonics,
                 Floats<2> mean2d, Floats<1> absolute, Flags visible) {
    const size_t n = engine_->count();
    require(colour_gradient.size() == 3 * drawn_, "the gradient does not fit the image");
    require(geometry.size() == n * kGeometryWidth && harmonics.size() == n * kHarmonicsWidth &&
                mean2d.size() == 2 * n && absolute.size() == n && visible.size() == n,
            "gradient arrays do not fit the table");
    const float* extra = nullptr;
    if (!transmittance_gradient.is_none()) extra = nb::cast<Floats<2>>(transmittance_gradient).data();
    Unlocked unlocked;
    engine_->gradients(colour_gradient.data(), extra,
                       {geometry.data(), harmonics.data(), mean2d.data(), absolute.data(),
                        reinterpret_cast<card::u8*>(visible.data())});
  }
  void update(Floats<3> colour_gradient, const AdamTuple& adam) {
    require(colour_gradient.size() == 3 * drawn_, "the gradient does not fit the image");
    const MaybeAdam step(adam);
    Unlocked unlocked;
    engine_->update(colour_gradient.data(), step.get());
  }

  // ---- training
  uint32_t train_step(const std::vector<double>& camera, const SettingsTuple& settings, uint64_t photo,
                      float ssim_weight, const AdamTuple& adam) {
    const card::View view = view_of(camera);
    const Settings drawing = settings_of(settings);
    const MaybeAdam step(adam);
    drawn_ = size_t(view.width) * view.height;
    Unlocked unlocked;
    return engine_->train_step(view, drawing, {photo}, ssim_weight, step.get());
  }
  // A step with lazy Adam's account: what rows owe is on the card before it, and moves on after it. Without effect
  // once a loss was not a number; the account is then that of the step before.
  uint32_t learn(const std::vector<double>& camera, const SettingsTuple& settings, uint64_t photo, Photo planes,
                 double ssim_weight, const std::vector<double>& rates, bool learns) {
    const card::View view = view_of(camera);
    const Settings drawing = settings_of(settings);
    require(planes.size() == 3 * size_t(view.width) * view.height, "photo and camera differ in size");
    const Rates now = rates_of(rates);
    card::Adam step = {};
    if (learns) step = card::adam_of(adam.steps + 1, now, adam.constants);
    Unlocked unlocked;
    const uint32_t number =
        engine_->train_step(view, drawing, {photo, planes.data()}, float(ssim_weight), learns ? &step : nullptr);
    before_[number % kRemembered] = {adam.steps, adam.begun, adam.rates, {}};
    std::copy_n(adam.drifts, 2 * kPendingAges, before_[number % kRemembered].drifts);
    if (learns) adam.advance(now);
    collect(false);
    if (learns) owe();
    if (learns && !stopped_ && adam.steps % adam.settle_interval == 0) engine_->settle(true);
    return number;
  }
  void set_account(int steps, const std::vector<double>& rates, Doubles<2> drifts) {
    HoldsAccount::set_account(steps, rates, drifts);
    owe();
  }
  uint32_t stopped() const { return stopped_; }
  bool whole() { return engine_->whole(); }

  // [(step, l1, ssim, visible, pairs, number of the step that stopped all, or 0)]
  nb::list reports(bool all) {
    {
      Unlocked unlocked;
      collect(all);
    }
    nb::list result;
    for (const card::Report& r : std::exchange(reports_, {}))
      result.append(nb::make_tuple(r.step, r.l1, r.ssim, r.visible, r.pairs, r.stopped));
    return result;
  }
  void forgive() { engine_->forgive(), stopped_ = 0; }

  // ---- all rows
  void settle() {  // with the account of the last step that counts
    Unlocked unlocked;
    collect(true);
    engine_->settle();
  }
  void explore(const std::vector<uint32_t>& keys, float noise, float opacity_weight, float scale_weight,
               float opacity_distance, float scale_distance, float second_correction) {
    require(keys.size() == card::kRandomKeys, "five keys are needed");
    Exploration e = {{}, noise, opacity_weight, scale_weight, opacity_distance, scale_distance, second_correction};
    std::copy(keys.begin(), keys.end(), e.keys);
    Unlocked unlocked;
    engine_->explore(e);
  }
  uint32_t refresh_filter(const std::vector<std::vector<double>>& cameras) {
    std::vector<card::View> views;
    for (const auto& camera : cameras) views.push_back(view_of(camera));
    Unlocked unlocked;
    return engine_->refresh_filter(views);
  }
  void reset_opacities() {
    Unlocked unlocked;
    engine_->reset_opacities();
  }
  nb::tuple summary() {
    card::ModelSummary s;
    {
      Unlocked unlocked;
      s = engine_->summary();
    }
    return nb::make_tuple(s.mean_opacity, s.finite_rows);
  }
  // -> (cloned, split, pruned, wanted)
  nb::tuple grow(double threshold, bool by_absolute, double lowest_opacity, double small_limit, double size_limit,
                 double shrink, nb::object budget, const std::vector<std::vector<uint32_t>>& child_keys,
                 nb::object cut) {
    require(child_keys.size() == 2 && child_keys[0].size() == card::kRandomKeys &&
                child_keys[1].size() == card::kRandomKeys,
            "two children have five keys each");
    card::GrowthRule rule = {threshold,
                             by_absolute,
                             lowest_opacity,
                             small_limit,
                             size_limit,
                             shrink,
                             budget.is_none() ? card::kNoBudget : nb::cast<uint32_t>(budget),
                             {},
                             cut_of(cut)};
    for (int child = 0; child < 2; child++)
      std::copy(child_keys[child].begin(), child_keys[child].end(), rule.child_keys[child]);
    card::Change change;
    {
      Unlocked unlocked;
      collect(true);  // rows are settled on the way, with the account of the last step that counts
      change = engine_->grow(rule);
    }
    return nb::make_tuple(change.cloned, change.split, change.pruned, change.wanted);
  }

  // -> (copied, 0, faint rows that went, 0)
  nb::tuple relocate(nb::object budget, double lowest_opacity, const std::vector<uint32_t>& keys) {
    require(keys.size() == card::kRandomKeys, "five keys are needed");
    const uint32_t most = budget.is_none() ? engine_->count() : nb::cast<uint32_t>(budget);
    card::Change change;
    {
      Unlocked unlocked;
      change = engine_->relocate(most, lowest_opacity, keys.data());
    }
    return nb::make_tuple(change.cloned, change.split, change.pruned, change.wanted);
  }

  // ---- for tests: the primitives by themselves
  uint32_t scan(Words values, uint32_t shift, uint32_t mask, Words out) {
    return engine_->scan_words(values.data(), uint32_t(values.size()), shift, mask, out.data());
  }
  void scan_wide(Wide values) {
    engine_->scan_wide(reinterpret_cast<card::u64*>(values.data()), uint32_t(values.size()));
  }
  void sort(Wide keys, int bits, Words order) {
    engine_->sort_keys(reinterpret_cast<const card::u64*>(keys.data()), uint32_t(keys.size()), bits, order.data());
  }
  void sort_narrow(Words keys, int bits, Words order) {
    engine_->sort_keys(keys.data(), uint32_t(keys.size()), bits, order.data());
  }

  uint32_t pair_count() { return engine_->pair_count(); }
  uint32_t visible_count() { return engine_->visible_count(); }
  uint32_t count() { return engine_->count(); }

 private:
  void owe() {
    const Pending pending = adam.pending();
    engine_->set_pending(pending.step, adam.rates, pending.by_age ? &pending.by_age->drift : nullptr);
  }
  void collect(bool all) {  // reports that have come; the first bad one puts the account back
    for (const card::Report& report : engine_->reports(all)) {
      reports_.push_back(report);
      if (!report.stopped || stopped_) continue;
      stopped_ = report.stopped;
      const Account& account = before_[stopped_ % kRemembered];
      adam.restore(account.steps, account.begun ? &account.rates : nullptr, account.drifts);
      owe();
    }
  }

  struct Account {
    int steps;
    bool begun;
    Rates rates;
    double drifts[2 * kPendingAges];
  };
  static constexpr uint32_t kRemembered = 8;  // steps; reports come one step late
  std::unique_ptr<card::Engine> engine_;
  std::vector<Account> before_ = std::vector<Account>(kRemembered);
  std::vector<card::Report> reports_;
  uint32_t stopped_ = 0;
  size_t drawn_ = 0;
};
static_assert(sizeof(Owed) == 4 * sizeof(float));

constexpr const char* kTroubles[] = {"no driver", "no card", "too old", "out of memory", "lost", "wrong"};

}  // namespace

void bind_cuda(nb::module_& m) {
  static nb::object error;  // CardError(kind, sentence)
  error = nb::steal(PyErr_NewException("splatmeter._native.CardError", PyExc_RuntimeError, nullptr));
  m.attr("CardError") = error;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const card::CardError& e) {
      PyErr_SetObject(error.ptr(), nb::make_tuple(kTroubles[int(e.kind)], e.what()).ptr());
    }
  });
  m.def("card_memory", &card::MemoryModel::training, nb::arg("rows"), nb::arg("pairs"), nb::arg("pixels"),
        nb::arg("photo_bytes"), "bytes on the card that training takes at most, growth included");
  bind_card(m);
  nb::class_<PyCardModel, PyCard> model(m, "CardModel");
  bind_account(model);
  model.def(nb::init<const PyCard&>())
      .def("upload", &PyCardModel::upload)
      .def("download", &PyCardModel::download)
      .def("download_array", &PyCardModel::download_array)
      .def("learn", &PyCardModel::learn)
      .def_prop_ro("stopped", &PyCardModel::stopped)
      .def_prop_ro("whole", &PyCardModel::whole)
      .def("set_pending", &PyCardModel::set_pending, nb::arg("step"), nb::arg("rates"), nb::arg("by_age").none())
      .def("forward", &PyCardModel::forward)
      .def("loss", &PyCardModel::loss, nb::arg("photo"), nb::arg("ssim_weight"), nb::arg("gradient").none())
      .def("gradients", &PyCardModel::gradients, nb::arg("colour_gradient"), nb::arg("transmittance_gradient").none(),
           nb::arg("geometry"), nb::arg("harmonics"), nb::arg("mean2d"), nb::arg("absolute"), nb::arg("visible"))
      .def("update", &PyCardModel::update)
      .def("train_step", &PyCardModel::train_step)
      .def("reports", &PyCardModel::reports, nb::arg("all") = false)
      .def("forgive", &PyCardModel::forgive)
      .def("settle", &PyCardModel::settle)
      .def("explore", &PyCardModel::explore)
      .def("refresh_filter", &PyCardModel::refresh_filter)
      .def("reset_opacities", &PyCardModel::reset_opacities)
      .def("summary", &PyCardModel::summary)
      .def("grow", &PyCardModel::grow, nb::arg("threshold"), nb::arg("by_absolute"), nb::arg("lowest_opacity"),
           nb::arg("small_limit"), nb::arg("size_limit"), nb::arg("shrink"), nb::arg("budget").none(),
           nb::arg("child_keys"), nb::arg("cut").none())
      .def("relocate", &PyCardModel::relocate, nb::arg("budget").none(), nb::arg("lowest_opacity"), nb::arg("keys"))
      .def("scan", &PyCardModel::scan)
      .def("scan_wide", &PyCardModel::scan_wide)
      .def("sort", &PyCardModel::sort)
      .def("sort", &PyCardModel::sort_narrow)
      .def_prop_ro("pair_count", &PyCardModel::pair_count)
      .def_prop_ro("visible_count", &PyCardModel::visible_count)
      .def_prop_ro("count", &PyCardModel::count);
}
