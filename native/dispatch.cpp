// Chooses the passes compiled for this machine's instruction set.
#include "dispatch.hpp"

#include <atomic>
#include <cstring>
#include <mutex>

#include "self_test.hpp"

namespace splat {

#if defined(SPLAT_AVX512)
namespace avx512 {
extern const Kernels table;
}
#endif
#if defined(SPLAT_X86)
namespace avx2 {
extern const Kernels table;
}
namespace baseline {
extern const Kernels table;
}
#elif defined(SPLAT_NEON)
namespace neon {
extern const Kernels table;
}
#else
namespace baseline {
extern const Kernels table;
}
#endif

namespace {

constexpr int kMostLevels = 4;

std::mutex choosing;  // guards the note, and a choice under way
std::atomic<const Kernels*> chosen{nullptr};
std::string note;

#if defined(SPLAT_X86)
// The compiler's own test looks at the processor and at the registers that the system saves.
bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
#endif
#if defined(SPLAT_AVX512)
bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

int levels_here(Level list[kMostLevels]) {  // best first
  int n = 0;
#if defined(SPLAT_AVX512)
  if (runs_avx512()) list[n++] = {&avx512::table, true};
#endif
#if defined(SPLAT_X86)
  if (runs_avx2()) list[n++] = {&avx2::table, false};
  list[n++] = {&baseline::table, false};
#elif defined(SPLAT_NEON)
  list[n++] = {&neon::table, false};
#else
  list[n++] = {&baseline::table, false};
#endif
  return n;
}

}  // namespace

Choice choose(const Level* levels, int count) {
  std::string note;
  for (int i = 0; i + 1 < count; i++) {
    const Kernels &candidate = *levels[i].kernels, &next = *levels[i + 1].kernels;
    const std::string found = levels[i].on_trial ? disagreement(candidate, next) : "";
    if (found.empty()) return {&candidate, note};
    if (!note.empty()) note += ' ';
    note.append(candidate.name).append(" is not used: in its self-test ").append(found);
    note.append(" differs from what ").append(next.name).append(" computes.");
  }
  return {levels[count - 1].kernels, note};
}

int available_kernels(const Kernels* list[kMostLevels]) {
  Level levels[kMostLevels];
  const int count = levels_here(levels);
  for (int i = 0; i < count; i++) list[i] = levels[i].kernels;
  return count;
}

const Kernels& kernels() {
  if (const Kernels* known = chosen.load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(choosing);
  if (!chosen.load(std::memory_order_relaxed)) {
    Level levels[kMostLevels];
    Choice choice = choose(levels, levels_here(levels));
    note = choice.note;
    chosen.store(choice.kernels, std::memory_order_release);
  }
  return *chosen.load(std::memory_order_relaxed);
}

std::string kernels_note() {
  kernels();
  std::lock_guard lock(choosing);
  return note;
}

bool force_kernels(const char* name) {
  Level levels[kMostLevels];
  for (int i = 0, n = levels_here(levels); i < n; i++)
    if (!std::strcmp(levels[i].kernels->name, name)) {
      std::lock_guard lock(choosing);
      note = levels[i].on_trial ? "It was asked for by name and skipped its self-test." : "";
      chosen.store(levels[i].kernels, std::memory_order_release);
      return true;
    }
  return false;
}

size_t Engine::workspace_bytes() const {
  const size_t touched = runs.bytes() / pool.size();  // each thread has room for all
  return splats.bytes() + boxes.bytes() + rows.bytes() + depth_keys[0].bytes() + depth_keys[1].bytes() +
         depth_order.bytes() + chunks.bytes() + histograms.bytes() + tile_counts.bytes() + tile_begin.bytes() +
         touched + pairs.bytes() + tile_end.bytes() + items.bytes() + item_counts.bytes() +
         pair_gradients.bytes() + window_planes.bytes() + window_rows.bytes() + loss_sums.bytes() +
         exposure_sums.bytes() + step_images.bytes();
}

}  // namespace splat
