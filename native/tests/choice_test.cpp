// The self-test and the choice it makes, with passes that are wrong on purpose: AVX-512 itself may not run here.
#include <thread>

#include "../dispatch.hpp"
#include "../self_test.hpp"
#include "testing.hpp"

namespace splat::testing {
namespace {

const Kernels* honest;  // planted passes are plain functions and cannot carry it along

struct Planted {
  const char* what;
  void (*plant)(Kernels&);
};

constexpr Planted kPlanted[] = {
    {"a lost last column",
     [](Kernels& k) {
       k.blend_forward = [](Engine& e, float* color, float* transmittance) {
         honest->blend_forward(e, color, transmittance);
         for (int y = 0; y < e.camera.height; y++) color[(y + 1) * e.camera.width - 1] = 0;
       };
     }},
    {"one broken pixel",
     [](Kernels& k) {
       k.blend_forward = [](Engine& e, float* color, float* transmittance) {
         honest->blend_forward(e, color, transmittance);
         color[7] = std::numeric_limits<float>::quiet_NaN();
       };
     }},
    {"depths in the wrong order",
     [](Kernels& k) {
       k.sort_by_depth = [](Engine& e) {
         honest->sort_by_depth(e);
         uint32_t* order = e.depth_order.data();
         for (int i = 0; i + 1 < e.visible_count; i += 2) std::swap(order[i], order[i + 1]);
       };
     }},
    {"a loss without structure",
     [](Kernels& k) {
       k.loss = [](Engine& e, int w, int h, const float* image, const uint8_t* photo, float, float* gradient,
                   Exposure* exposure) { return honest->loss(e, w, h, image, photo, 0, gradient, exposure); };
     }},
    {"an exposure whose gradient is 5 % off",
     [](Kernels& k) {
       k.loss = [](Engine& e, int w, int h, const float* image, const uint8_t* photo, float ssim, float* gradient,
                   Exposure* exposure) {
         const LossValue value = honest->loss(e, w, h, image, photo, ssim, gradient, exposure);
         if (exposure)
           for (double& entry : exposure->gradient) entry *= 1.05;
         return value;
       };
     }},
    {"a backward pass that is 5 % off",
     [](Kernels& k) {
       k.blend_backward = [](Engine& e, const float* color, const float* transmittance) {
         Floats more(color, color + 3 * size_t(e.camera.width) * e.camera.height);
         for (float& g : more) g *= 1.05f;
         honest->blend_backward(e, more.data(), transmittance);
       };
     }},
    {"a learning rate that is 5 % off",
     [](Kernels& k) {
       k.update = [](Engine& e, const AdamStep* step) {
         AdamStep other = *step;
         other.rate_rest *= 1.05f;
         honest->update(e, &other);
       };
     }},
    {"noise by other random numbers",
     [](Kernels& k) {
       k.explore = [](ThreadPool& pool, Table& table, const Exploration& exploration) {
         Exploration other = exploration;
         other.keys[3]++;
         honest->explore(pool, table, other);
       };
     }},
    {"a step that is never made up for", [](Kernels& k) { k.settle = [](ThreadPool&, Table&) {}; }},
};

void planted_mistakes_are_found_and_not_used() {
  for (const Planted& planted : kPlanted) {
    Kernels wrong = *honest;
    wrong.name = "planted";
    planted.plant(wrong);
    check(!disagreement(wrong, *honest).empty(), planted.what);
    const Level levels[] = {{&wrong, true}, {honest, false}};
    const Choice choice = choose(levels, 2);
    check(choice.kernels == honest, "a level that fails its self-test is not used");
    check(choice.note.rfind("planted is not used: in its self-test ", 0) == 0, "the note names what is not used");
  }
}

void honest_levels_are_used() {
  const Kernels* list[4];
  const int sets = available_kernels(list);
  for (int i = 0; i < sets; i++) {
    check(disagreement(*list[i], *list[sets - 1]).empty(), "instruction sets pass the self-test");
    const Level levels[] = {{list[i], true}, {list[sets - 1], false}};
    const Choice choice = choose(levels, 2);
    check(choice.kernels == list[i] && choice.note.empty(), "a level that passes its self-test is used");
  }
  const Level only = {honest, true};
  check(choose(&only, 1).kernels == honest, "the last level needs no test");
}

void levels_can_be_forced() {
  const Kernels* list[4];
  const int sets = available_kernels(list);
  for (int i = sets - 1; i >= 0; i--)
    check(force_kernels(list[i]->name) && &kernels() == list[i], "an instruction set can be forced");
  const Kernels& before = kernels();
  check(!force_kernels("altivec") && &kernels() == &before, "an unknown instruction set changes nothing");
}

}  // namespace

void test_choice() {
  const Kernels* seen[3] = {};
  std::thread threads[3];
  for (int i = 0; i < 3; i++) threads[i] = std::thread([&seen, i] { seen[i] = &kernels(); });
  for (std::thread& thread : threads) thread.join();
  check(seen[0] && seen[0] == seen[1] && seen[1] == seen[2] && kernels_note().empty(),
        "threads agree on the first choice");
  const Kernels* list[4];
  honest = list[available_kernels(list) - 1];
  planted_mistakes_are_found_and_not_used();
  honest_levels_are_used();
  levels_can_be_forced();
}

}  // namespace splat::testing
