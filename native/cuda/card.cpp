#include "card.hpp"

#include <algorithm>

namespace splat::card {
namespace {

constexpr int kMajor = 75, kMinor = 76;  // attributes: compute capability
constexpr unsigned kNonBlocking = 1, kNoTiming = 2;
constexpr int kRefusals[] = {200, 209, 218, 221,
                             222, 300, 801};  // of an image: damaged, for other cards, too new, or not to be compiled
constexpr const char* kNames[] = {
#define NAME(name, arguments) #name,
    SPLAT_CARD_KERNELS(NAME) SPLAT_CARD_SORTS(NAME)
#undef NAME
};

}  // namespace

std::vector<const Image*> images_for(const std::vector<Image>& images, int capability) {
  const Image *made_for_it = nullptr, *ptx = nullptr;
  for (const Image& image : images) {
    if (!image.is_ptx && image.capability == capability) made_for_it = &image;
    if (image.is_ptx && image.capability <= capability && (!ptx || image.capability > ptx->capability)) ptx = &image;
  }
  std::vector<const Image*> found;
  for (const Image* image : {made_for_it, ptx})
    if (image) found.push_back(image);
  if (found.empty())
    throw CardError(Trouble::kTooOld, "This card has compute capability " + std::to_string(capability / 10) + "." +
                                          std::to_string(capability % 10) + "; 7.5 (RTX 20) or newer is needed.");
  return found;
}

Card::Card(int device, const std::vector<Image>& images) : driver_(Driver::open()) {
  const Driver& d = *driver_;
  if (device < 0 || device >= d.device_count())
    throw CardError(Trouble::kNoCard, "There is no card cuda:" + std::to_string(device) + "; this machine has " +
                                          std::to_string(d.device_count()) + ".");
  d.check(d.cuDeviceGet(&device_, device), "opening it");
  char text[256] = {};
  d.check(d.cuDeviceGetName(text, sizeof text, device_), "asking for its name");
  name = text;
  capability = 10 * attribute(kMajor) + attribute(kMinor);
  const std::vector<const Image*> candidates = images_for(images, capability);
  d.check(d.cuDevicePrimaryCtxRetain(&context_, device_), "opening a context");
  try {
    use();
    load_one_of(candidates);
    for (int k = 0; k < kKernels; k++) d.check(d.cuModuleGetFunction(&functions_[k], module_, kNames[k]), kNames[k]);
    d.check(d.cuStreamCreate(&stream_, kNonBlocking), "making a stream");
    d.check(d.cuStreamCreate(&copy_stream_, kNonBlocking), "making a stream");
  } catch (...) {
    if (stream_) d.cuStreamDestroy_v2(stream_);
    if (module_) d.cuModuleUnload(module_);
    d.cuDevicePrimaryCtxRelease_v2(device_);
    throw;
  }
}

Card::~Card() {
  const Driver& d = *driver_;
  d.cuCtxSetCurrent(context_);
  d.cuStreamSynchronize(stream_);
  d.cuStreamSynchronize(copy_stream_);
  timed_.clear();
  idle_timing_events_.clear();
  d.cuStreamDestroy_v2(stream_);
  d.cuStreamDestroy_v2(copy_stream_);
  d.cuModuleUnload(module_);
  d.cuDevicePrimaryCtxRelease_v2(device_);
}

// What a driver refuses, because the image is damaged or newer than it, another image may still be good for.
void Card::load_one_of(const std::vector<const Image*>& candidates) {
  std::string refused;
  for (const Image* candidate : candidates) {
    const int code = driver_->cuModuleLoadDataEx(&module_, candidate->bytes.c_str(), 0, nullptr, nullptr);
    if (!code) return void(image = candidate->name());
    module_ = nullptr;
    if (std::find(std::begin(kRefusals), std::end(kRefusals), code) == std::end(kRefusals))
      driver_->check(code, "loading the kernels");
    refused += (refused.empty() ? "" : ", ") + candidate->name() + ": " + driver_->words_for(code);
  }
  throw CardError(Trouble::kTooOld, "The NVIDIA driver does not take our kernels (" + refused +
                                        "); update it to R570 or newer, or train with --device cpu.");
}

void Card::use() { driver_->check(driver_->cuCtxSetCurrent(context_), "choosing it"); }

int Card::attribute(int number) const {
  int value = 0;
  driver_->check(driver_->cuDeviceGetAttribute(&value, number, device_), "asking what it is");
  return value;
}

void Card::launch_bytes(Kernel kernel, Grid grid, unsigned threads, void* arguments) {
  void* parameters[] = {arguments};
  std::unique_lock timing(timing_mutex_, std::defer_lock);
  if (timing_) {
    timing.lock();
    timed_.push_back({kernel, timing_event(), timing_event()});
    record(timed_.back().begin);
  }
  driver_->check(driver_->cuLaunchKernel(functions_[kernel], grid.x, grid.y, grid.z, threads, 1, 1, 0, stream_,
                                         parameters, nullptr),
                 kNames[kernel]);
  if (timing) record(timed_.back().end);
  launches_++;
}
void Card::fill_bytes(Address to, unsigned char byte, size_t bytes) {
  if (bytes) driver_->check(driver_->cuMemsetD8Async(to, byte, bytes, stream_), "filling memory");
}
void Card::to_card_bytes(Address to, const void* from, size_t bytes, Stream stream) {
  if (bytes) driver_->check(driver_->cuMemcpyHtoDAsync_v2(to, from, bytes, stream ? stream : stream_), "copying to it");
}
void Card::to_host_bytes(void* to, Address from, size_t bytes) {
  if (bytes) driver_->check(driver_->cuMemcpyDtoHAsync_v2(to, from, bytes, stream_), "copying from it");
}
void Card::copy_bytes(Address to, Address from, size_t bytes) {
  if (bytes) driver_->check(driver_->cuMemcpyDtoDAsync_v2(to, from, bytes, stream_), "copying on it");
}
void Card::record(Event event, Stream stream) {
  driver_->check(driver_->cuEventRecord(event, stream ? stream : stream_), "noting an event");
}
void Card::wait_for(Event event) { host_waits_++, driver_->check(driver_->cuEventSynchronize(event), "working"); }
void Card::make_sure_of(Event event) {
  if (driver_->cuEventQuery(event)) wait_for(event);
}
void Card::stream_waits_for(Event event, Stream stream) {
  driver_->check(driver_->cuStreamWaitEvent(stream ? stream : stream_, event, 0), "waiting for a copy");
}
void Card::synchronize() { host_waits_++, driver_->check(driver_->cuStreamSynchronize(stream_), "working"); }

OwnedEvent::OwnedEvent(const Driver& driver, bool timing) : driver_(&driver) {
  driver.check(driver.cuEventCreate(&event_, timing ? 0 : kNoTiming), "making an event");
}

OwnedEvent Card::timing_event() {
  if (idle_timing_events_.empty()) return OwnedEvent(*driver_, true);
  OwnedEvent event = std::move(idle_timing_events_.back());
  idle_timing_events_.pop_back();
  return event;
}

std::vector<std::pair<std::string, double>> Card::timings() {
  const std::lock_guard lock(timing_mutex_);
  synchronize();
  double sums[kKernels] = {};
  for (Timed& one : timed_) {
    float milliseconds = 0;
    driver_->check(driver_->cuEventElapsedTime(&milliseconds, one.begin, one.end), "reading the clock");
    sums[one.kernel] += milliseconds;
    idle_timing_events_.push_back(std::move(one.begin));
    idle_timing_events_.push_back(std::move(one.end));
  }
  timed_.clear();
  std::vector<std::pair<std::string, double>> result;
  for (int k = 0; k < kKernels; k++)
    if (sums[k] > 0) result.emplace_back(kNames[k], sums[k]);
  return result;
}

}  // namespace splat::card
