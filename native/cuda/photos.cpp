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

// A place for a photo: new memory while the budget lasts, then that of the least used one.
std::list<Photos::Photo>::iterator Photos::make_room(uint64_t key, size_t bytes) {
  while (!photos_.empty() && bytes_ + bytes > budget_) {
    Photo& last = photos_.back();
    by_key_.erase(last.key);
    if (last.bytes == bytes) {  // kept: nothing is allocated once the budget is used up
      last.key = key, last.waited = false;
      photos_.splice(photos_.begin(), photos_, std::prev(photos_.end()));
      return photos_.begin();
    }
    bytes_ -= last.bytes;
    photos_.pop_back();
  }
  photos_.emplace_front(arena_, key, bytes, card_.new_event());
  try {
    photos_.front().planes.at_least(bytes);
  } catch (...) {
    photos_.pop_front();
    throw;
  }
  bytes_ += bytes;
  return photos_.begin();
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

void Photos::put(uint64_t key, const u8* planes, size_t bytes) {
  const std::lock_guard lock(mutex_);
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
  photo.waited = true;
  return photo.planes.data();
}

void Photos::to_host(uint64_t key, u8* planes, size_t bytes) {
  card_.use();
  const u8* there = use(key, bytes);
  card_.to_host(planes, there, bytes);
  card_.synchronize();
}

void Photos::clear() {
  const std::lock_guard lock(mutex_);
  card_.use();
  photos_.clear(), by_key_.clear(), bytes_ = 0;
}

}  // namespace splat::card
