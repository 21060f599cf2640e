#include "driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace splat::card {
namespace {

constexpr int kOldestDriver = 12080;  // our PTX is that of CUDA 12.8: drivers from R570 on take it

constexpr int kNoDevice = 100;
constexpr int kFatal[] = {46,  700, 702, 709, 710, 714,
                          715, 716, 717, 718, 719, 999};  // errors after which nothing works any more

void* library_of(std::string& path) {
  if (const char* named = std::getenv("SPLATMETER_LIBCUDA"); named && *named) {
    path = named;
    return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* candidate : {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"})
    if (void* library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL)) {
      path = candidate;
      return library;
    }
  path = "libcuda.so.1";
  return nullptr;
}

bool ends_everything(int code) {
  for (int fatal : kFatal)
    if (code == fatal) return true;
  return false;
}

}  // namespace

std::shared_ptr<const Driver> Driver::open() {
  static std::mutex mutex;
  static std::map<void*, std::shared_ptr<const Driver>> opened;
  const std::lock_guard lock(mutex);
  std::string path;
  void* library = library_of(path);
  if (!library)
    throw CardError(Trouble::kNoDriver,
                    "No NVIDIA driver was found (" + path + "); install it, or train with --device cpu.");
  if (auto known = opened.find(library); known != opened.end()) return known->second;
  auto driver = std::make_shared<Driver>();
  driver->library_ = library;
  driver->path = path;
#define FIND(name, ...)                                                           \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library, #name)); \
  if (!driver->name)                                                              \
    throw CardError(Trouble::kTooOld, "The NVIDIA driver (" + path + ") has no " #name "; update it to R570 or newer.");
  SPLAT_DRIVER_FUNCTIONS(FIND)
#undef FIND
  const int code = driver->cuInit(0);
  if (code == kNoDevice) throw CardError(Trouble::kNoCard, "The NVIDIA driver sees no card; train with --device cpu.");
  driver->check(code, "starting the driver");
  if (driver->version() < kOldestDriver)
    throw CardError(Trouble::kTooOld, "The NVIDIA driver is for CUDA " + std::to_string(driver->version() / 1000) +
                                          "." + std::to_string(driver->version() / 10 % 100) +
                                          "; update it to R570 (CUDA 12.8) or newer.");
  return opened[library] = driver;
}

std::string Driver::words_for(int code) const {
  const char* text = nullptr;
  cuGetErrorString(code, &text);
  return std::string(text ? text : "unknown error") + " (" + std::to_string(code) + ")";
}

void Driver::check(int code, const char* doing) const {
  if (!code) return;
  const std::string what = std::string("The card failed while ") + doing + ": " + words_for(code) + ".";
  throw CardError(code == kCodeOutOfMemory ? Trouble::kOutOfMemory
                  : ends_everything(code)  ? Trouble::kLost
                                           : Trouble::kWrong,
                  what);
}

int Driver::version() const {
  int version = 0;
  check(cuDriverGetVersion(&version), "asking for the driver's version");
  return version;
}

int Driver::device_count() const {
  int count = 0;
  check(cuDeviceGetCount(&count), "counting cards");
  return count;
}

}  // namespace splat::card
