#include "arena.hpp"

#include <algorithm>

namespace splat::card {
namespace {

std::string gigabytes(size_t bytes) {
  const size_t hundredths = (bytes + 5'000'000) / 10'000'000;
  return std::to_string(hundredths / 100) + "." + (hundredths % 100 < 10 ? "0" : "") +
         std::to_string(hundredths % 100) + " GB";
}

}  // namespace

Arena::Arena(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {
  size_t free = 0, total = 0;
  driver_->check(driver_->cuMemGetInfo_v2(&free, &total), "asking for free memory");
  limit_ = size_t(kShareOfMemory * double(free));
}

CardError Arena::refusal(const char* name, size_t bytes) const {
  return {Trouble::kOutOfMemory, std::string("The card has too little memory for ") + name + ": " + gigabytes(bytes) +
                                     " are needed and " + gigabytes(limit_) + " may be used."};
}

void Arena::require_room(const char* name, size_t bytes) {
  std::unique_lock lock(mutex_);
  while (!has_room(bytes))
    if (!others_give_way(lock, bytes) && !has_room(bytes)) throw refusal(name, bytes_ + bytes);
}

// One of them, once; false: nobody has anything left. Meanwhile photos take none of what is wanted.
bool Arena::others_give_way(std::unique_lock<std::mutex>& lock, size_t bytes) {
  wanted_ += bytes;
  lock.unlock();
  const bool given = giver_();
  lock.lock();
  return wanted_ -= bytes, given;
}

Address Arena::try_to_allocate(size_t bytes) {
  Address address = 0;
  const int code = driver_->cuMemAlloc_v2(&address, bytes);
  if (code == kCodeOutOfMemory) return 0;
  driver_->check(code, "reserving memory on the card");
  bytes_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_);
  allocations_++;
  return address;
}

// Others may have taken what we could still use by our own count: then the driver refuses, and giving way helps too.
Address Arena::allocate(const char* name, size_t bytes) {
  std::unique_lock lock(mutex_);
  for (bool given = true;;) {
    const bool room = has_room(bytes);
    if (const Address address = room ? try_to_allocate(bytes) : 0) return address;
    if (!given) {
      if (room) driver_->check(kCodeOutOfMemory, "reserving memory on the card");
      throw refusal(name, bytes_ + bytes);
    }
    given = others_give_way(lock, bytes);
  }
}

Address Arena::allocate_if_free(size_t bytes) {
  const std::lock_guard lock(mutex_);
  return has_room(bytes + wanted_) ? try_to_allocate(bytes) : 0;
}

void Arena::release(Address address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  driver_->cuMemFree_v2(address);  // a card that is gone has freed it already
  bytes_ -= bytes;
}

}  // namespace splat::card
