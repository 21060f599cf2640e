#include "photos.hpp"

#include <algorithm>
#include <cstring>

namespace splat::card {

Photos::Photos(Card& card, Arena& arena) : card_(card), arena_(arena), chunks_(card.driver(), kChunks * kChunk), used_(card.new_event()) {
  for (Event& taken : taken_) taken = card.new_event();
}

bool Photos::has(uint64_t key) {
  const std::lock_guard lock(mutex_);
  return by_key_.count(key) != 0;
}

void Photos::unpin() {
  const std::lock_guard lock(mutex_);
  pinned_ = kNone;
}

bool Photos::forget_one() {
  for (auto photo = photos_.end(); photo != photos_.begin();)
    if ((--photo)->key != pinned_) {
      by_key_.erase(photo->key), bytes_ -= photo->bytes;
      return photos_.erase(photo), true;
    }
  return false;
}

// A place for a photo: new memory while the budget and the card's memory last, then that of the least used one.
std::list<Photos::Photo>::iterator Photos::make_room(uint64_t key, size_t bytes) {
  if (bytes_ + bytes > budget_)
    for (auto photo = photos_.end(); photo != photos_.begin();)
      if ((--photo)->key != pinned_ && photo->bytes == bytes) {  // kept: nothing is allocated once the budget is used up
        by_key_.erase(photo->key);
        photo->key = key, photo->waited = false;
        photos_.splice(photos_.begin(), photos_, photo);
        return photos_.begin();
      }
  while (bytes_ + bytes > budget_ && forget_one()) {
  }
  for (;;) {
    photos_.emplace_front(arena_, key, bytes, card_.new_event());
    try {
      photos_.front().planes.at_least(bytes);
      bytes_ += bytes;
      return photos_.begin();
    } catch (const CardError& error) {
      photos_.pop_front();
      if (error.kind != Trouble::kOutOfMemory || !forget_one()) throw;
    }
  }
}

void Photos::copy(Photo& photo, const u8* planes) {
  card_.record(used_), card_.stream_waits_for(used_, card_.copy_stream());  // steps that read what is overwritten come first
  for (size_t done = 0; done < photo.bytes; done += kChunk) {
    const size_t slot = next_chunk_++ % kChunks, bytes = std::min(kChunk, photo.bytes - done);
    if (next_chunk_ > kChunks) card_.make_sure_of(taken_[slot]);
    std::memcpy(chunks_.data() + slot * kChunk, planes + done, bytes);
    card_.to_card(photo.planes.data() + done, static_cast<const u8*>(chunks_.data() + slot * kChunk), bytes, card_.copy_stream());
    card_.record(taken_[slot], card_.copy_stream());
  }
  card_.record(photo.ready, card_.copy_stream());
}

void Photos::put(uint64_t key, const u8* planes, size_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  if (pinned) pinned_ = key;
  if (by_key_.count(key)) return;
  card_.use();
  const auto photo = make_room(key, bytes);
  by_key_[key] = photo;
  copy(*photo, planes);
}

const u8* Photos::use(uint64_t key, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) throw std::invalid_argument("this photo is not on the card");
  photos_.splice(photos_.begin(), photos_, found->second);
  Photo& photo = *found->second;
  if (photo.bytes != bytes) throw std::invalid_argument("photo and camera differ in size");
  if (!photo.waited) card_.stream_waits_for(photo.ready);
  photo.waited = true, pinned_ = key;
  return photo.planes.data();
}

void Photos::to_host(uint64_t key, u8* planes, size_t bytes) {
  card_.use();
  const u8* there = use(key, bytes);
  const Pin in_use(*this);
  card_.to_host(planes, there, bytes);
  card_.synchronize();
}

void Photos::clear() {
  const std::lock_guard lock(mutex_);
  card_.use();
  photos_.clear(), by_key_.clear(), bytes_ = 0;
}

}  // namespace splat::card
