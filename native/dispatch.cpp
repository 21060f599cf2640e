// Chooses the passes compiled for this machine's instruction set.
#include <cstring>

#include "engine.hpp"

namespace splat {

#if defined(SPLAT_HAS_AVX2)
namespace avx2 { extern const Kernels table; }
#endif
namespace baseline { extern const Kernels table; }

namespace {

const Kernels* chosen = nullptr;

bool runs_avx2() {
#if defined(SPLAT_HAS_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace

int available_kernels(const Kernels* list[4]) {  // best first
  int n = 0;
#if defined(SPLAT_HAS_AVX2)
  if (runs_avx2()) list[n++] = &avx2::table;
#endif
  list[n++] = &baseline::table;
  return n;
}

const Kernels& kernels() {
  if (!chosen) {
    const Kernels* list[4];
    available_kernels(list);
    chosen = list[0];
  }
  return *chosen;
}

bool force_kernels(const char* name) {
  const Kernels* list[4];
  for (int i = 0, n = available_kernels(list); i < n; i++)
    if (!std::strcmp(list[i]->name, name)) return chosen = list[i], true;
  return false;
}

size_t Engine::workspace_bytes() const {
  return splats.bytes() + boxes.bytes() + visible.bytes() + depth_keys[0].bytes() + depth_keys[1].bytes() + depth_order.bytes() +
         chunks.bytes() + histograms.bytes() + tile_counts.bytes() + tile_begin.bytes() + runs.bytes() + pairs.bytes() + tile_end.bytes() + pair_gradients.bytes() + target.bytes() + window_maps.bytes() + window_rows.bytes() + partial_sums.bytes();
}

}  // namespace splat
