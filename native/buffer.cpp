#include "buffer.hpp"

#include <cstdlib>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace splat {

void* allocated(size_t bytes) {
  constexpr size_t cache_line = 64, huge = size_t{2} << 20;
  const size_t align = bytes >= 4 * huge ? huge : cache_line;  // large pages save address translation
  bytes = (bytes + align - 1) / align * align;
  void* memory = std::aligned_alloc(align, bytes);
  if (!memory) throw std::bad_alloc();
#if defined(__linux__)
  if (align == huge) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void released(void* memory) { std::free(memory); }

}  // namespace splat
