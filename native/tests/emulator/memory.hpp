// The card's memory: starts as 0xff, ends at a guard page, and is out of the host's reach unless the card works.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace splat::standin {

void* allocate(size_t bytes);  // null: none left
bool release(void* address);   // false: not one of ours
size_t bytes_in_use();
size_t most_bytes_in_use();
std::string describe_fault(uintptr_t address);

// While one exists the card works, and memory may be touched.
class Working {
 public:
  Working();
  ~Working();
  Working(const Working&) = delete;
  void operator=(const Working&) = delete;
};

}  // namespace splat::standin
