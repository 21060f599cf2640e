// Global memory that is checked: every access must lie in one allocation, be aligned, read only what was written, and
// race with nobody, also not with other blocks of the same launch: they have no order.
#pragma once
#include "cell.hpp"

namespace splat::emulator {

void add_region(const void* begin, size_t bytes);  // an allocation
void remove_region(const void* begin);
bool inside_region(const void* begin, size_t bytes);  // for copies; says nothing about kernels
void mark_written(const void* begin, size_t bytes);
void mark_everything_written();  // after a time without checks
void copy_marks(const void* to, const void* from, size_t bytes);

enum class Access : uint8_t { kFetch, kLoad, kStore, kCount };
void check_access(const void* address, size_t bytes, size_t alignment, Access how);

template <class T>
T read_global(const T* address, Access how) {
  maybe_yield();
  if (machine.checks_memory) check_access(address, sizeof(T), alignof(T), how);
  return *address;
}
template <class T>
void write_global(T* address, const T& value) {
  maybe_yield();
  if (machine.checks_memory) check_access(address, sizeof(T), alignof(T), Access::kStore);
  *address = value;
}

}  // namespace splat::emulator
