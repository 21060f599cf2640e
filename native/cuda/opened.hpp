// A card that was opened: its kernels, its memory, and the photos that lie there. Models share it, so that one limit
// and one
// count of memory hold for all of them, and the last to go closes it.
#pragma once
#include "photos.hpp"

namespace splat::card {

struct OpenedCard {
  OpenedCard(int device, const std::vector<Image>& images)
      : card(device, images), arena(card.shared_driver()), photos(card, arena) {}
  ~OpenedCard() { card.driver().cuCtxSetCurrent(card.context()); }  // in whatever thread
  Card card;
  Arena arena;
  Photos photos;
};
inline std::shared_ptr<OpenedCard> open_card(int device, const std::vector<Image>& images) {
  return std::make_shared<OpenedCard>(device, images);
}

}  // namespace splat::card
