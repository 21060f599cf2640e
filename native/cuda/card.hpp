// One card, with our kernels loaded: launching, copying, waiting.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "arena.hpp"
#include "kernels/list.hpp"

namespace splat::card {

// Kernels as the compiler left them: a cubin is for one architecture, PTX for that one and all later ones.
struct Image {
  int capability;  // 75: sm_75 or compute_75
  bool is_ptx;
  std::string bytes;
  std::string name() const { return (is_ptx ? "PTX compute_" : "cubin sm_") + std::to_string(capability); }
};
// What a card can run, the best first: a cubin made for it, then the newest PTX that it knows. Throws CardError,
// kTooOld.
std::vector<const Image*> images_for(const std::vector<Image>& images, int capability);

// A mark in a stream; gone with its owner, even while the card still works towards it.
class OwnedEvent {
 public:
  explicit OwnedEvent(const Driver& driver, bool timing = false);
  ~OwnedEvent() {
    if (event_) driver_->cuEventDestroy_v2(event_);
  }
  OwnedEvent(OwnedEvent&& other) noexcept : driver_(other.driver_), event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    return std::swap(driver_, other.driver_), std::swap(event_, other.event_), *this;
  }
  operator Event() const { return event_; }

 private:
  const Driver* driver_;
  Event event_ = nullptr;
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};
inline unsigned blocks_of(size_t count, size_t each) { return unsigned(count ? (count + each - 1) / each : 1); }

class Card {
 public:
  Card(int device, const std::vector<Image>& images);
  ~Card();
  Card(const Card&) = delete;
  void operator=(const Card&) = delete;

  // Kernels by name: card.launch(kProject, grid, threads, ProjectArguments{...}).
  enum Kernel {
#define NUMBER(name, arguments) k_##name,
    SPLAT_CARD_KERNELS(NUMBER) SPLAT_CARD_SORTS(NUMBER)
#undef NUMBER
        kKernels
  };
  template <class Arguments>
  void launch(Kernel kernel, Grid grid, unsigned threads, const Arguments& arguments) {
    launch_bytes(kernel, grid, threads, const_cast<Arguments*>(&arguments));
  }
  template <class T>
  void fill(T* to, size_t count, unsigned char byte) {
    fill_bytes(Address(to), byte, count * sizeof(T));
  }
  template <class T>
  void to_card(T* to, const T* from, size_t count, Stream stream = nullptr) {
    to_card_bytes(Address(to), from, count * sizeof(T), stream);
  }
  template <class T>
  void to_host(T* to, const T* from, size_t count) {
    to_host_bytes(to, Address(from), count * sizeof(T));
  }
  template <class T>
  void copy(T* to, const T* from, size_t count) {
    copy_bytes(Address(to), Address(from), count * sizeof(T));
  }
  void record(Event event, Stream stream = nullptr);
  void wait_for(Event event);                                   // the host waits
  void make_sure_of(Event event);                               // waits only if it must
  void stream_waits_for(Event event, Stream stream = nullptr);  // the compute stream does, or another one
  void synchronize();

  // Time by kernel, for profiles: two events around each launch from here on, whichever model it is for.
  void set_timing(bool on) { timing_ = on; }
  std::vector<std::pair<std::string, double>> timings();  // milliseconds since the last call; waits

  Context context() const { return context_; }
  Stream copy_stream() const { return copy_stream_; }
  const Driver& driver() const { return *driver_; }
  std::shared_ptr<const Driver> shared_driver() const { return driver_; }
  size_t launches() const { return launches_; }
  size_t host_waits() const { return host_waits_; }
  void use();  // before anything else in a thread
  int attribute(int number) const;

  std::string name, image;  // image: the one that was loaded
  int capability = 0;

 private:
  void load_one_of(const std::vector<const Image*>& candidates);
  void launch_bytes(Kernel kernel, Grid grid, unsigned threads, void* arguments);
  void fill_bytes(Address to, unsigned char byte, size_t bytes);
  void to_card_bytes(Address to, const void* from, size_t bytes, Stream stream);
  void to_host_bytes(void* to, Address from, size_t bytes);
  void copy_bytes(Address to, Address from, size_t bytes);

  std::shared_ptr<const Driver> driver_;
  int device_ = 0;
  Context context_ = nullptr;
  Module module_ = nullptr;
  Stream stream_ = nullptr, copy_stream_ = nullptr;
  Function functions_[kKernels] = {};
  struct Timed {
    Kernel kernel;
    OwnedEvent begin, end;
  };
  OwnedEvent timing_event();
  std::mutex timing_mutex_;  // models may live in different threads
  std::vector<OwnedEvent> idle_timing_events_;
  std::vector<Timed> timed_;
  std::atomic<bool> timing_ = false;
  std::atomic<size_t> launches_ = 0, host_waits_ = 0;  // photos come from another thread
};

}  // namespace splat::card
