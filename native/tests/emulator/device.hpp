// CUDA's words for device code, spoken by the emulator. Included by native/cuda/kernels/device.hpp under
// SPLAT_EMULATED.
#pragma once
#include <cmath>

#include "../../cuda/kernels/arguments.hpp"
#include "global.hpp"
#include "shared.hpp"

#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define INLINE __device__ inline
#define UNROLL
#define KERNEL(threads, name, arguments)  \
  constexpr int name##_threads = threads; \
  void name(const arguments a)
#define SHARED(type, name, count)   \
  static const char name##_tag = 0; \
  const emulator::Shared<type> name(&name##_tag, {__FILE__, __LINE__}, count)

#define threadIdx (splat::emulator::machine.thread[splat::emulator::machine.current])
#define blockIdx (splat::emulator::machine.block)
#define blockDim (splat::emulator::machine.block_size)
#define gridDim (splat::emulator::machine.grid_size)

#define SPLAT_MEETING(kind, mask, value, ...) \
  splat::emulator::warp_meeting(splat::emulator::Meeting::kind, {__FILE__, __LINE__}, mask, value, __VA_ARGS__)
#define __syncthreads() \
  splat::emulator::meet(splat::emulator::State::kBlock, splat::emulator::Meeting::kBarrier, {__FILE__, __LINE__}, 0)
#define __syncwarp() ((void)SPLAT_MEETING(kWarpBarrier, ~0u, 0, [](auto, int) { return 0; }))
#define __shfl_xor_sync(mask, value, distance) \
  SPLAT_MEETING(kShuffleXor, mask, value, [&](auto at, int lane) { return at(lane ^ (distance)); })
#define __shfl_sync(mask, value, from) SPLAT_MEETING(kShuffle, mask, value, [&](auto at, int) { return at((from)&31); })
#define __shfl_up_sync(mask, value, distance) \
  SPLAT_MEETING(kShuffleUp, mask, value,      \
                [&](auto at, int lane) { return at(lane < int(distance) ? lane : lane - int(distance)); })
#define __ballot_sync(mask, predicate)                                           \
  SPLAT_MEETING(kBallot, mask, unsigned((predicate) ? 1 : 0), [](auto at, int) { \
    unsigned set = 0;                                                            \
    for (int l = 0; l < 32; l++) set |= (at(l) & 1u) << l;                       \
    return set;                                                                  \
  })
#define __any_sync(mask, predicate) (__ballot_sync(mask, predicate) != 0)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class To, class From>
inline To splat_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline float __uint_as_float(unsigned v) { return splat_bits<float>(v); }
inline unsigned __float_as_uint(float v) { return splat_bits<unsigned>(v); }
inline long long __double_as_longlong(double v) { return splat_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return splat_bits<double>(v); }
inline float __fmul_rn(float a, float b) {
  volatile float product = a * b;
  return product;
}
inline float __fadd_rn(float a, float b) {
  volatile float sum = a + b;
  return sum;
}
inline float __fsub_rn(float a, float b) {
  volatile float difference = a - b;
  return difference;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dmul_rn(double a, double b) {
  volatile double product = a * b;
  return product;
}
inline double __dadd_rn(double a, double b) { return a + b; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }

namespace splat::card {

// With SPLAT_NOISY as wrong as a card's special functions may be: up to two units in the last place, at random.
#ifdef SPLAT_NOISY
inline float special(float x) {
  if (!(x - x == 0.f) || x == 0.f) return x;
  return __uint_as_float(__float_as_uint(x) + unsigned(int(emulator::machine.next_random() % 5) - 2));
}
#else
inline float special(float x) { return x; }
#endif
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? 0.f : x; }  // denormals, as .ftz does
INLINE float exp2_of(float x) { return flushed(special(exp2f(flushed(x)))); }
INLINE float log2_of(float x) { return special(log2f(flushed(x))); }
INLINE float inverse(float x) { return flushed(special(1.f / flushed(x))); }
INLINE float inverse_root(float x) { return special(1.f / sqrtf(flushed(x))); }
INLINE float root(float x) { return special(sqrtf(flushed(x))); }
INLINE float divide(float x, float y) {
  return std::fabs(y) > 0x1p126f && std::fabs(y) < INFINITY ? 0.f : flushed(special(x / flushed(y)));
}  // as __fdividef
INLINE u32 uniform(u32 value) {  // and it is checked
  const u32 all = SPLAT_MEETING(kReduce, ~0u, value, [](auto at, int) {
    u32 set = 0;
    for (int l = 0; l < 32; l++) set |= at(l);
    return set;
  });
  if (all != value) emulator::fail("lanes differ in what should be uniform");
  return all;
}

template <class T>
INLINE T fetch(const T* p, size_t i) {
  return emulator::read_global(p + i, emulator::Access::kFetch);
}
template <class T>
INLINE T load(const T* p, size_t i) {
  return emulator::read_global(p + i, emulator::Access::kLoad);
}
template <class T, class V>
INLINE void store(T* p, size_t i, const V& value) {
  emulator::write_global(p + i, T(value));
}
INLINE float4 fetch4(const float* p, size_t i) { return fetch(reinterpret_cast<const float4*>(p), i); }
INLINE float4 load4(const float* p, size_t i) { return load(reinterpret_cast<const float4*>(p), i); }
INLINE void store4(float* p, size_t i, const float4& value) { store(reinterpret_cast<float4*>(p), i, value); }
INLINE void count_up(const emulator::Shared<u32>& counts, u32 i) { emulator::maybe_yield(), counts[i].add(1u); }
INLINE void count_up_global(u32* counts, size_t i) {
  emulator::maybe_yield();
  if (emulator::machine.checks_memory)
    emulator::check_access(counts + i, sizeof(u32), alignof(u32), emulator::Access::kCount);
  counts[i]++;
}

}  // namespace splat::card
