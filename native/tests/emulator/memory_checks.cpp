// The bookkeeping behind shared.hpp and global.hpp.
#include <sys/mman.h>

#include <algorithm>

#include "global.hpp"
#include "shared.hpp"

namespace splat::emulator {
namespace {

std::deque<SharedArray> shared_memory;  // of the block that runs; references stay valid

// Shadows cost memory only where they are touched.
template <class T>
T* lazily_zero(size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

struct Region {
  uintptr_t begin;
  size_t bytes;
  uint8_t* written;  // by byte
  Cell* cells;       // by grain
  size_t grain;      // bytes a cell: one where single bytes are stored, else four; 0: not known yet
};
std::vector<Region> regions;  // by address
size_t last_region = 0;

Region* find(uintptr_t address, size_t bytes) {
  auto holds = [&](const Region& r) { return address >= r.begin && address + bytes <= r.begin + r.bytes; };
  if (last_region < regions.size() && holds(regions[last_region])) return &regions[last_region];
  auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                [](uintptr_t a, const Region& r) { return a < r.begin; });
  if (after == regions.begin()) return nullptr;
  last_region = size_t(after - regions.begin()) - 1;
  return holds(regions[last_region]) ? &regions[last_region] : nullptr;
}

std::string offset_text(uintptr_t address) {
  for (const Region& r : regions)
    if (address >= r.begin && address < r.begin + r.bytes + 4096)
      return std::to_string(long(address - r.begin) - long(r.bytes)) + " bytes from the end of an allocation of " +
             std::to_string(r.bytes);
  return "in no allocation";
}

}  // namespace

SharedArray& shared_array(const void* tag, Place place, size_t count, size_t size) {
  size_t bytes = count * size;
  for (SharedArray& array : shared_memory) {
    if (array.tag == tag) return array;
    bytes += array.bytes.size();
  }
  if (bytes > kMostSharedBytes) fail("more than 48 kB of shared memory");
  shared_memory.push_back({tag, place, count, std::vector<unsigned char>(count * size, 0xff), std::vector<Cell>(count),
                           std::vector<bool>(count)});
  return shared_memory.back();
}

void forget_shared_memory() { shared_memory.clear(); }

void add_region(const void* begin, size_t bytes) {
  const Region region{uintptr_t(begin), bytes, lazily_zero<uint8_t>(bytes), lazily_zero<Cell>(bytes), 0};
  regions.insert(std::upper_bound(regions.begin(), regions.end(), region.begin,
                                  [](uintptr_t a, const Region& r) { return a < r.begin; }),
                 region);
}

void remove_region(const void* begin) {
  for (size_t k = 0; k < regions.size(); k++) {
    if (regions[k].begin != uintptr_t(begin)) continue;
    munmap(regions[k].written, regions[k].bytes);
    munmap(regions[k].cells, regions[k].bytes * sizeof(Cell));
    regions.erase(regions.begin() + long(k));
    return;
  }
}

bool inside_region(const void* begin, size_t bytes) { return find(uintptr_t(begin), bytes) != nullptr; }

void mark_written(const void* begin, size_t bytes) {
  if (Region* r = find(uintptr_t(begin), bytes)) std::memset(r->written + (uintptr_t(begin) - r->begin), 1, bytes);
}

void mark_everything_written() {
  for (Region& r : regions) std::memset(r.written, 1, r.bytes);
}

void copy_marks(const void* to, const void* from, size_t bytes) {
  Region* source = find(uintptr_t(from), bytes);
  const uint8_t* marks = source ? source->written + (uintptr_t(from) - source->begin) : nullptr;
  if (Region* r = find(uintptr_t(to), bytes); r && marks)
    std::memcpy(r->written + (uintptr_t(to) - r->begin), marks, bytes);
}

void check_access(const void* pointer, size_t bytes, size_t alignment, Access how) {
  const uintptr_t address = uintptr_t(pointer);
  Region* r = find(address, bytes);
  if (!r) fail("illegal address, " + offset_text(address));
  if (address % alignment) fail("misaligned address");
  const size_t at = address - r->begin;
  if (how != Access::kStore)
    for (size_t k = at; k < at + bytes; k++)
      if (!r->written[k]) fail("reads global memory that nobody wrote, " + offset_text(address));
  if (!r->grain) r->grain = bytes == 1 ? 1 : 4;
  for (size_t k = at / r->grain; k * r->grain < at + bytes; k++) {
    Cell& cell = r->cells[k];
    const char* problem = how == Access::kFetch  ? cell.fetch()
                          : how == Access::kLoad ? cell.read()
                                                 : cell.write(how == Access::kCount);
    if (problem) fail(std::string(problem) + " in global memory, " + offset_text(address));
  }
  if (how == Access::kStore) std::memset(r->written + at, 1, bytes);
}

}  // namespace splat::emulator
