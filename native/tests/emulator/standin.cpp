// A stand-in for libcuda.so.1 made of the emulator: just the driver functions that native/cuda/driver.hpp asks for.
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "global.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "streams.hpp"

using namespace splat;
using namespace splat::standin;

namespace splat::standin {

Options options;

bool set_option(const std::string& name, const std::string& value) {
  const long long number = std::atoll(value.c_str());
  if (name == "seed") {
    options.seed = uint64_t(number);
    emulator::machine.random = 88172645463325252ull ^ (uint64_t(number) * 0x9E3779B97F4A7C15ull);
  } else if (name == "preempt")
    options.preempt = emulator::machine.preempt = number;
  else if (name == "checks") {
    if (number && !options.checks_memory) emulator::mark_everything_written();
    options.checks_memory = emulator::machine.checks_memory = number;
  } else if (name == "memory")
    options.memory = size_t(number);
  else if (name == "foreign")
    options.foreign = size_t(number);
  else if (name == "allocations")
    options.allocations_left = long(number);
  else if (name == "launches")
    options.launches_left = long(number);
  else if (name == "capability")
    options.capability = int(number);
  else if (name == "devices")
    options.devices = int(number);
  else if (name == "driver")
    options.driver = int(number);
  else if (name == "eager")
    options.eager = number;
  else if (name == "wander")
    options.wander = number;
  else
    return false;
  return true;
}

void read_environment() {
  for (const char* name : {"seed", "preempt", "checks", "memory", "foreign", "allocations", "launches", "capability",
                           "devices", "driver", "eager", "wander"}) {
    std::string variable = std::string("STANDIN_") + name;
    for (char& c : variable) c = char(toupper(c));
    if (const char* value = getenv(variable.c_str())) set_option(name, value);
  }
}

}  // namespace splat::standin

namespace {

enum Code {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kUnknown = 999
};

std::string last_problem;
bool initialized = false;
uint64_t launches = 0, waits = 0, events = 0;
size_t host_bytes = 0;

int problem(int code, const std::string& what) {
  last_problem = what;
  std::fprintf(stderr, "stand-in: %s\n", what.c_str());
  return code;
}

// ---- launching ---------------------------------------------------------------------------------------------------
sigjmp_buf out_of_bounds;
void on_fault(int, siginfo_t* info, void*) {  // the guard page, or memory of the host
  last_problem = "illegal address" + describe_fault(uintptr_t(info->si_addr)) + " (kernel " + emulator::machine.kernel +
                 ", block " + std::to_string(emulator::machine.block.x) + ", thread " +
                 std::to_string(emulator::machine.current) + ")";
  siglongjmp(out_of_bounds, 1);
}

int run_kernel(const Kernel& kernel, emulator::Three grid, emulator::Three block, const std::vector<char>& arguments) {
  if (options.launches_left == 0) return problem(kUnknown, "the card has fallen off the bus");
  if (options.launches_left > 0) options.launches_left--;
  static char alternative[1 << 16];
  stack_t stack = {}, stack_before;
  stack.ss_sp = alternative;
  stack.ss_size = sizeof alternative;
  sigaltstack(&stack, &stack_before);
  struct sigaction act = {}, before;
  act.sa_sigaction = on_fault;
  act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &act, &before);
  int result = kOk;
  if (sigsetjmp(out_of_bounds, 1) == 0) {
    try {
      emulator::launch(kernel.name, grid, block, [&] { kernel.run(arguments.data()); });
    } catch (const emulator::Failure& failure) {
      result = problem(failure.what.find("illegal address") == 0 ? kIllegalAddress : kLaunchFailed, failure.what);
    }
  } else {
    result = problem(kIllegalAddress, last_problem);
  }
  sigaction(SIGSEGV, &before, nullptr);
  sigaltstack(&stack_before, nullptr);
  return result;
}

// ---- modules -----------------------------------------------------------------------------------------------------
struct Module {
  std::map<std::string, std::vector<size_t>> entries;
};

int copy(void* to, const void* from, size_t bytes, bool to_card, bool from_card) {
  if ((to_card && !emulator::inside_region(to, bytes)) || (from_card && !emulator::inside_region(from, bytes)))
    return problem(kIllegalAddress, "a copy beyond an allocation");
  std::memmove(to, from, bytes);
  if (to_card && from_card)
    emulator::copy_marks(to, from, bytes);
  else if (to_card)
    emulator::mark_written(to, bytes);
  return kOk;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default")))
#define ENTER                                   \
  const std::lock_guard entered(one_at_a_time); \
  if (!has_context) return kInvalidContext
using Address = unsigned long long;
static std::recursive_mutex one_at_a_time;     // a driver may be called from any thread
static thread_local bool has_context = false;  // but each of them must have chosen a context

API int cuInit(unsigned) {
  if (!initialized) read_environment();
  initialized = true;
  return options.devices ? kOk : kNoDevice;
}
API int cuDriverGetVersion(int* version) { return *version = options.driver, kOk; }
API int cuDeviceGetCount(int* count) { return *count = options.devices, kOk; }
API int cuDeviceGet(int* device, int number) {
  return *device = number, number >= 0 && number < options.devices ? kOk : kInvalidDevice;
}
API int cuDeviceGetName(char* name, int bytes, int) {
  return std::snprintf(name, size_t(bytes), "stand-in (emulated, no card)"), kOk;
}
API int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = options.memory, kOk; }
API int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:
      *value = options.capability / 10;
      break;
    case 76:
      *value = options.capability % 10;
      break;
    case 16:
      *value = 36;
      break;  // multiprocessors
    case 13:
      *value = 2500000;
      break;  // kHz
    case 36:
      *value = 14000000;
      break;  // memory, kHz
    case 37:
      *value = 128;
      break;  // bits of its bus
    default:
      return kInvalid;
  }
  return kOk;
}
API int cuDevicePrimaryCtxRetain(void** context, int) {
  return *context = &options, initialized ? kOk : kNotInitialized;
}
API int cuDevicePrimaryCtxRelease_v2(int) { return kOk; }
API int cuCtxSetCurrent(void* context) { return has_context = context != nullptr, kOk; }
API int cuCtxSynchronize() {
  ENTER;
  return waits++, run_everything(), sticky_error();
}

API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER;
  return *free = options.memory - std::min(options.memory, bytes_in_use() + options.foreign), *total = options.memory,
         sticky_error();
}
API int cuMemAlloc_v2(Address* address, size_t bytes) {
  ENTER;
  if (sticky_error() || !bytes) return sticky_error() ? sticky_error() : kInvalid;
  void* memory = allocate(bytes);
  return *address = Address(memory), memory ? kOk : kOutOfMemory;
}
API int cuMemFree_v2(Address address) {
  ENTER;
  run_everything();
  return release(reinterpret_cast<void*>(address)) ? sticky_error() : kInvalid;
}
API int cuMemAllocHost_v2(void** memory, size_t bytes) {
  ENTER;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*memory) {
    std::memset(*memory, 0xff, bytes);
    host_bytes += bytes;
  }
  return *memory ? kOk : kOutOfMemory;
}
API int cuMemFreeHost(void* memory) {
  ENTER;
  return run_everything(), std::free(memory), kOk;
}

API int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  ENTER;
  return enqueue(static_cast<Stream*>(stream),
                 [=] { return copy(reinterpret_cast<void*>(to), from, bytes, true, false); });
}
API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  ENTER;
  return enqueue(static_cast<Stream*>(stream),
                 [=] { return copy(to, reinterpret_cast<const void*>(from), bytes, false, true); });
}
API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  ENTER;
  return enqueue(static_cast<Stream*>(stream), [=] {
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true);
  });
}
API int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* stream) {
  ENTER;
  return enqueue(static_cast<Stream*>(stream), [=] {
    std::vector<char> filled(bytes, char(value));
    return copy(reinterpret_cast<void*>(to), filled.data(), bytes, true, false);
  });
}

API int cuStreamCreate(void** stream, unsigned) {
  ENTER;
  return *stream = new_stream(), kOk;
}
API int cuStreamDestroy_v2(void* stream) {
  ENTER;
  return delete_stream(static_cast<Stream*>(stream)), kOk;
}
API int cuStreamSynchronize(void* stream) {
  ENTER;
  return waits++, run_stream(static_cast<Stream*>(stream)), sticky_error();
}
API int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ENTER;
  return enqueue_wait(static_cast<Stream*>(stream), static_cast<Event*>(event)), sticky_error();
}
API int cuEventCreate(void** event, unsigned) {
  ENTER;
  return *event = new Event, events++, kOk;
}
API int cuEventDestroy_v2(void* event) {
  ENTER;
  return run_everything(), delete static_cast<Event*>(event), events--, kOk;
}
API int cuEventRecord(void* event, void* stream) {
  ENTER;
  return enqueue_record(static_cast<Stream*>(stream), static_cast<Event*>(event)), sticky_error();
}
API int cuEventSynchronize(void* event) {
  ENTER;
  return waits++, run_until_done(static_cast<Event*>(event)), sticky_error();
}
API int cuEventQuery(void* event) {
  ENTER;
  return static_cast<Event*>(event)->done < static_cast<Event*>(event)->recorded ? 600 : sticky_error();
}
API int cuEventElapsedTime(float* milliseconds, void*, void*) {
  ENTER;
  return *milliseconds = 1.f, sticky_error();
}

API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  ENTER;
  auto loaded = std::make_unique<Module>();
  loaded->entries = entries_of(static_cast<const char*>(image));
  if (loaded->entries.empty()) return kInvalidImage;
  return *module = loaded.release(), kOk;
}
API int cuModuleUnload(void* module) {
  ENTER;
  return delete static_cast<Module*>(module), kOk;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER;
  const auto& entries = static_cast<Module*>(module)->entries;
  const auto entry = entries.find(name);
  if (entry == entries.end()) return kNotFound;
  for (const Kernel& kernel : kernels())
    if (!std::strcmp(kernel.name, name)) {
      if (entry->second != std::vector<size_t>{kernel.argument_bytes})
        return problem(kInvalidImage,
                       std::string("arguments of ") + name + " differ between the PTX and the emulated source");
      return *function = const_cast<Kernel*>(&kernel), kOk;
    }
  return kNotFound;
}
API int cuFuncGetAttribute(int* value, int, void*) {
  ENTER;
  return *value = 0, kOk;
}
API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void* stream, void** parameters, void**) {
  ENTER;
  const Kernel& kernel = *static_cast<const Kernel*>(function);
  if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || bx * by * bz == 0 || int(bx * by * bz) > kernel.most_threads ||
      shared)
    return problem(kInvalid, std::string("a launch of ") + kernel.name + " that no card would take");
  const char* given = static_cast<const char*>(parameters[0]);
  auto arguments = std::make_shared<std::vector<char>>(
      given, given + kernel.argument_bytes);  // copied at the call, as the driver does
  launches++;
  return enqueue(static_cast<Stream*>(stream), [=, &kernel] {
    return run_kernel(kernel, {gx, gy, gz}, {bx, by, bz}, *arguments);
  });
}
API int cuGetErrorString(int code, const char** text) {
  static std::string kept;
  kept = code == kOutOfMemory ? "out of memory" : last_problem.empty() ? "error " + std::to_string(code) : last_problem;
  return *text = kept.c_str(), kOk;
}

// ---- for tests ---------------------------------------------------------------------------------------------------
API int standin_option(const char* name, const char* value) { return set_option(name, value) ? kOk : kInvalid; }
API unsigned long long standin_count(const char* what) {
  const std::string name = what;
  if (name == "launches") return launches;
  if (name == "waits") return waits;
  if (name == "events") return events;
  if (name == "bytes") return bytes_in_use();
  if (name == "most bytes") return most_bytes_in_use();
  if (name == "switches") return emulator::machine.switches;
  return ~0ull;
}
API void standin_forget_error() { set_sticky_error(kOk), last_problem.clear(); }
