// How the stand-in behaves; read from the environment by cuInit, or set by tests through standin_option.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace splat::standin {

struct Options {
  uint64_t seed = 0;                                  // of the schedule: STANDIN_SEED
  bool preempt = false;                               // STANDIN_PREEMPT=1
  bool checks_memory = true;                          // STANDIN_CHECKS=0: faster, for large scenes
  size_t memory = size_t(16) << 30;                   // STANDIN_MEMORY: bytes of the card
  size_t foreign = 0;                                 // STANDIN_FOREIGN: bytes that others hold
  long allocations_left = -1;                         // STANDIN_ALLOCATIONS: so many, then none; -1: no limit
  long launches_left = -1;                            // STANDIN_LAUNCHES: then the card is gone; -1: it stays
  int capability = 120, devices = 1, driver = 13000;  // STANDIN_CAPABILITY, STANDIN_DEVICES, STANDIN_DRIVER
  bool wander = false;                                // STANDIN_WANDER=1: queues run late or early, at random
  bool eager = false;  // STANDIN_EAGER=1: queues run at once, hiding what tests are there to find
};
extern Options options;
bool set_option(const std::string& name, const std::string& value);  // names without STANDIN_, in small letters
void read_environment();

}  // namespace splat::standin
