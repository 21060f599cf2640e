// The pool: every index once, whoever is slow.
#include <atomic>

#include "testing.hpp"

namespace splat::testing {
namespace {

void every_index_is_somebodys() {
  for (int threads : {1, 2, 3, 5})
    for (int count : {0, 1, 2, 7, 64, 1000}) {
      ThreadPool pool(threads);
      std::vector<std::atomic<int>> taken(static_cast<size_t>(count));
      std::atomic<int> strays{0}, breaks{0};
      pool.each_in_runs(count, [&](auto&& next, int worker) {
        if (worker < 0 || worker >= threads) strays++;
        for (int before = -1, index; (index = next()) >= 0; before = index) {
          if (index >= count) {
            strays++;
            continue;
          }
          taken[size_t(index)]++;
          breaks += index != before + 1;
          for (volatile int idle = worker == 1 ? 3000 : 0; idle > 0;)
            idle = idle - 1;  // a slow one, from which others must take
        }
      });
      bool once = strays == 0;
      for (const std::atomic<int>& times : taken) once &= times == 1;
      check(once, "every index is given to one worker, once");
      check(threads > 1 || breaks == 0, "a worker alone goes through all in order");
    }
}

}  // namespace

void test_pool() { every_index_is_somebodys(); }

}  // namespace splat::testing
