// A card as Python sees it: what it is, its memory, its clock, and the photos that lie there.
#pragma once
#include <memory>
#include <utility>

#include "card_arguments.hpp"

class PyCard {
 public:
  PyCard(int device, const std::vector<std::tuple<int, bool, nb::bytes>>& images) {
    std::vector<card::Image> list;
    for (const auto& [capability, is_ptx, bytes] : images)
      list.push_back({capability, is_ptx, std::string(bytes.c_str(), bytes.size())});
    Unlocked unlocked;
    opened_ = card::open_card(device, list);
  }

  std::string name() { return card().name; }
  std::string image() { return card().image; }
  int capability() { return card().capability; }
  int driver_version() { return card().driver().version(); }
  std::string driver_path() { return card().driver().path; }
  int attribute(int number) { return card().attribute(number); }
  void synchronize() {
    Unlocked unlocked;
    card().use();
    card().synchronize();
  }

  // ---- memory, of all models on this card
  size_t limit() { return arena().limit(); }
  size_t bytes() { return arena().bytes(); }
  size_t most_bytes() { return arena().most_bytes(); }
  size_t available() { return limit() - bytes() + photo_bytes(); }  // photos give way
  void reset_peak() { arena().reset_peak(); }
  size_t allocations() { return arena().allocations(); }

  // ---- photos
  void put_photo(uint64_t key, Photo planes) {
    Unlocked unlocked;
    photos().put(key, planes.data(), planes.size());
  }
  void get_photo(uint64_t key, nb::ndarray<uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> planes) {
    photos().to_host(key, planes.data(), planes.size());
  }
  void forget_photo(uint64_t key) {
    Unlocked unlocked;
    photos().forget(key);
  }
  bool has_photo(uint64_t key) { return photos().has(key); }
  void set_photo_budget(size_t bytes) { photos().set_budget(bytes); }
  size_t photo_bytes() { return photos().bytes(); }

  // ---- what it did
  size_t launches() { return card().launches(); }
  size_t host_waits() { return card().host_waits(); }
  void set_timing(bool on) { card().set_timing(on); }
  nb::dict timings() {  // milliseconds by kernel since the last call
    std::vector<std::pair<std::string, double>> list;
    {
      Unlocked unlocked;
      card().use();
      list = card().timings();
    }
    nb::dict result;
    for (const auto& [name, milliseconds] : list) result[name.c_str()] = milliseconds;
    return result;
  }

 protected:
  PyCard(const PyCard& other) : opened_(other.opened_) {}  // the same card
  card::Card& card() { return opened_->card; }
  card::Arena& arena() { return opened_->arena; }
  card::Photos& photos() { return opened_->photos; }
  std::shared_ptr<card::OpenedCard> opened_;
};

inline void bind_card(nb::module_& m) {
  nb::class_<PyCard>(m, "Card")
      .def(nb::init<int, const std::vector<std::tuple<int, bool, nb::bytes>>&>())
      .def("attribute", &PyCard::attribute)
      .def("synchronize", &PyCard::synchronize)
      .def("reset_peak", &PyCard::reset_peak)
      .def("put_photo", &PyCard::put_photo)
      .def("get_photo", &PyCard::get_photo)
      .def("forget_photo", &PyCard::forget_photo)
      .def("has_photo", &PyCard::has_photo)
      .def("set_photo_budget", &PyCard::set_photo_budget)
      .def("set_timing", &PyCard::set_timing)
      .def("timings", &PyCard::timings)
      .def_prop_ro("name", &PyCard::name)
      .def_prop_ro("image", &PyCard::image)
      .def_prop_ro("capability", &PyCard::capability)
      .def_prop_ro("driver_version", &PyCard::driver_version)
      .def_prop_ro("driver_path", &PyCard::driver_path)
      .def_prop_ro("limit", &PyCard::limit)
      .def_prop_ro("bytes", &PyCard::bytes)
      .def_prop_ro("most_bytes", &PyCard::most_bytes)
      .def_prop_ro("available", &PyCard::available)
      .def_prop_ro("allocations", &PyCard::allocations)
      .def_prop_ro("photo_bytes", &PyCard::photo_bytes)
      .def_prop_ro("launches", &PyCard::launches)
      .def_prop_ro("host_waits", &PyCard::host_waits);
}
