// Vectors of eight floats by compiler extensions, and the few things those do not offer.
// Included only by sources that are compiled once per instruction set, each into its own namespace.
//
// Eight, not sixteen, on AVX-512 too: eight is in the data and not only in the loops. A Gaussian's record is two
// vectors
// of eight, rows become columns in blocks of 8x8, and a strip is eight pixels wide because the exact row range of a
// strip
// is what saves most of the work; wider strips would blend more pixels that no Gaussian reaches.
#pragma once
#include <cstdint>
#include <cstring>

#include "layout.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#ifndef SPLAT_LEVEL
#error "compile with -DSPLAT_LEVEL=<name of the instruction set>"
#endif

#define FORCED inline __attribute__((always_inline))
#define INLINE static FORCED

namespace splat::SPLAT_LEVEL {

#if defined(__AVX2__)
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef int32_t i4 __attribute__((vector_size(16)));

INLINE i8 truncate(f8 v) { return __builtin_convertvector(v, i8); }
INLINE f8 to_float(i8 v) { return __builtin_convertvector(v, f8); }
INLINE f8 bytes_to_float(uint64_t eight) {
  return to_float((i8)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(int64_t(eight))));
}
INLINE f8 minimum(f8 a, f8 b) { return (f8)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE f8 maximum(f8 a, f8 b) { return (f8)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE f8 square_root(f8 a) { return (f8)_mm256_sqrt_ps((__m256)a); }
INLINE f8 round_down(f8 a) { return (f8)_mm256_floor_ps((__m256)a); }
INLINE f8 round_up(f8 a) { return (f8)_mm256_ceil_ps((__m256)a); }
INLINE f8 choose(i8 mask, f8 yes, f8 no) { return (f8)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask); }
INLINE int sign_bits(i8 mask) { return _mm256_movemask_ps((__m256)mask); }

// Rows become columns: r[i][l] <-> r[l][i].
INLINE void transpose(f8* r) {
  f8 a[8], b[8];
  for (int i = 0; i < 4; i++) {
    a[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int h = 0; h < 2; h++)
    for (int k = 0; k < 2; k++) {
      b[4 * h + 2 * k] = __builtin_shufflevector(a[4 * h + k], a[4 * h + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[4 * h + 2 * k + 1] = __builtin_shufflevector(a[4 * h + k], a[4 * h + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; i++) {
    r[i] = __builtin_shufflevector(b[i], b[4 + i], 0, 1, 2, 3, 8, 9, 10, 11);
    r[4 + i] = __builtin_shufflevector(b[i], b[4 + i], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Eight quadruples become four columns: column[j][l] = at(l)[j]. Pairing them while they are loaded saves shuffles.
template <class At>
INLINE void load_quads(At&& at, f8* column) {
  f8 r[4];
  for (int l = 0; l < 4; l++) {
    const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(at(l)));
    r[l] = (f8)_mm256_insertf128_ps(low, _mm_loadu_ps(at(l + 4)), 1);
  }
  const f8 a = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const f8 b = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const f8 c = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const f8 d = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
  column[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  column[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  column[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  column[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

// Eight triples side by side in three vectors: out[c][j] is number c of triple j. Eight and three have no common
// divisor, so the numbers c lie in different lanes and can be gathered by blending.
INLINE void split_triples(const f8* v, f8* out) {
  f8 a = __builtin_shufflevector(v[0], v[1], 0, 9, 2, 3, 12, 5, 6, 15);
  f8 b = __builtin_shufflevector(v[0], v[1], 0, 1, 10, 3, 4, 13, 6, 7);
  f8 c = __builtin_shufflevector(v[0], v[1], 8, 1, 2, 11, 4, 5, 14, 7);
  a = __builtin_shufflevector(a, v[2], 0, 1, 10, 3, 4, 13, 6, 7);
  b = __builtin_shufflevector(b, v[2], 8, 1, 2, 11, 4, 5, 14, 7);
  c = __builtin_shufflevector(c, v[2], 0, 9, 2, 3, 12, 5, 6, 15);
  out[0] = __builtin_shufflevector(a, a, 0, 3, 6, 1, 4, 7, 2, 5);
  out[1] = __builtin_shufflevector(b, b, 1, 4, 7, 2, 5, 0, 3, 6);
  out[2] = __builtin_shufflevector(c, c, 2, 5, 0, 3, 6, 1, 4, 7);
}
// The way back for triples whose numbers are all the same, and for one triple again and again; that reads a fourth
// number and does not use it.
INLINE void as_triples(f8 v, f8* out) {
  out[0] = __builtin_shufflevector(v, v, 0, 0, 0, 1, 1, 1, 2, 2);
  out[1] = __builtin_shufflevector(v, v, 2, 3, 3, 3, 4, 4, 4, 5);
  out[2] = __builtin_shufflevector(v, v, 5, 5, 6, 6, 6, 7, 7, 7);
}
INLINE void repeat_triple(const float* triple, f8* out) {
  const f8 v = (f8)_mm256_broadcast_ps((const __m128*)triple);
  out[0] = __builtin_shufflevector(v, v, 0, 1, 2, 0, 5, 6, 4, 5);
  out[1] = __builtin_shufflevector(v, v, 2, 0, 1, 2, 4, 5, 6, 4);
  out[2] = __builtin_shufflevector(v, v, 1, 2, 0, 1, 6, 4, 5, 6);
}

// Four vectors to eight quadruples: quad l and quad l + 4 become the halves of r[l].
INLINE void transpose_quads(i8* r) {
  i8 a = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13),
     b = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
  i8 c = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13),
     d = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

// Lane i of the result is the sum of v[i]: neighbours are added and interleaved until one vector is left.
INLINE f8 sums_of(const f8* v) {
  f8 pair[4], quad[2];
  for (int k = 0; k < 4; k++)
    pair[k] = __builtin_shufflevector(v[2 * k], v[2 * k + 1], 0, 8, 1, 9, 4, 12, 5, 13) +
              __builtin_shufflevector(v[2 * k], v[2 * k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  for (int k = 0; k < 2; k++)
    quad[k] = __builtin_shufflevector(pair[2 * k], pair[2 * k + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
              __builtin_shufflevector(pair[2 * k], pair[2 * k + 1], 2, 3, 10, 11, 6, 7, 14, 15);
  return __builtin_shufflevector(quad[0], quad[1], 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(quad[0], quad[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
#else
#include "halves.hpp"
#endif

INLINE f8 all(float x) { return f8{x, x, x, x, x, x, x, x}; }
INLINE f8 load(const float* p) {
  f8 v;
  memcpy(&v, p, 32);
  return v;
}
INLINE void store(float* p, f8 v) { memcpy(p, &v, 32); }
INLINE f8 load_first(const float* p, int n) {  // the other lanes are zero
  if (__builtin_expect(n == 8, 1)) return load(p);
  float lanes[8] = {};
  for (int l = 0; l < n; l++) lanes[l] = p[l];
  return load(lanes);
}
INLINE void store_first(float* p, f8 v, int n) {
  if (__builtin_expect(n == 8, 1)) return store(p, v);
  for (int l = 0; l < n; l++) p[l] = v[l];
}
INLINE f8 keep_where(i8 mask, f8 v) { return (f8)(mask & (i8)v); }
INLINE f8 absolute(f8 v) { return (f8)((i8)v & 0x7fffffff); }
INLINE f8 clamp(f8 x, f8 low, f8 high) { return minimum(maximum(x, low), high); }
constexpr int kAllLanes = 255;
INLINE f8 lane_numbers() { return f8{0, 1, 2, 3, 4, 5, 6, 7}; }
INLINE i8 lane_mask(int n) { return lane_numbers() < float(n); }  // the first n lanes

// 2^p for |p| < 126, relative error 1e-7. Adding 1.5*2^23 rounds p to an integer in the low mantissa bits,
// which a shift turns into an exponent; -ffast-math would fold that away.
template <class Floats, class Bits>
INLINE Floats exp2_of(Floats p) {
  const float magic = 12582912.f;
  Floats z = p + magic, f = p - (z - magic);
  Floats r = 1.5403530e-04f * f + 1.3333558e-03f;
  r = r * f + 9.6181291e-03f;
  r = r * f + 5.5504109e-02f;
  r = r * f + 2.4022651e-01f;
  r = r * f + 6.9314718e-01f;
  r = r * f + 1.f;
  return (Floats)((Bits)r + ((Bits)z << 23));  // unsigned: wraps around by intent
}
INLINE f8 exp2_of(f8 p) { return exp2_of<f8, u8>(p); }
// 2^p and 2^q one after the other, zero below `least`. Sixteen lanes pay here: few registers, long chains.
template <class Sixteen>
INLINE void store_powers(Sixteen* to, f8 p, f8 q, float least) {
  static_assert(sizeof *to == 64);
#if defined(__AVX512F__)
  typedef float f16 __attribute__((vector_size(64)));
  typedef int32_t i16 __attribute__((vector_size(64)));
  typedef uint32_t u16 __attribute__((vector_size(64)));
  const f16 x = __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const f16 r = (f16)((i16)exp2_of<f16, u16>(x) & (i16)(x >= least));
  memcpy(to, &r, 64);
#else
  const f8 r[2] = {keep_where(p >= least, exp2_of(p)), keep_where(q >= least, exp2_of(q))};
  memcpy(to, r, 64);
#endif
}
INLINE f8 exp_of(f8 x) { return exp2_of(clamp(x * kLog2E, all(-125.f), all(125.f))); }

// 1/sqrt(x) to float precision without the divider, which is the bottleneck of Adam. Zero gives a large finite number.
INLINE f8 inverse_root(f8 x) {
  f8 r = (f8)(0x5f3759df - ((i8)x >> 1)), half = 0.5f * x;
  for (int k = 0; k < 3; k++) r = r * (1.5f - half * r * r);
  return r;
}

INLINE f8 log2_of(f8 x) {  // x > 0, normal
  i8 bits = (i8)x, exponent = (bits - 0x3f3504f3) & (int32_t)0xff800000;
  f8 mantissa = (f8)(bits - exponent);  // in [0.707, 1.414)
  f8 s = (mantissa - 1.f) / (mantissa + 1.f), s2 = s * s;
  f8 series = ((0.2857142857f * s2 + 0.4f) * s2 + 0.6666666667f) * s2 + 2.f;
  return to_float(exponent >> 23) + kLog2E * series * s;
}

// For each mask of four lanes: the order that brings the lanes whose bit is 0 to the front, and how many they are.
struct alignas(16) Packing {
  int32_t order[4], count;
};
struct Packings {
  Packing of[16];
  constexpr Packings() : of{} {
    for (int mask = 0; mask < 16; mask++)
      for (int l = 0; l < 4; l++)
        if (!(mask >> l & 1)) of[mask].order[of[mask].count++] = l;
  }
};
constexpr Packings kPackings;

INLINE i4 pack(i4 v, const Packing& packing) {
#if defined(__AVX__)
  return (i4)_mm_permutevar_ps((__m128)v, _mm_load_si128((const __m128i*)packing.order));
#else
  i4 packed = {};
  for (int l = 0; l < 4; l++) packed[l] = v[packing.order[l]];
  return packed;
#endif
}

INLINE float sum_of(const f8 v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

}  // namespace splat::SPLAT_LEVEL
