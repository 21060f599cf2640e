// The card's memory as we hold it: buffers with names that grow and never shrink, so that nothing is allocated in the
// steady state, and a limit below what is free. Windows would spill what does not fit into system memory, silently and
// a hundred times slower: better to refuse. Before that, whoever can do without some of it is asked to give way.
#pragma once
#include <functional>
#include <mutex>
#include <utility>

#include "driver.hpp"

namespace splat::card {

constexpr double kShareOfMemory = 0.9;  // of what was free at the start

class Arena {
 public:
  explicit Arena(std::shared_ptr<const Driver> driver);
  Address allocate(const char* name, size_t bytes);  // throws CardError, kOutOfMemory, once nobody gives way any more
  Address allocate_if_free(size_t bytes);            // nobody has to give way; 0: there is no room
  void release(Address address, size_t bytes);
  void require_room(const char* name, size_t bytes);        // makes room, or throws as allocate would
  CardError refusal(const char* name, size_t bytes) const;  // of so many in all
  // Asked again and again for memory to give back; false: there is none left. It is called without a lock.
  void set_giver(std::function<bool()> giver) { giver_ = std::move(giver); }
  size_t bytes() const { return value_of(bytes_); }
  size_t most_bytes() const { return value_of(most_bytes_); }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    most_bytes_ = bytes_;
  }
  size_t limit() const { return limit_; }
  size_t allocations() const { return value_of(allocations_); }  // made so far
  const Driver& driver() const { return *driver_; }

 private:
  Address try_to_allocate(size_t bytes);
  bool others_give_way(std::unique_lock<std::mutex>& lock, size_t bytes);
  bool has_room(size_t bytes) const { return bytes_ + bytes <= limit_; }
  size_t value_of(const size_t& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  std::shared_ptr<const Driver> driver_;
  mutable std::mutex mutex_;  // photos come from another thread
  size_t bytes_ = 0, most_bytes_ = 0, limit_ = 0, allocations_ = 0;
  size_t wanted_ = 0;  // by those for whom others give way just now
  std::function<bool()> giver_ = [] { return false; };
};

// An array on the card. Its pointer is an address there: the host must not follow it.
template <class T>
class CardBuffer {
 public:
  CardBuffer(Arena& arena, const char* name) : arena_(&arena), name_(name) {}
  ~CardBuffer() { release(); }
  CardBuffer(const CardBuffer&) = delete;
  void operator=(const CardBuffer&) = delete;

  // At least so many elements. When it must grow, what was in it is lost.
  T* at_least(size_t count) {
    if (count <= capacity_ && address_) return data();
    release();
    const size_t wanted = count ? count : 1;
    address_ = arena_->allocate(name_, wanted * sizeof(T));
    capacity_ = wanted;
    return data();
  }
  bool if_free(size_t count) {  // of an empty one
    address_ = arena_->allocate_if_free(count * sizeof(T));
    capacity_ = address_ ? count : 0;
    return address_ != 0;
  }
  void release() {
    if (address_) arena_->release(address_, capacity_ * sizeof(T));
    address_ = 0;
    capacity_ = 0;
  }
  void swap(CardBuffer& other) { std::swap(address_, other.address_), std::swap(capacity_, other.capacity_); }
  T* data() const { return reinterpret_cast<T*>(address_); }
  Address address() const { return address_; }
  size_t capacity() const { return capacity_; }
  size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  Arena* arena_;
  const char* name_;
  Address address_ = 0;
  size_t capacity_ = 0;
};

// Host memory that the card can reach by itself. WSL2 has little of it: kilobytes here, megabytes for photos.
template <class T>
class PinnedArray {
 public:
  PinnedArray(const Driver& driver, size_t count) : driver_(driver) {
    void* memory = nullptr;
    driver.check(driver.cuMemAllocHost_v2(&memory, count * sizeof(T)), "reserving host memory for copies");
    data_ = static_cast<T*>(memory);
  }
  ~PinnedArray() { driver_.cuMemFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  void operator=(const PinnedArray&) = delete;
  T& operator[](size_t i) { return data_[i]; }
  T* data() { return data_; }

 private:
  const Driver& driver_;
  T* data_;
};

}  // namespace splat::card
