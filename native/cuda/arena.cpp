#include "arena.hpp"

#include <algorithm>

namespace splat::card {
namespace {

std::string gigabytes(size_t bytes) {
  const size_t hundredths = (bytes + 5'000'000) / 10'000'000;
  return std::to_string(hundredths / 100) + "." + (hundredths % 100 < 10 ? "0" : "") + std::to_string(hundredths % 100) + " GB";
}

}  // namespace

Arena::Arena(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {
  size_t free = 0, total = 0;
  driver_->check(driver_->cuMemGetInfo_v2(&free, &total), "asking for free memory");
  limit_ = size_t(kShareOfMemory * double(free));
}

void Arena::require_room(const char* name, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  check_room(name, bytes);
}

void Arena::check_room(const char* name, size_t bytes) const {
  if (bytes_ + bytes > limit_)
    throw CardError(Trouble::kOutOfMemory, std::string("The card has too little memory for ") + name + ": " + gigabytes(bytes_ + bytes) + " are needed and " + gigabytes(limit_) + " may be used.");
}

Address Arena::allocate(const char* name, size_t bytes) {
  const std::lock_guard lock(mutex_);
  check_room(name, bytes);
  Address address = 0;
  driver_->check(driver_->cuMemAlloc_v2(&address, bytes), "reserving memory on the card");
  bytes_ += bytes, most_bytes_ = std::max(most_bytes_, bytes_), allocations_++;
  return address;
}

void Arena::release(Address address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  driver_->cuMemFree_v2(address);  // a card that is gone has freed it already
  bytes_ -= bytes;
}

}  // namespace splat::card
