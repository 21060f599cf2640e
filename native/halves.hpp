// Eight lanes as two vectors of four, for machines that have no wider ones (SSE4, NEON). Compilers would split vectors
// of eight by themselves, but GCC then takes comparisons, minima and shuffles apart lane by lane.
// Included by simd.hpp only, inside the instruction set's namespace.

template <class Lane>
struct Halves {
  typedef Lane Four __attribute__((vector_size(16)));
  typedef int32_t Mask __attribute__((vector_size(16)));
  Four low, high;

  Halves() = default;
  FORCED Halves(Four l, Four h) : low(l), high(h) {}
  FORCED Halves(Lane a, Lane b, Lane c, Lane d, Lane e, Lane f, Lane g, Lane h) : low{a, b, c, d}, high{e, f, g, h} {}
  template <class Other>
  FORCED explicit Halves(Halves<Other> v) : low((Four)v.low), high((Four)v.high) {}  // the same bits

  FORCED Lane operator[](int l) const { return l < 4 ? low[l] : high[l - 4]; }
  FORCED Lane& operator[](int l) { return reinterpret_cast<Lane*>(this)[l]; }

  FORCED friend Halves operator-(Halves v) { return {-v.low, -v.high}; }
  FORCED friend Halves operator<<(Halves v, int bits) { return {v.low << bits, v.high << bits}; }
  FORCED friend Halves operator>>(Halves v, int bits) { return {v.low >> bits, v.high >> bits}; }

#define OPERATOR(op, Result, Part)                                                                                    \
  FORCED friend Result operator op(Halves a, Halves b) { return {(Part)(a.low op b.low), (Part)(a.high op b.high)}; } \
  FORCED friend Result operator op(Halves a, Lane b) { return {(Part)(a.low op b), (Part)(a.high op b)}; }            \
  FORCED friend Result operator op(Lane a, Halves b) { return {(Part)(a op b.low), (Part)(a op b.high)}; }
#define ARITHMETIC(op)                     \
  OPERATOR(op, Halves, Four)               \
  template <class Right>                   \
  FORCED Halves& operator op##=(Right b) { \
    return *this = *this op b;             \
  }
#define COMPARISON(op) OPERATOR(op, Halves<int32_t>, Mask)
  ARITHMETIC(+)
  ARITHMETIC(-)
  ARITHMETIC(*)
  ARITHMETIC(/)
  ARITHMETIC(&) ARITHMETIC(|) ARITHMETIC(^) COMPARISON(<) COMPARISON(<=) COMPARISON(>) COMPARISON(>=) COMPARISON(==)
      COMPARISON(!=)
#undef COMPARISON
#undef ARITHMETIC
#undef OPERATOR
};

typedef Halves<float> f8;
typedef Halves<int32_t> i8;
typedef Halves<uint32_t> u8;
typedef f8::Four f4;
typedef i8::Four i4;

INLINE i8 truncate(f8 v) { return {__builtin_convertvector(v.low, i4), __builtin_convertvector(v.high, i4)}; }
INLINE f8 to_float(i8 v) { return {__builtin_convertvector(v.low, f4), __builtin_convertvector(v.high, f4)}; }

#if defined(__SSE4_1__)
INLINE f8 bytes_to_float(uint64_t eight) {
  const __m128i bytes = _mm_cvtsi64_si128(int64_t(eight));
  return to_float(i8((i4)_mm_cvtepu8_epi32(bytes), (i4)_mm_cvtepu8_epi32(_mm_srli_si128(bytes, 4))));
}
INLINE f8 minimum(f8 a, f8 b) { return {(f4)_mm_min_ps(a.low, b.low), (f4)_mm_min_ps(a.high, b.high)}; }
INLINE f8 maximum(f8 a, f8 b) { return {(f4)_mm_max_ps(a.low, b.low), (f4)_mm_max_ps(a.high, b.high)}; }
INLINE f8 square_root(f8 a) { return {(f4)_mm_sqrt_ps(a.low), (f4)_mm_sqrt_ps(a.high)}; }
INLINE f8 round_down(f8 a) { return {(f4)_mm_floor_ps(a.low), (f4)_mm_floor_ps(a.high)}; }
INLINE f8 round_up(f8 a) { return {(f4)_mm_ceil_ps(a.low), (f4)_mm_ceil_ps(a.high)}; }
INLINE f8 choose(i8 mask, f8 yes, f8 no) {
  return {(f4)_mm_blendv_ps(no.low, yes.low, (__m128)mask.low),
          (f4)_mm_blendv_ps(no.high, yes.high, (__m128)mask.high)};
}
INLINE int sign_bits(i8 mask) { return _mm_movemask_ps((__m128)mask.low) | _mm_movemask_ps((__m128)mask.high) << 4; }
#else
// Not the processor's own minimum: of a number and no number, x86 takes the second, and so do we everywhere.
INLINE f8 minimum(f8 a, f8 b) { return {a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high}; }
INLINE f8 maximum(f8 a, f8 b) { return {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high}; }
INLINE f8 choose(i8 mask, f8 yes, f8 no) {
  return {mask.low < 0 ? yes.low : no.low, mask.high < 0 ? yes.high : no.high};
}
#if defined(__aarch64__)
INLINE f8 bytes_to_float(uint64_t eight) {
  const uint16x8_t wide = vmovl_u8(vcreate_u8(eight));
  return to_float(i8((i4)vmovl_u16(vget_low_u16(wide)), (i4)vmovl_u16(vget_high_u16(wide))));
}
INLINE f8 square_root(f8 a) { return {(f4)vsqrtq_f32((float32x4_t)a.low), (f4)vsqrtq_f32((float32x4_t)a.high)}; }
INLINE f8 round_down(f8 a) { return {(f4)vrndmq_f32((float32x4_t)a.low), (f4)vrndmq_f32((float32x4_t)a.high)}; }
INLINE f8 round_up(f8 a) { return {(f4)vrndpq_f32((float32x4_t)a.low), (f4)vrndpq_f32((float32x4_t)a.high)}; }
INLINE int sign_bits(i8 mask) {
  const i4 low = mask.low < 0 ? i4{1, 2, 4, 8} : i4{}, high = mask.high < 0 ? i4{16, 32, 64, 128} : i4{};
  return vaddvq_s32((int32x4_t)(low | high));
}
#else
INLINE f8 bytes_to_float(uint64_t eight) {
  f8 r;
  for (int l = 0; l < 8; l++) r[l] = float(eight >> 8 * l & 255);
  return r;
}
INLINE f8 square_root(f8 a) {
  f8 r;
  for (int l = 0; l < 8; l++) r[l] = __builtin_sqrtf(a[l]);
  return r;
}
INLINE f8 round_down(f8 a) {
  f8 r;
  for (int l = 0; l < 8; l++) r[l] = __builtin_floorf(a[l]);
  return r;
}
INLINE f8 round_up(f8 a) {
  f8 r;
  for (int l = 0; l < 8; l++) r[l] = __builtin_ceilf(a[l]);
  return r;
}
INLINE int sign_bits(i8 mask) {
  int r = 0;
  for (int l = 0; l < 8; l++) r |= (mask[l] < 0) << l;
  return r;
}
#endif
#endif

INLINE void transpose(f4& a, f4& b, f4& c, f4& d) {
  const f4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const f4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}
INLINE void transpose(f8* r) {  // four blocks, of which two change places
  transpose(r[0].low, r[1].low, r[2].low, r[3].low);
  transpose(r[4].high, r[5].high, r[6].high, r[7].high);
  transpose(r[0].high, r[1].high, r[2].high, r[3].high);
  transpose(r[4].low, r[5].low, r[6].low, r[7].low);
  for (int i = 0; i < 4; i++) {
    const f4 moved = r[i].high;
    r[i].high = r[4 + i].low;
    r[4 + i].low = moved;
  }
}
template <class At>
INLINE void load_quads(At&& at, f8* column) {  // column[j][l] = at(l)[j]
  f4 r[8];
  for (int l = 0; l < 8; l++) memcpy(&r[l], at(l), sizeof r[l]);
  transpose(r[0], r[1], r[2], r[3]);
  transpose(r[4], r[5], r[6], r[7]);
  for (int j = 0; j < 4; j++) column[j] = f8(r[j], r[4 + j]);
}
INLINE void split_four_triples(f4 u, f4 v, f4 w, f4& a, f4& b, f4& c) {
  a = __builtin_shufflevector(u, __builtin_shufflevector(v, w, 2, 5, 2, 5), 0, 3, 4, 5);
  const f4 first = __builtin_shufflevector(u, v, 1, 4, 1, 4), last = __builtin_shufflevector(v, w, 3, 6, 3, 6);
  b = __builtin_shufflevector(first, last, 0, 1, 4, 5);
  c = __builtin_shufflevector(__builtin_shufflevector(u, v, 2, 5, 2, 5), w, 0, 1, 4, 7);
}
INLINE void split_triples(const f8* v, f8* out) {  // out[c][j] is number c of triple j
  split_four_triples(v[0].low, v[0].high, v[1].low, out[0].low, out[1].low, out[2].low);
  split_four_triples(v[1].high, v[2].low, v[2].high, out[0].high, out[1].high, out[2].high);
}
INLINE void as_triples(f8 v, f8* out) {  // triples of equal numbers
  const f4 l = v.low, h = v.high;
  out[0] = f8(__builtin_shufflevector(l, l, 0, 0, 0, 1), __builtin_shufflevector(l, l, 1, 1, 2, 2));
  out[1] = f8(__builtin_shufflevector(l, l, 2, 3, 3, 3), __builtin_shufflevector(h, h, 0, 0, 0, 1));
  out[2] = f8(__builtin_shufflevector(h, h, 1, 1, 2, 2), __builtin_shufflevector(h, h, 2, 3, 3, 3));
}
INLINE void repeat_triple(const float* triple, f8* out) {  // the same one again and again; reads a fourth number
  f4 v;
  memcpy(&v, triple, sizeof v);
  const f4 a = __builtin_shufflevector(v, v, 0, 1, 2, 0), b = __builtin_shufflevector(v, v, 1, 2, 0, 1);
  const f4 c = __builtin_shufflevector(v, v, 2, 0, 1, 2);
  out[0] = f8(a, b);
  out[1] = f8(c, a);
  out[2] = f8(b, c);
}
INLINE void transpose_quads(i8* r) {  // quad l and quad l + 4 become the halves of r[l]
  f8 v[4] = {f8(r[0]), f8(r[1]), f8(r[2]), f8(r[3])};
  transpose(v[0].low, v[1].low, v[2].low, v[3].low);
  transpose(v[0].high, v[1].high, v[2].high, v[3].high);
  for (int i = 0; i < 4; i++) r[i] = i8(v[i]);
}
INLINE f8 sums_of(const f8* v) {  // lane i of the result is the sum of v[i]
  f8 columns[8];
  memcpy(columns, v, sizeof columns);
  transpose(columns);
  return ((columns[0] + columns[1]) + (columns[2] + columns[3])) +
         ((columns[4] + columns[5]) + (columns[6] + columns[7]));
}
