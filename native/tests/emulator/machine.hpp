// Blocks, warps, barriers and meetings of CUDA on one CPU thread: one fiber a CUDA thread. It is strict where a card is
// lenient: blocks and threads run in random order between the points where they must meet, and lanes must meet at the
// same line of the source.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace splat::emulator {

struct Three {
  unsigned x, y, z;
};
struct Failure {
  std::string what;
};
struct Place {
  const char* file;
  int line;
  bool operator==(const Place& other) const { return line == other.line && !std::strcmp(file, other.file); }
  std::string text() const;
};

enum class State : uint8_t { kReady, kWarp, kBlock, kGone };
enum class Meeting : uint8_t { kBarrier, kWarpBarrier, kShuffleXor, kShuffle, kShuffleUp, kBallot, kReduce };
struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  State state = State::kGone;
  Meeting meeting = Meeting::kBarrier;
  Place place = {"", 0};
  unsigned meetings = 0;
  uint32_t mask = 0;
};
constexpr int kMostThreads = 1024, kLanes = 32;

// Epochs never repeat: one that is at least `launch_epoch` belongs to this launch, at least `first_epoch` to this
// block.
// Equal epochs mean that no barrier lies between.
struct Machine {
  std::vector<Fiber> fibers;
  int count = 0, current = -1;
  Three thread[kMostThreads], block, block_size, grid_size;
  void* scheduler = nullptr;
  uint64_t exchange[2][kMostThreads];
  uint32_t epoch = 0, first_epoch = 0, launch_epoch = 0, warp_epoch[kMostThreads / kLanes] = {};
  std::function<void()> body;
  std::string kernel, failure;
  bool preempt = false;       // also switch threads at random accesses to memory
  bool checks_memory = true;  // look at each access to global memory
  uint64_t random = 88172645463325252ull, switches = 0;

  uint64_t next_random() { return random ^= random << 13, random ^= random >> 7, random ^= random << 17; }
  int warp() const { return current / kLanes; }
};
extern Machine machine;

[[noreturn]] void fail(const std::string& what);  // from inside a thread
void to_scheduler();
void meet(State how, Meeting meeting, Place place, uint32_t mask);
inline void maybe_yield() {
  if (machine.preempt && (machine.next_random() & 15) == 0) to_scheduler();
}

// All lanes of the mask hand in a value; pick(at, lane) chooses among them. Two turns alternate, so that a fast lane's
// next value does not overwrite what a slow one has not read yet.
template <class T, class Pick>
auto warp_meeting(Meeting meeting, Place place, uint32_t mask, T value, Pick pick) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t* slots = machine.exchange[machine.fibers[size_t(machine.current)].meetings++ & 1];
  std::memcpy(&slots[machine.current], &value, sizeof value);
  meet(State::kWarp, meeting, place, mask);
  const int first = machine.current & ~(kLanes - 1);
  auto at = [&](int lane) {
    T other;
    std::memcpy(&other, &slots[first + lane], sizeof other);
    return other;
  };
  return pick(at, machine.current & (kLanes - 1));
}

void launch(const std::string& name, Three grid, Three block, std::function<void()> body);  // throws Failure

}  // namespace splat::emulator
