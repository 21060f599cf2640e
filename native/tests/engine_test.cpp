// The engine without Python, small enough for the sanitizers: every pass of every instruction set this machine has,
// awkward sizes, several thread counts. Says what failed and exits 1, or prints how much it checked.
#include <atomic>
#include <cstdio>

#include "testing.hpp"

namespace splat::testing {

static std::atomic<int> checks{0}, failures{0};  // some tests check from several threads

void check(bool condition, const char* what) {
  checks++;
  if (!condition) {
    failures++;
    std::printf("FAILED: %s\n", what);
  }
}

static int report(const Kernels* const* list, int sets) {
  std::printf("%d checks, %d failures, instruction sets:", checks.load(), failures.load());
  for (int i = 0; i < sets; i++) std::printf(" %s", list[i]->name);
  std::printf("\n");
  return failures ? 1 : 0;
}

}  // namespace splat::testing

int main() {
  using namespace splat;
  testing::test_choice();
  testing::test_pool();
  const Kernels* list[4];
  const int sets = available_kernels(list);
  for (int i = 0; i < sets; i++) {
    testing::test_training(*list[i]);
    testing::test_step(*list[i]);
    testing::test_images(*list[i]);
    testing::test_space(*list[i]);
  }
  for (int i = 1; i < sets; i++) testing::test_agreement(*list[0], *list[i]);
  return testing::report(list, sets);
}
