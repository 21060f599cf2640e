// What kernels may use of the machine they run on. The only place that tells the three compilers apart: nvcc and NVRTC
// make code for cards, and with SPLAT_EMULATED a C++ compiler makes code for native/tests/emulator.
//
// Global memory is reached through fetch (nobody writes it during this launch), load and store; shared memory through
// SHARED arrays. On a card all of them are plain accesses. The emulator checks each one.
#pragma once
#include "arguments.hpp"

#if defined(SPLAT_EMULATED)
#include "../../tests/emulator/device.hpp"
#else

#define KERNEL(threads, name, arguments) extern "C" __global__ void __launch_bounds__(threads) name(const arguments a)
#define INLINE __device__ __forceinline__
#define SHARED(type, name, count) __shared__ type name[count]
#define UNROLL _Pragma("unroll")

namespace splat::card {

template <class T>
INLINE T fetch(const T* p, size_t i) {
  return __ldg(p + i);
}
template <class T>
INLINE T load(const T* p, size_t i) {
  return p[i];
}
template <class T, class V>
INLINE void store(T* p, size_t i, const V& value) {
  p[i] = value;
}
INLINE float4 fetch4(const float* p, size_t i) { return __ldg(reinterpret_cast<const float4*>(p) + i); }
INLINE float4 load4(const float* p, size_t i) { return reinterpret_cast<const float4*>(p)[i]; }
INLINE void store4(float* p, size_t i, const float4& value) { reinterpret_cast<float4*>(p)[i] = value; }
INLINE void count_up(u32* shared_counts, u32 i) { atomicAdd(shared_counts + i, 1u); }
INLINE void count_up_global(u32* counts, size_t i) { atomicAdd(counts + i, 1u); }

// The card's special functions: wrong by up to two units in the last place, and denormals are zero.
INLINE float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
INLINE float log2_of(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
INLINE float inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
INLINE float inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
INLINE float root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
INLINE float divide(float x, float y) { return __fdividef(x, y); }

// The same number in all lanes. Where the compiler can be told so, branches on it need no convergence barriers.
#if __CUDA_ARCH__ >= 800
INLINE u32 uniform(u32 value) { return __reduce_or_sync(0xffffffffu, value); }
#else
INLINE u32 uniform(u32 value) { return value; }
#endif

}  // namespace splat::card
#endif

namespace splat::card {

constexpr u32 kAllLanes = 0xffffffffu;

INLINE int lane_number() { return int(threadIdx.x & 31); }
INLINE int warp_number() { return int(threadIdx.x >> 5); }
INLINE u32 thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }
INLINE float clamped(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
INLINE bool is_finite(float x) { return x - x == 0.f; }

}  // namespace splat::card
