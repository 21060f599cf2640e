#include "machine.hpp"

#include <sys/mman.h>

#include "shared.hpp"

// Saves the registers that a called function must keep, swaps stacks, and goes on where the other one stopped.
extern "C" void splat_emulator_switch(void** save, void* load);
#if defined(__x86_64__)
constexpr int kSavedWords = 6, kReturnWord = 6;
__asm__(R"(
.text
.globl splat_emulator_switch
.hidden splat_emulator_switch
.type splat_emulator_switch, @function
splat_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size splat_emulator_switch, .-splat_emulator_switch
)");
#elif defined(__aarch64__)
constexpr int kSavedWords = 20, kReturnWord = 11;  // x19 to x30, then d8 to d15; x30 is where to go on
__asm__(R"(
.text
.globl splat_emulator_switch
.hidden splat_emulator_switch
.type splat_emulator_switch, %function
splat_emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size splat_emulator_switch, .-splat_emulator_switch
)");
#else
#error "the emulator switches stacks on x86-64 and on 64-bit Arm only"
#endif

namespace splat::emulator {

Machine machine;

namespace {

constexpr size_t kStackBytes = 128 << 10;

void run_thread() {
  machine.body();
  machine.fibers[size_t(machine.current)].state = State::kGone;
  for (;;) to_scheduler();
}

void prepare(Fiber& fiber) {
  if (!fiber.stack)
    fiber.stack =
        static_cast<char*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void** top = reinterpret_cast<void**>(fiber.stack + kStackBytes - 64);
#if defined(__x86_64__)
  *--top = nullptr;  // run_thread never returns; the stack is aligned as after a call
  *--top = reinterpret_cast<void*>(run_thread);
  top -= kSavedWords;
  std::memset(top, 0, kSavedWords * sizeof(void*));
#else
  top -= kSavedWords;
  std::memset(top, 0, kSavedWords * sizeof(void*));
  top[kReturnWord] = reinterpret_cast<void*>(run_thread);
#endif
  fiber.stack_pointer = top;
  fiber.state = State::kReady;
  fiber.meetings = 0;
}

void complain(const std::string& what) {
  if (machine.failure.empty())
    machine.failure = what + " (kernel " + machine.kernel + ", block " + std::to_string(machine.block.x) + ")";
}

// Lets warps go on whose lanes have all come. False: none has, or something is wrong.
bool release_warps() {
  bool any = false;
  for (int begin = 0; begin < machine.count; begin += kLanes) {
    Fiber* lane = &machine.fibers[size_t(begin)];
    const int lanes = machine.count - begin < kLanes ? machine.count - begin : kLanes;
    const Fiber* first = nullptr;
    uint32_t waiting = 0, absent = 0;
    for (int l = 0; l < lanes; l++) {
      if (lane[l].state == State::kWarp) {
        waiting |= 1u << l;
        first = first ? first : &lane[l];
      } else
        absent |= 1u << l;
    }
    if (!first) continue;
    if (first->mask & absent) {
      complain("a lane named in the mask never comes to the warp's meeting at " + first->place.text());
      return false;
    }
    for (int l = 0; l < lanes; l++) {
      if (!(waiting >> l & 1)) continue;
      if (!(lane[l].place == first->place) || lane[l].meeting != first->meeting || lane[l].mask != first->mask) {
        complain("lanes of a warp meet at different places: " + lane[l].place.text() + " and " + first->place.text());
        return false;
      }
      lane[l].state = State::kReady;
    }
    if (first->meeting == Meeting::kWarpBarrier) machine.warp_epoch[begin / kLanes]++;
    any = true;
  }
  return any;
}

bool release_block() {
  int waiting = 0, gone = 0;
  const Fiber* first = nullptr;
  for (int i = 0; i < machine.count; i++) {
    const Fiber& fiber = machine.fibers[size_t(i)];
    gone += fiber.state == State::kGone;
    if (fiber.state != State::kBlock) continue;
    if (first && !(first->place == fiber.place)) {
      complain("threads of a block meet at different places: " + first->place.text() + " and " + fiber.place.text());
      return false;
    }
    waiting++;
    first = &fiber;
  }
  if (waiting + gone != machine.count) {
    complain("deadlock: threads wait for each other");
    return false;
  }
  if (gone) {
    complain("__syncthreads at " + first->place.text() + " after some threads have left");
    return false;
  }
  for (int i = 0; i < machine.count; i++) machine.fibers[size_t(i)].state = State::kReady;
  machine.epoch++;
  for (uint32_t& epoch : machine.warp_epoch) epoch++;
  return true;
}

void run_until_all_wait() {
  std::vector<int> ready;
  for (int i = 0; i < machine.count; i++)
    if (machine.fibers[size_t(i)].state == State::kReady) ready.push_back(i);
  while (!ready.empty()) {  // whoever was only interrupted comes again
    const size_t k = machine.next_random() % ready.size();
    machine.current = ready[k];
    Fiber& fiber = machine.fibers[size_t(ready[k])];
    splat_emulator_switch(&machine.scheduler, fiber.stack_pointer);
    if (!machine.failure.empty()) return;
    if (fiber.state != State::kReady) {
      ready[k] = ready.back();
      ready.pop_back();
    }
  }
}

void run_block() {
  for (int i = 0; i < machine.count; i++) prepare(machine.fibers[size_t(i)]);
  forget_shared_memory();
  machine.first_epoch = ++machine.epoch;
  while (machine.failure.empty()) {
    run_until_all_wait();
    bool live = false;
    for (int i = 0; i < machine.count; i++) live |= machine.fibers[size_t(i)].state != State::kGone;
    if (!live || !machine.failure.empty()) return;
    if (!release_warps() && machine.failure.empty()) release_block();
  }
}

}  // namespace

std::string Place::text() const {
  const char* name = std::strrchr(file, '/');
  return std::string(name ? name + 1 : file) + ":" + std::to_string(line);
}

void to_scheduler() {
  machine.switches++;
  splat_emulator_switch(&machine.fibers[size_t(machine.current)].stack_pointer, machine.scheduler);
}

void fail(const std::string& what) {
  complain(what + ", thread " + std::to_string(machine.current));
  machine.fibers[size_t(machine.current)].state = State::kGone;
  for (;;) to_scheduler();
}

void meet(State how, Meeting meeting, Place place, uint32_t mask) {
  Fiber& fiber = machine.fibers[size_t(machine.current)];
  fiber.state = how;
  fiber.meeting = meeting;
  fiber.place = place;
  fiber.mask = mask;
  to_scheduler();
}

void launch(const std::string& name, Three grid, Three block, std::function<void()> body) {
  machine.kernel = name;
  machine.body = std::move(body);
  machine.grid_size = grid;
  machine.block_size = block;
  machine.count = int(block.x * block.y * block.z);
  machine.failure.clear();
  if (machine.fibers.size() < size_t(machine.count)) machine.fibers.resize(size_t(machine.count));
  for (unsigned i = 0; i < unsigned(machine.count); i++)
    machine.thread[i] = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  machine.launch_epoch = machine.epoch + 1;
  std::vector<unsigned> order(size_t(grid.x) * grid.y * grid.z);
  for (size_t k = 0; k < order.size(); k++) order[k] = unsigned(k);
  for (size_t k = order.size(); k > 1; k--) std::swap(order[k - 1], order[machine.next_random() % k]);
  for (unsigned k : order) {
    machine.block = {k % grid.x, k / grid.x % grid.y, k / (grid.x * grid.y)};
    run_block();
    if (!machine.failure.empty()) throw Failure{machine.failure};
  }
}

}  // namespace splat::emulator
