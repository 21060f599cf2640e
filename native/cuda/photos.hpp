// Photos on the card as 8-bit planes, in memory that nobody else needs and within a budget; those that were not used
// for
// longest go first. They are copied by their own stream through a little host memory that the card can reach, so that
// no step waits for them.
#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include "card.hpp"

namespace splat::card {

struct HostPhoto {
  uint64_t key;
  const u8* planes = nullptr;  // null: it must be on the card
};

class Photos {
 public:
  Photos(Card& card, Arena& arena);
  void set_budget(size_t bytes);  // at least one photo always fits
  bool has(uint64_t key);
  // Begins to copy; the caller's memory may go at once. From any thread. Without room nothing happens: whoever needs
  // the
  // photo brings it again.
  void put(uint64_t key, const u8* planes, size_t bytes);
  void forget(uint64_t key);  // nobody will ask for it again; its memory is the next one's
  size_t bytes();
  void to_host(uint64_t key, u8* planes, size_t bytes);  // for tests; waits

 private:
  static constexpr size_t kChunk = 4 << 20, kChunks = 2;
  static constexpr uint64_t kNone = ~uint64_t{0};
  struct Photo {
    Photo(Card& card, Arena& arena, size_t bytes) : bytes(bytes), planes(arena, "photos"), ready(card.driver()) {}
    uint64_t key = kNone;  // none: its memory is free for another one of its size
    size_t bytes;
    CardBuffer<u8> planes;
    OwnedEvent ready;
    bool waited = false;  // the compute stream has
    int users = 0;        // steps that are just being launched
  };
  using Place = std::list<Photo>::iterator;
  bool give_way();               // to whoever needs the card's memory more
  bool give_back_one();          // the least used one that is not in use; false: there is none
  bool add_place(size_t bytes);  // new memory, at the front; false: there is none
  Place place_of_size(size_t bytes, bool only_free);
  Place make_room(size_t bytes);                                    // the end: there is none
  Place find_or_put(uint64_t key, const u8* planes, size_t bytes);  // the end: no room, or it is nowhere
  void copy(Photo& photo, const u8* planes);

  Card& card_;
  Arena& arena_;
  std::mutex mutex_;
  std::list<Photo> photos_;  // latest first
  std::unordered_map<uint64_t, std::list<Photo>::iterator> by_key_;
  PinnedArray<u8> chunks_;
  OwnedEvent taken_[kChunks], used_;
  size_t budget_ = SIZE_MAX, bytes_ = 0, next_chunk_ = 0;

 public:
  // A photo that stays until this is gone: until all that reads it has been launched. Brought now where it is missing;
  // the compute stream waits until it is there.
  class InUse {
   public:
    InUse(Photos& photos, HostPhoto photo, size_t bytes);
    ~InUse();
    InUse(const InUse&) = delete;
    void operator=(const InUse&) = delete;
    const u8* planes() const { return place_->planes.data(); }

   private:
    Photos& photos_;
    Place place_;
  };
};

}  // namespace splat::card
