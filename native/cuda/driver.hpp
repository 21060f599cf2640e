// NVIDIA's driver, found when it is first needed: no toolkit, no cuda.h, nothing to link. The functions are declared
// here as the driver API documents them; a result other than 0 is an error.
#pragma once
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace splat::card {

using Address = unsigned long long;  // on the card
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;

constexpr int kCodeOutOfMemory = 2;  // of a driver function

enum class Trouble { kNoDriver, kNoCard, kTooOld, kOutOfMemory, kLost, kWrong };

// What went wrong with the card; `kind` decides what the caller can do about it.
class CardError : public std::runtime_error {
 public:
  CardError(Trouble kind, const std::string& what) : std::runtime_error(what), kind(kind) {}
  Trouble kind;
};

#define SPLAT_DRIVER_FUNCTIONS(X)                                                                           \
  X(cuInit, unsigned flags)                                                                                 \
  X(cuDriverGetVersion, int* version)                                                                       \
  X(cuGetErrorString, int code, const char** text)                                                          \
  X(cuDeviceGetCount, int* count)                                                                           \
  X(cuDeviceGet, int* device, int number)                                                                   \
  X(cuDeviceGetName, char* name, int bytes, int device)                                                     \
  X(cuDeviceTotalMem_v2, size_t* bytes, int device)                                                         \
  X(cuDeviceGetAttribute, int* value, int attribute, int device)                                            \
  X(cuDevicePrimaryCtxRetain, Context* context, int device)                                                 \
  X(cuDevicePrimaryCtxRelease_v2, int device)                                                               \
  X(cuCtxSetCurrent, Context context)                                                                       \
  X(cuCtxSynchronize, )                                                                                     \
  X(cuMemGetInfo_v2, size_t* free, size_t* total)                                                           \
  X(cuMemAlloc_v2, Address* address, size_t bytes)                                                          \
  X(cuMemFree_v2, Address address)                                                                          \
  X(cuMemAllocHost_v2, void** memory, size_t bytes)                                                         \
  X(cuMemFreeHost, void* memory)                                                                            \
  X(cuMemcpyHtoDAsync_v2, Address to, const void* from, size_t bytes, Stream stream)                        \
  X(cuMemcpyDtoHAsync_v2, void* to, Address from, size_t bytes, Stream stream)                              \
  X(cuMemcpyDtoDAsync_v2, Address to, Address from, size_t bytes, Stream stream)                            \
  X(cuMemsetD8Async, Address to, unsigned char value, size_t bytes, Stream stream)                          \
  X(cuStreamCreate, Stream* stream, unsigned flags)                                                         \
  X(cuStreamDestroy_v2, Stream stream)                                                                      \
  X(cuStreamSynchronize, Stream stream)                                                                     \
  X(cuStreamWaitEvent, Stream stream, Event event, unsigned flags)                                          \
  X(cuEventCreate, Event* event, unsigned flags)                                                            \
  X(cuEventDestroy_v2, Event event)                                                                         \
  X(cuEventRecord, Event event, Stream stream)                                                              \
  X(cuEventSynchronize, Event event)                                                                        \
  X(cuEventQuery, Event event)                                                                              \
  X(cuEventElapsedTime, float* milliseconds, Event from, Event to)                                          \
  X(cuModuleLoadDataEx, Module* module, const void* image, unsigned count, int* options, void** values)     \
  X(cuModuleUnload, Module module)                                                                          \
  X(cuModuleGetFunction, Function* function, Module module, const char* name)                               \
  X(cuLaunchKernel, Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
    unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra)

class Driver {
 public:
  // The library that SPLATMETER_LIBCUDA names, else the system's, else the one that WSL2 has. Initialised once a
  // library.
  static std::shared_ptr<const Driver> open();

#define DECLARE(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  SPLAT_DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE

  void check(int code, const char* doing) const;  // throws CardError
  std::string words_for(int code) const;          // the driver's, and the number
  std::string path;                               // of the library
  int version() const;                            // 12080: CUDA 12.8
  int device_count() const;

 private:
  void* library_ = nullptr;
};

}  // namespace splat::card
