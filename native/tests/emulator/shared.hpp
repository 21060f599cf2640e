// Shared memory that is checked: bounds, reading what nobody wrote, races. What a kernel declares with SHARED.
#pragma once
#include <deque>

#include "cell.hpp"

namespace splat::emulator {

constexpr size_t kMostSharedBytes = 48 << 10;  // without asking the driver for more

struct SharedArray {
  const void* tag;
  Place place;
  size_t count;
  std::vector<unsigned char> bytes;
  std::vector<Cell> cells;
  std::vector<bool> written;
};
SharedArray& shared_array(const void* tag, Place place, size_t count, size_t size);
void forget_shared_memory();
inline void judge(const SharedArray& array, const char* problem) {
  if (problem) fail(std::string(problem) + ", shared array of " + array.place.text());
}

template <class T>
struct Element {
  SharedArray& array;
  size_t index;

  operator T() const {
    maybe_yield();
    if (!array.written[index]) judge(array, "reads shared memory that nobody wrote");
    judge(array, array.cells[index].read());
    T value;
    std::memcpy(static_cast<void*>(&value), array.bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  void operator=(const T& value) const {
    maybe_yield();
    judge(array, array.cells[index].write());
    put(value);
  }
  void operator=(const Element& other) const { *this = T(other); }
  void operator+=(const T& value) const { *this = T(*this) + value; }
  void add(const T& value) const {  // atomically
    if (!array.written[index]) judge(array, "adds to shared memory that nobody wrote");
    judge(array, array.cells[index].write(true));
    T old;
    std::memcpy(&old, array.bytes.data() + index * sizeof(T), sizeof(T));
    put(old + value);
  }

 private:
  void put(const T& value) const {
    array.written[index] = true;
    std::memcpy(array.bytes.data() + index * sizeof(T), static_cast<const void*>(&value), sizeof(T));
  }
};

template <class T>
struct Shared {
  SharedArray& array;
  Shared(const void* tag, Place place, size_t count) : array(shared_array(tag, place, count, sizeof(T))) {}
  Element<T> operator[](size_t index) const {
    if (index >= array.count)
      judge(array, ("index " + std::to_string(index) + " of " + std::to_string(array.count)).c_str());
    return {array, index};
  }
};

}  // namespace splat::emulator
