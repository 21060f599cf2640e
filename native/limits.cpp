#include "limits.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>
#if defined(__linux__)
#include <unistd.h>
#endif

namespace splat {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRepetitions = 7;
constexpr int64_t kRounds = 1 << 19;  // some milliseconds a repetition

template <class Body>
double shortest(Body&& body) {
  double best = 1e9;
  for (int k = 0; k < kRepetitions; k++) {
    const auto start = Clock::now();
    body();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = seconds < best ? seconds : best;
  }
  return best;
}

// Latency times throughput independent chains keep both multipliers busy; all of them stay in registers.
#define MULTIPLY_ADD_LOOP(name, target, floats, chains)                                              \
  target float name(int64_t rounds, float seed) {                                                    \
    typedef float Vector __attribute__((vector_size(4 * floats)));                                   \
    Vector sum[chains], factor = Vector{} + (0.999f + 1e-6f * seed), term = Vector{} + 1e-3f * seed; \
    for (int k = 0; k < chains; k++) sum[k] = Vector{} + (seed + k);                                 \
    for (int64_t i = 0; i < rounds; i++) {                                                           \
      _Pragma("GCC unroll 32") for (int k = 0; k < chains; k++) sum[k] = sum[k] * factor + term;     \
    }                                                                                                \
    float total = 0;                                                                                 \
    for (int k = 0; k < chains; k++)                                                                 \
      for (int l = 0; l < floats; l++) total += sum[k][l];                                           \
    return total;                                                                                    \
  }

// What blend_forward.cpp does with a row, on as many as fit the first-level cache beside other things.
constexpr int kHotRows = 64, kRowOperations = 21;
#define BLENDED_ROWS_LOOP(name, target)                                                       \
  target float name(int64_t rounds, float seed) {                                             \
    typedef float Vector __attribute__((vector_size(32)));                                    \
    typedef int32_t Bits __attribute__((vector_size(32)));                                    \
    alignas(64) Vector state[kHotRows][4];                                                    \
    for (auto& row : state)                                                                   \
      for (Vector & plane : row) plane = Vector{} + 1.f;                                      \
    const Vector ratio0 = Vector{} + (0.999f + 1e-6f * seed), curvature = Vector{} + 0.9999f; \
    const Vector red = Vector{} + seed, green = red * 0.5f, blue = red * 0.25f;               \
    for (int64_t i = 0; i < rounds; i++) {                                                    \
      Vector value = Vector{} + 0.01f, ratio = ratio0;                                        \
      for (auto& row : state) {                                                               \
        const Vector T = row[0], alpha = (Vector)(((Bits)value > 0x3b808081) & (Bits)value);  \
        Vector weight = alpha * T;                                                            \
        const Vector left = T - weight;                                                       \
        const Bits live = (Bits)left > 0x38d1b717;                                            \
        weight = (Vector)(live & (Bits)weight);                                               \
        row[0] = (Vector)((live & (Bits)left) | (~live & ((Bits)T | INT32_MIN)));             \
        row[1] += weight * red, row[2] += weight * green, row[3] += weight * blue;            \
        value *= ratio, ratio *= curvature;                                                   \
      }                                                                                       \
    }                                                                                         \
    return state[0][1][0] + state[kHotRows - 1][3][7];                                        \
  }

#define DIVISION_LOOP(name, target, chains)                                                \
  target float name(int64_t rounds, float seed) {                                          \
    typedef float Vector __attribute__((vector_size(32)));                                 \
    Vector value[chains];                                                                  \
    for (int k = 0; k < chains; k++) value[k] = Vector{} + (seed + k);                     \
    for (int64_t i = 0; i < rounds; i++) {                                                 \
      _Pragma("GCC unroll 8") for (int k = 0; k < chains; k++) value[k] = seed / value[k]; \
    }                                                                                      \
    float total = 0;                                                                       \
    for (int k = 0; k < chains; k++) total += value[k][0];                                 \
    return total;                                                                          \
  }

struct Loop {
  float (*run)(int64_t, float);
  int floats, chains;
};
struct LoopsOfEight {
  float (*rows)(int64_t, float);
  float (*divisions)(int64_t, float);
};
constexpr int kDivisionChains = 6;

MULTIPLY_ADD_LOOP(loop_narrow, , 4, 14)
BLENDED_ROWS_LOOP(rows_narrow, )
DIVISION_LOOP(divisions_narrow, , kDivisionChains)
#if defined(__x86_64__)
BLENDED_ROWS_LOOP(rows_avx2, __attribute__((target("avx2,fma"))))
DIVISION_LOOP(divisions_avx2, __attribute__((target("avx2,fma"))), kDivisionChains)
MULTIPLY_ADD_LOOP(loop_avx2, __attribute__((target("avx2,fma"))), 8, 12)
MULTIPLY_ADD_LOOP(loop_avx512, __attribute__((target("avx512f"))), 16, 16)
#endif

Loop loop_of(const char* instruction_set) {
#if defined(__x86_64__)
  if (!std::strcmp(instruction_set, "avx512") && __builtin_cpu_supports("avx512f")) return {loop_avx512, 16, 16};
  if (std::strcmp(instruction_set, "baseline")) return {loop_avx2, 8, 12};
#endif
  (void)instruction_set;
  return {loop_narrow, 4, 14};
}

// AVX-512 works on eight floats, too, wherever passes do.
LoopsOfEight loops_of_eight(const char* instruction_set) {
#if defined(__x86_64__)
  if (std::strcmp(instruction_set, "baseline")) return {rows_avx2, divisions_avx2};
#endif
  (void)instruction_set;
  return {rows_narrow, divisions_narrow};
}

// Calls a second of a loop that all threads of the pool run at once, times what one of its rounds does.
double rate_of(ThreadPool& pool, float (*loop)(int64_t, float), int64_t rounds, double per_round) {
  const int threads = pool.size();
  std::vector<float> sink(size_t(threads) * 16);  // a cache line each
  const double seconds = shortest(
      [&] { pool.each(threads, [&](int index, int) { sink[size_t(index) * 16] = loop(rounds, float(index + 1)); }); });
  return per_round * double(rounds) * threads / seconds;
}

// The arrays must not lie a power of two apart: at 256 MiB they were in each other's way in memory, and
// the bandwidth was half of the truth: 23 instead of 46 GB/s. A page more is enough, half a page is not.
constexpr size_t kPage = 4096, kStreamGap = 5 * kPage + 5 * 64;  // bytes
static_assert(kStreamGap > kPage && (kStreamGap & (kStreamGap - 1)) != 0 && kStreamGap % 64 == 0);

size_t stream_floats() {  // per array: as large as the last cache, so that three of them cannot stay in it
  size_t bytes = size_t{32} << 20;
#if defined(__linux__) && defined(_SC_LEVEL3_CACHE_SIZE)
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0) bytes = std::min(std::max(bytes, size_t(cache)), size_t{256} << 20);
#endif
  return bytes / sizeof(float);
}

// ---- the recount ------------------------------------------------------------------------------------------
struct Tile {
  float left[kTile][kTile];  // transmittance; 0 once the pixel is finished, or outside the image
  int open = 0;              // pixels not finished
};

void open_tile(const Engine& engine, int x0, int y0, Tile& tile) {
  for (int y = 0; y < kTile; y++)
    for (int x = 0; x < kTile; x++) {
      const bool inside = x0 + x < engine.camera.width && y0 + y < engine.camera.height;
      tile.left[y][x] = inside ? 1.f : 0.f;
      tile.open += inside;
    }
}

// One row of one strip; returns how many of its eight pixels took the Gaussian.
int blend_strip(const Splat& g, float dy, float dx0, const Settings& settings, float* left, Tile& tile) {
  const float least = settings.light_cut > 0 ? settings.light_cut : kMinTransmittance;
  int taken = 0;
  for (int l = 0; l < kStrip; l++) {
    if (left[l] == 0) continue;
    const float dx = dx0 + float(l), e = dy - g.tilt * dx;
    const float power = g.log2_opacity - g.across * dx * dx - g.down * e * e;
    if (power < -kLog2Of255) continue;
    const float after = left[l] * (1 - std::fmin(std::exp2(power), settings.max_alpha));
    taken++;
    tile.open -= after <= least;
    left[l] = after <= least ? 0.f : after;
  }
  return taken;
}

struct Range {
  int begin, end;
};
Range pixels_of(float centre, float half, int origin) {  // of a tile, that the bounding box covers
  const float low = std::ceil(centre - half - 0.5f) - float(origin),
              high = std::floor(centre + half - 0.5f) - float(origin);
  return {int(std::fmax(low, 0.f)), int(std::fmin(high, float(kTile - 1))) + 1};
}

void count_pair(const Engine& engine, const Splat& g, int x0, int y0, Tile& tile, StepWork& work) {
  const Range rows = pixels_of(g.y, g.half_height + 0.02f, y0), columns = pixels_of(g.x, g.half_width + 0.02f, x0);
  for (int s = columns.begin / kStrip; s * kStrip < columns.end; s++) {
    bool any = false;
    for (int y = rows.begin; y < rows.end; y++) {
      const float dx0 = float(x0 + s * kStrip) + 0.5f - g.x, dy = float(y0 + y) + 0.5f - g.y;
      const int taken = blend_strip(g, dy, dx0, engine.settings, tile.left[y] + s * kStrip, tile);
      work.pixels += taken;
      work.vectors += taken > 0;
      any |= taken > 0;
    }
    work.items += any;
  }
}

void count_tile(const Engine& engine, int at, std::atomic<uint8_t>* seen, StepWork& work) {
  Tile tile;
  const int x0 = at % engine.tile_columns * kTile, y0 = at / engine.tile_columns * kTile;
  const uint32_t *begins = engine.tile_begin.data(), end = begins[at + 1];
  open_tile(engine, x0, y0, tile);
  uint32_t i = begins[at];
  for (; i < end && tile.open; i++) {
    const uint32_t place = engine.pairs.data()[i].place;
    const uint64_t before = work.pixels;
    count_pair(engine, engine.splats.data()[place], x0, y0, tile, work);
    if (work.pixels > before) seen[place].store(1, std::memory_order_relaxed);
  }
  work.walked += i - begins[at];
}

void count_rows(const Engine& engine, const std::atomic<uint8_t>* seen, StepWork& work) {
  const Table& table = engine.table;
  auto behind = [&](size_t row) {
    return table.pending.by_age && table.geometry[row * kGeometryWidth + kLastUpdate] < float(table.pending.step);
  };
  for (int i = 0; i < table.count; i++) work.seen += seen[i].load(std::memory_order_relaxed);
  for (int k = 0; k < engine.chunk_count; k++)
    for (int i = 0; i < engine.chunks.data()[k].count; i++)
      work.visible_behind += behind(engine.rows.data()[k * kChunk + i]);
  work.visible = uint64_t(engine.visible_count);
  work.pairs = engine.pair_count;
}

}  // namespace

double measured_flops(ThreadPool& pool) {
  const Loop loop = loop_of(kernels().name);
  return rate_of(pool, loop.run, kRounds, 2.0 * loop.floats * loop.chains);
}

double measured_operations(ThreadPool& pool) {
  return rate_of(pool, loops_of_eight(kernels().name).rows, kRounds / kHotRows, double(kRowOperations) * kHotRows);
}

double measured_divisions(ThreadPool& pool) {
  return rate_of(pool, loops_of_eight(kernels().name).divisions, kRounds / kDivisionChains, kDivisionChains);
}

double measured_bandwidth(ThreadPool& pool) {
  const size_t floats = stream_floats(), apart = floats + kStreamGap / sizeof(float), piece = 1 << 16;
  Buffer<float> memory;
  float* a = memory.at_least(3 * apart);
  const float *b = a + apart, *c = a + 2 * apart;
  const int pieces = int(floats / piece);
  pool.each(3 * pieces, [&](int k, int) {
    std::memset(a + size_t(k / pieces) * apart + size_t(k % pieces) * piece, 0, piece * sizeof(float));
  });
  const double seconds = shortest([&] {
    pool.each(pieces, [&](int k, int) {
      for (size_t i = size_t(k) * piece; i < size_t(k + 1) * piece; i++) a[i] = b[i] + 0.5f * c[i];
    });
  });
  return 4.0 * sizeof(float) * double(piece) * pieces / seconds;
}

StepWork step_work(Engine& engine) {
  const int tiles = engine.tile_columns * engine.tile_rows;
  std::vector<std::atomic<uint8_t>> seen(size_t(engine.table.count));
  std::vector<StepWork> each(static_cast<size_t>(tiles));
  engine.pool.each(tiles, [&](int tile, int) { count_tile(engine, tile, seen.data(), each[size_t(tile)]); });
  StepWork sum;
  for (const StepWork& work : each) {
    sum.walked += work.walked;
    sum.items += work.items;
    sum.vectors += work.vectors;
    sum.pixels += work.pixels;
  }
  count_rows(engine, seen.data(), sum);
  return sum;
}

}  // namespace splat
