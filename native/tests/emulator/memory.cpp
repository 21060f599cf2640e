#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "global.hpp"
#include "options.hpp"

namespace splat::standin {
namespace {

constexpr size_t kPage = 4096, kAlignment = 16;
struct Allocation {
  char* map;
  size_t map_bytes, bytes;
};
std::map<uintptr_t, Allocation> allocations;
size_t in_use = 0, most_in_use = 0;
int working = 0;

void protect_all(int how) {
  for (auto& [address, allocation] : allocations) mprotect(allocation.map, allocation.map_bytes, how);
}

}  // namespace

void* allocate(size_t bytes) {
  if (options.allocations_left == 0 || in_use + bytes + options.foreign > options.memory) return nullptr;
  if (options.allocations_left > 0) options.allocations_left--;
  const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment,
               pages = (padded + kPage - 1) / kPage * kPage;
  void* map = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  std::memset(map, 0xff, pages);
  mprotect(static_cast<char*>(map) + pages, kPage, PROT_NONE);
  if (!working) mprotect(map, pages, PROT_NONE);
  char* address = static_cast<char*>(map) + pages - padded;  // its end is the guard page
  allocations[uintptr_t(address)] = {static_cast<char*>(map), pages, bytes};
  emulator::add_region(address, bytes);
  in_use += bytes;
  most_in_use = std::max(most_in_use, in_use);
  return address;
}

bool release(void* address) {
  auto found = allocations.find(uintptr_t(address));
  if (found == allocations.end()) return false;
  in_use -= found->second.bytes;
  munmap(found->second.map, found->second.map_bytes + kPage);
  emulator::remove_region(address);
  allocations.erase(found);
  return true;
}

size_t bytes_in_use() { return in_use; }
size_t most_bytes_in_use() { return most_in_use; }

std::string describe_fault(uintptr_t address) {
  for (auto& [begin, allocation] : allocations)
    if (address >= uintptr_t(allocation.map) && address < uintptr_t(allocation.map) + allocation.map_bytes + kPage)
      return ", " + std::to_string(long(address - begin) - long(allocation.bytes)) +
             " bytes from the end of an allocation of " + std::to_string(allocation.bytes);
  return "";
}

Working::Working() {
  if (!working++) protect_all(PROT_READ | PROT_WRITE);
}
Working::~Working() {
  if (!--working) protect_all(PROT_NONE);
}

}  // namespace splat::standin
