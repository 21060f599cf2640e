#include "photos.hpp"

#include <algorithm>
#include <cstring>

namespace splat::card {

Photos::Photos(Card& card, Arena& arena)
    : card_(card),
      arena_(arena),
      chunks_(card.driver(), kChunks * kChunk),
      taken_{OwnedEvent(card.driver()), OwnedEvent(card.driver())},
      used_(card.driver()) {
  arena.set_giver([this] { return give_way(); });
}

void Photos::set_budget(size_t bytes) {
  const std::lock_guard lock(mutex_);
  budget_ = bytes;
}

size_t Photos::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

bool Photos::has(uint64_t key) {
  const std::lock_guard lock(mutex_);
  return by_key_.count(key) != 0;
}

void Photos::forget(uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  found->second->key = kNone;
  photos_.splice(photos_.end(), photos_, found->second);
  by_key_.erase(found);
}

// ---- room --------------------------------------------------------------------------------------------------------
bool Photos::give_way() {
  const std::lock_guard lock(mutex_);
  return give_back_one();
}

bool Photos::give_back_one() {
  for (auto photo = photos_.end(); photo != photos_.begin();)
    if (--photo; !photo->users) {
      by_key_.erase(photo->key);
      bytes_ -= photo->bytes;
      photos_.erase(photo);
      return true;  // the driver frees memory after all that was launched before
    }
  return false;
}

Photos::Place Photos::place_of_size(size_t bytes, bool only_free) {
  for (auto photo = photos_.end(); photo != photos_.begin();)
    if (--photo; photo->bytes == bytes && !photo->users && (photo->key == kNone || !only_free)) return photo;
  return photos_.end();
}

bool Photos::add_place(size_t bytes) {
  photos_.emplace_front(card_, arena_, bytes);
  if (photos_.front().planes.if_free(bytes)) {
    bytes_ += bytes;
    return true;
  }
  photos_.pop_front();
  return false;
}

// Memory of its size that is free, else new one while the budget and the card's memory last, else that of the least
// used
// photo: nothing is allocated once there is no more.
Photos::Place Photos::make_room(size_t bytes) {
  if (const Place free = place_of_size(bytes, true); free != photos_.end()) return free;
  if (bytes_ + bytes <= budget_ && add_place(bytes)) return photos_.begin();
  if (const Place taken = place_of_size(bytes, false); taken != photos_.end()) return taken;
  while (give_back_one())
    if ((bytes_ + bytes <= budget_ || photos_.empty()) && add_place(bytes)) return photos_.begin();
  return photos_.empty() && add_place(bytes) ? photos_.begin() : photos_.end();  // one photo may be beyond any budget
}

void Photos::copy(Photo& photo, const u8* planes) {
  // steps that read what is overwritten come first
  card_.record(used_);
  card_.stream_waits_for(used_, card_.copy_stream());
  for (size_t done = 0; done < photo.bytes; done += kChunk) {
    const size_t slot = next_chunk_++ % kChunks, bytes = std::min(kChunk, photo.bytes - done);
    if (next_chunk_ > kChunks) card_.make_sure_of(taken_[slot]);
    std::memcpy(chunks_.data() + slot * kChunk, planes + done, bytes);
    card_.to_card(photo.planes.data() + done, static_cast<const u8*>(chunks_.data() + slot * kChunk), bytes,
                  card_.copy_stream());
    card_.record(taken_[slot], card_.copy_stream());
  }
  card_.record(photo.ready, card_.copy_stream());
}

Photos::Place Photos::find_or_put(uint64_t key, const u8* planes, size_t bytes) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
  const Place photo = planes ? make_room(bytes) : photos_.end();
  if (photo == photos_.end()) return photo;
  by_key_.erase(photo->key);
  by_key_[photo->key = key] = photo;
  photo->waited = false;
  photos_.splice(photos_.begin(), photos_, photo);
  copy(*photo, planes);
  return photo;
}

void Photos::put(uint64_t key, const u8* planes, size_t bytes) {
  const std::lock_guard lock(mutex_);
  card_.use();
  find_or_put(key, planes, bytes);
}

Photos::InUse::InUse(Photos& photos, HostPhoto photo, size_t bytes) : photos_(photos) {
  const std::lock_guard lock(photos.mutex_);
  photos.card_.use();
  place_ = photos.find_or_put(photo.key, photo.planes, bytes);
  if (place_ == photos.photos_.end()) {
    if (!photo.planes) throw std::invalid_argument("this photo is not on the card");
    throw photos.arena_.refusal("a photo", photos.arena_.bytes() + bytes);
  }
  if (place_->bytes != bytes) throw std::invalid_argument("photo and camera differ in size");
  photos.photos_.splice(photos.photos_.begin(), photos.photos_, place_);
  if (!place_->waited) photos.card_.stream_waits_for(place_->ready);
  place_->waited = true;
  place_->users++;
}

Photos::InUse::~InUse() {
  const std::lock_guard lock(photos_.mutex_);
  place_->users--;
}

void Photos::to_host(uint64_t key, u8* planes, size_t bytes) {
  const InUse photo(*this, {key}, bytes);
  card_.to_host(planes, photo.planes(), bytes);
  card_.synchronize();
}

}  // namespace splat::card
