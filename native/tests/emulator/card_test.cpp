// The host's side of the card's engine over the stand-in driver, without Python and small enough for the sanitizers:
//     SPLATMETER_LIBCUDA=libcuda.so.1 card_test kernels.ptx
// Says what failed and exits 1, or prints how much it checked.
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "training.hpp"

namespace splat::testing {
namespace {

void late_queues_change_nothing() {
  standin().option("eager", 1);  // every call waits for the card: no order can be wrong
  const Floats expected = Training(60).all();
  standin().option("eager", 0);
  for (int seed = 1; seed <= 4; seed++) {
    standin().option("seed", seed);
    standin().option("preempt", seed == 4);
    standin().option("wander", seed % 2);
    const auto on = open();
    if (seed > 2)
      on->photos.set_budget(1);  // each photo takes the place of the one before, which a step may still read
    check(same_bits(expected, Training(60, 40, 23, on).all()),
          "work that runs late, or now and then, gives the same bits");
  }
  standin().option("preempt", 0);
  standin().option("wander", 0);
  check(standin().count("bytes") == 0, "nothing is left on the card");
}

void awkward_sizes() {
  for (int count : {0, 1, 33})
    for (auto [width, height] : {std::pair(1, 1), std::pair(16, 17), std::pair(70, 5)}) {
      Training training(count, width, height);
      check(!training.all().empty(), "awkward sizes work");
    }
}

// Whichever allocation fails: a plain error, nothing left behind, and the next training is as good as any.
void out_of_memory_anywhere() {
  const Floats expected = Training(40).all();
  int refused = 0;
  for (long allowed = 0;; allowed++) {
    standin().option("allocations", allowed);
    bool finished = false;
    try {
      finished = same_bits(Training(40).all(), expected);
    } catch (const card::CardError& problem) {
      refused++;
      check(problem.kind == card::Trouble::kOutOfMemory, "an allocation that fails is called out of memory");
    }
    standin().option("allocations", -1);
    check(standin().count("bytes") == 0, "an allocation that fails leaves nothing behind");
    if (finished) break;
    if (allowed > 2000) return check(false, "it is never enough");
  }
  check(refused > 40, "many allocations were made to fail");
  check(same_bits(Training(40).all(), expected), "after all those failures training is as before");
}

void a_card_that_disappears() {
  standin().option("launches", -1);
  const auto before = standin().count("launches");
  const Floats expected = Training(40).all();
  const long launches = long(standin().count("launches") - before);
  for (long at = 0; at < launches; at += 1 + launches / 40) {
    standin().option("launches", at);
    bool lost = false;
    try {
      Training(40).all();
    } catch (const card::CardError& problem) { lost = problem.kind == card::Trouble::kLost; }
    check(lost, "a card that disappears is called lost");
    standin().option("launches", -1);
    standin().forget_error();
    check(standin().count("bytes") == 0, "a card that disappears leaves nothing behind");
  }
  check(same_bits(Training(40).all(), expected), "when it is back, training is as before");
}

void nothing_is_allocated_in_the_steady_state() {
  Training training(60);
  for (int k = 0; k < 12; k++) training.step();
  const size_t allocations = training.engine().arena().allocations(), waits = training.engine().card().host_waits();
  for (int k = 0; k < 12; k++) training.step();  // the same views as before
  check(training.engine().arena().allocations() == allocations, "nothing is allocated in the steady state");
  check(training.engine().card().host_waits() == waits + 12, "a step waits once");
  check(training.engine().arena().bytes() == standin().count("bytes"), "the arena knows what it holds");
}

void the_limit_is_kept() {
  standin().option("foreign", (16l << 30) - (4l << 20));  // 4 MB are free
  try {
    Training training(4000);
    training.step();
    check(false, "more than 90 % of what was free is refused");
  } catch (const card::CardError& problem) {
    check(problem.kind == card::Trouble::kOutOfMemory, "more than 90 % of what was free is refused");
    check(std::string(problem.what()).find("may be used") != std::string::npos, "and it is the arena that says so");
  }
  standin().option("foreign", 0);
}

// Two trainings on one full card, each in its thread, while two others bring photos and forget them, and launches are
// timed.
void everything_at_once() {
  const Floats expected = Training(60).all();
  const auto card = open();
  std::vector<uint8_t> photo(size_t(3) * 40 * 23, 100);
  card->photos.set_budget(20 * photo.size());
  card->card.set_timing(true);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (uint64_t first : {uint64_t(100), uint64_t(1000)})
    others.emplace_back([&, first] {
      for (uint64_t key = first; !stop; key = first + (key + 1) % 50) {
        card->photos.put(key, photo.data(), photo.size());
        if (key % 3 == 0) card->photos.forget(key - 1);
        std::this_thread::yield();
      }
    });
  Floats found[2];
  std::vector<std::thread> trainings;
  for (int k = 0; k < 2; k++)
    trainings.emplace_back([&, k] {
      for (int turn = 0; turn < 3; turn++) {
        found[k] = Training(60, 40, 23, card).all();
        card->card.use();
        card->card.timings();
      }
    });
  for (std::thread& one : trainings) one.join();
  stop = true;
  for (std::thread& one : others) one.join();
  check(same_bits(found[0], expected) && same_bits(found[1], expected),
        "two trainings and photos from other threads do not disturb each other");
  check(card->photos.bytes() <= 20 * photo.size(), "photos keep to their budget");
}

// On a card without room for a photo more, growth happens all the same and gives the same bits.
void photos_give_way() {
  constexpr size_t kAll = 16l << 30;
  size_t needed = 0;
  Floats expected;
  {
    Training frugal(60);
    expected = frugal.all();
    needed = frugal.engine().arena().most_bytes();
  }
  standin().option("foreign", long(kAll - size_t(double(needed + 64) / card::kShareOfMemory)));
  const auto card = open();
  standin().option("foreign", 0);
  std::vector<uint8_t> photo(size_t(3) * 40 * 23, 100);
  Training full(60, 40, 23, card);
  for (uint64_t key = 100; key < 400; key++) card->photos.put(key, photo.data(), photo.size());
  check(card->arena.bytes() + photo.size() > card->arena.limit(), "photos fill the card");
  check(same_bits(full.all(), expected), "photos give way to Gaussians");
  check(card->arena.most_bytes() <= card->arena.limit(), "the limit is never passed");
  for (uint64_t key = 1000; key < 1400; key++) card->photos.put(key, photo.data(), photo.size());
  const size_t photos = card->photos.bytes(), allocations = card->arena.allocations();
  for (uint64_t key = 2000; key < 2020; key++) card->photos.put(key, photo.data(), photo.size());
  check(card->photos.bytes() == photos && card->arena.allocations() == allocations,
        "on a full card photos take each other's places");
}

void models_share_a_card() {
  const auto card = open();
  const Floats expected = Training(60).all();
  card->photos.set_budget(3 * 3 * 40 * 23);
  size_t held = 0;
  const auto events = standin().count("events");
  for (int turn = 0; turn < 3; turn++) {
    check(same_bits(Training(60, 40, 23, card).all(), expected), "a model on a card that others used");
    if (!turn) held = card->arena.bytes();
    check(card->arena.bytes() == held && standin().count("bytes") == held, "what a model held comes back");
    card->photos.forget(0);
    card->photos.forget(1);
    card->photos.forget(2);
  }
  check(standin().count("events") <= events + 3, "events go with what they were for");  // of three photos
  card->photos.set_budget(SIZE_MAX);
  const size_t photos = card->photos.bytes();
  std::vector<uint8_t> photo(5000);
  for (uint64_t key = 10; key < 20; key++) {
    card->photos.put(key, photo.data(), photo.size());
    card->photos.forget(key);
  }
  check(card->photos.bytes() == photos + photo.size(), "a photo that was forgotten leaves its place to the next");
}

// Nobody can be copied: all rows stay, in a new order.
void relocation_of_faint_rows_only() {
  Model model(50, false);
  std::vector<float> before, after;
  for (int i = 0; i < 50; i++) {
    float* row = &model.geometry[size_t(i) * kGeometryWidth];
    row[kOpacityLogit] = -9;
    before.push_back(row[kMean]);
  }
  card::Engine engine(open());
  engine.upload(
      50,
      {model.geometry.data(), model.harmonics.data(), model.moments.data(), model.first.data(), model.second.data()},
      true);
  const card::u32 keys[card::kRandomKeys] = {1, 2, 3, 4, 5};
  const card::Change change = engine.relocate(80, 0.005, keys);
  Floats geometry(size_t(50) * kGeometryWidth);
  engine.download(0, engine.count(), {geometry.data(), nullptr, nullptr, nullptr, nullptr});
  for (int i = 0; i < 50; i++) after.push_back(geometry[size_t(i) * kGeometryWidth + kMean]);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  check(engine.count() == 50 && !change.cloned && !change.pruned && before == after,
        "where all rows are faint all stay");
}

// Photos of several chunks, more of them than there are chunks on their way, in memory that is reused.
void photos_arrive_as_they_were_sent() {
  card::Engine engine(open());
  const size_t bytes = (size_t(9) << 20) + 11;
  engine.photos().set_budget(2 * bytes);
  std::vector<uint8_t> sent(bytes), found(bytes);
  for (uint64_t key = 0; key < 4; key++) {
    for (size_t k = 0; k < bytes; k++) sent[k] = uint8_t((k >> 20) * 31 + k * (key + 3));
    engine.photos().put(key, sent.data(), bytes);
    if (key < 2) continue;
    engine.photos().to_host(key, found.data(), bytes);
    check(found == sent, "photos arrive as they were sent");
  }
  check(!engine.photos().has(0) && engine.photos().has(2), "the oldest photos made room");
}

// Gaussians that grow until each covers the image: what they draw does not depend on how many pairs there were before.
void more_pairs_find_room() {
  constexpr int kSide = 200;
  Model small(60, false), large(60, false);
  for (int i = 0; i < 60; i++)
    for (int k = 0; k < 3; k++) large.geometry[size_t(i) * kGeometryWidth + kLogScale + k] += 4;
  auto drawn = [&](card::Engine& engine, Model& model) {
    Floats colour(size_t(3) * kSide * kSide), transmittance(size_t(kSide) * kSide);
    engine.upload(
        60,
        {model.geometry.data(), model.harmonics.data(), model.moments.data(), model.first.data(), model.second.data()},
        true);
    engine.forward(view_of(kSide, kSide, 0), {});
    engine.image_to_host(colour.data(), transmittance.data());
    return colour;
  };
  card::Engine one(open()), two(open());
  drawn(one, small);
  const card::u32 few = one.pair_count();
  check(same_bits(drawn(one, large), drawn(two, large)) && one.pair_count() > 3 * few + 3000,
        "more pairs than ever before find room");
}

int run(bool quick) {
  ends_at_once = quick;
  late_queues_change_nothing();
  more_pairs_find_room();
  photos_arrive_as_they_were_sent();
  photos_give_way();
  models_share_a_card();
  relocation_of_faint_rows_only();
  nothing_is_allocated_in_the_steady_state();
  if (quick) {
    std::printf("%d checks, %d failures\n", checks, failures);
    return failures ? 1 : 0;
  }
  awkward_sizes();
  the_limit_is_kept();
  everything_at_once();
  out_of_memory_anywhere();
  a_card_that_disappears();
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures ? 1 : 0;
}

}  // namespace
}  // namespace splat::testing

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: SPLATMETER_LIBCUDA=... card_test kernels.ptx [quick]\n");
    return 2;
  }
  std::stringstream text;
  text << std::ifstream(arguments[1]).rdbuf();
  splat::testing::images = {{80, true, text.str()}};
  try {
    return splat::testing::run(count == 3);
  } catch (const std::exception& problem) {
    std::printf("FAILED: %s\n", problem.what());
    return 1;
  }
}
