// Grow-only scratch memory: after the first iterations nothing is allocated any more.
#pragma once
#include <cstddef>

namespace splat {

void* allocated(size_t bytes);  // aligned to a cache line at least; throws std::bad_alloc
void released(void* memory);

template <class T>
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { released(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  __attribute__((always_inline)) inline T* at_least(size_t count) {
    if (count > capacity_) {
      release();
      size_t wanted = count + count / 8 + 64;
      data_ = static_cast<T*>(allocated(wanted * sizeof(T)));
      capacity_ = wanted;
    }
    return data_;
  }
  T* data() const { return data_; }
  size_t bytes() const { return capacity_ * sizeof(T); }
  void release() { released(data_), data_ = nullptr, capacity_ = 0; }

 private:
  T* data_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace splat
