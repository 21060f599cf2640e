// What lazy Adam left undone, four floats at a time: for whoever brings rows up to date, where they lie or while they
// move.
#pragma once
#include "projection.hpp"

namespace splat::card {

struct Decays {
  float first, second;
};  // of m / sqrt(v) and sqrt(v)
INLINE Decays decays_of(const float4& owed) {
  const float second = root(owed.w);
  return {divide(owed.z, second), second};
}

// Columns by name and not by number: kernel arguments that are indexed would be copied to the stack.
INLINE float pending_rate(const Pending& p, u32 column) {
  return column < kLogScale       ? p.rates[0]
         : column < kRotation     ? p.rates[kLogScale]
         : column < kOpacityLogit ? p.rates[kRotation]
                                  : p.rates[kOpacityLogit];
}

// Vector k of a row's geometry; what is not optimized stays.
INLINE float4 settled_geometry(const Pending& p, u32 k, const float4& stored, const float4& first, const float4& owed) {
  float v[4] = {stored.x, stored.y, stored.z, stored.w};
  const float m[4] = {first.x, first.y, first.z, first.w};
  UNROLL for (u32 j = 0; j < 4; j++) {
    const u32 column = 4 * k + j;
    if (column < kOptimized) v[j] -= m[j] * (pending_rate(p, column) * (column < kLogScale ? owed.y : owed.x));
  }
  return make_float4(v[0], v[1], v[2], v[3]);
}
// Vector k of one kind of its moments; the last float is padding.
INLINE float4 faded_geometry(u32 k, const float4& v, float decay) {
  return make_float4(v.x * decay, v.y * decay, v.z * decay, 4 * k + 3 < kOptimized ? v.w * decay : v.w);
}
INLINE float4 settled_harmonics(const Pending& p, u32 k, const float4& stored, const float4& m, const float4& owed) {
  const float rest = p.rate_rest * owed.x, dc = k ? rest : p.rate_dc * owed.x;
  float4 v = stored;
  v.x -= m.x * dc;
  v.y -= m.y * dc;
  v.z -= m.z * dc;
  v.w -= m.w * rest;
  return v;
}
INLINE float4 faded(const float4& v, float decay) {
  return make_float4(v.x * decay, v.y * decay, v.z * decay, v.w * decay);
}

}  // namespace splat::card
