// Passes 4 and 6: blending forward and backward, both front to back. One warp a tile of 16 x 16 pixels, eight pixels a
// lane, one in each subtile of 8 x 4. 32 pairs at a time come into shared memory with a mask of the subtiles they
// reach;
// the warp walks those that reach any.
#include "ellipse.hpp"

namespace splat::card {

constexpr int kBatch = 32;

struct Tile {
  int number, x0, y0, px, py;  // its first pixel, and the lane's in the first subtile
  size_t plane;
  INLINE int x(int k) const { return px + 8 * (k & 1); }  // of the lane's pixel in subtile k
  INLINE int y(int k) const { return py + 4 * (k >> 1); }
};
INLINE Tile tile_of(const Frame& f) {
  const int number = blockIdx.x * kTilesPerBlock + warp_number(), lane = lane_number();
  const int x0 = number % f.tile_columns * kTileSide, y0 = number / f.tile_columns * kTileSide;
  return {number, x0, y0, x0 + (lane & 7), y0 + (lane >> 3), size_t(f.width) * f.height};
}

// Where a batch of a block's warps lies in shared memory; the shape's last two numbers make room for mask and pair.
#define BATCH_MEMORY                               \
  SHARED(float4, centres, kTilesPerBlock* kBatch); \
  SHARED(float4, shapes, kTilesPerBlock* kBatch);  \
  SHARED(float4, colours, kTilesPerBlock* kBatch)

template <class Memory>
INLINE u32 load_batch(const BlendArguments& a, const Tile& tile, u32 i, u32 end, Memory centres, Memory shapes,
                      Memory colours) {
  u32 mask = 0;
  if (i + lane_number() < end) {
    const u32 pair = fetch(a.pairs, i + lane_number());
    const Splat s = fetch_splat(a.splats, fetch(a.pair_rows, pair));
    const int at = warp_number() * kBatch + lane_number();
    mask = subtile_mask(s, float(tile.x0), float(tile.y0));
    centres[at] = s.centre;
    colours[at] = s.colour;
    shapes[at] = make_float4(s.shape.x, s.shape.y, __uint_as_float(mask), __uint_as_float(pair));
  }
  const u32 reaching = __ballot_sync(kAllLanes, mask != 0);
  __syncwarp();
  return reaching;
}

// A Gaussian seen from the lane's two columns of pixels: alpha is 2^(start - down e^2), e = e0 + 4 k / 2.
struct Columns {
  float dx[2], start[2], e0[2];
};
INLINE Columns columns_of(const Tile& tile, const float4& centre, const float4& shape) {
  const float dx = tile.px + 0.5f - centre.x, dy = tile.py + 0.5f - centre.y, dx1 = dx + 8.f;
  return {{dx, dx1},
          {centre.w - shape.x * dx * dx, centre.w - shape.x * dx1 * dx1},
          {dy - centre.z * dx, dy - centre.z * dx1}};
}

// Forward and backward must agree to the last bit on where a pixel dies: nothing here may be contracted.
INLINE float weight_of(float value, float cap, float T, float& rest, bool& alive) {
  const float weight = __fmul_rn(value >= kMinAlpha ? fminf(value, cap) : 0.f, T);
  rest = __fsub_rn(T, weight);
  alive = rest > kMinTransmittance;
  return alive ? weight : 0.f;
}

KERNEL(kBlendThreads, blend_forward, BlendArguments) {
  BATCH_MEMORY;
  const Frame& f = a.frame;
  const Tile tile = tile_of(f);
  if (tile.number >= f.tile_columns * f.tile_rows) return;
  float T[kSubtiles], red[kSubtiles], green[kSubtiles], blue[kSubtiles];
  UNROLL for (int k = 0; k < kSubtiles; k++) {
    T[k] = tile.x(k) < f.width && tile.y(k) < f.height ? 1.f : -1.f;  // below zero: finished
    red[k] = green[k] = blue[k] = 0.f;
  }
  const u32 end = fetch(a.begins, tile.number + 1);
  u32 i = fetch(a.begins, tile.number);
  for (; i < end; i += kBatch) {
    bool live = false;
    UNROLL for (int k = 0; k < kSubtiles; k++) live |= T[k] > 0.f;
    if (!__any_sync(kAllLanes, live)) break;
    for (u32 left = load_batch(a, tile, i, end, centres, shapes, colours); left; left &= left - 1) {
      const int j = warp_number() * kBatch + __ffs(int(left)) - 1;
      const float4 centre = centres[j], shape = shapes[j], colour = colours[j];
      const u32 mask = uniform(__float_as_uint(shape.z));
      const Columns c = columns_of(tile, centre, shape);
      UNROLL for (int k = 0; k < kSubtiles; k++) if (mask >> k & 1) {
        const float e = c.e0[k & 1] + 4.f * (k >> 1), value = exp2_of(c.start[k & 1] - shape.y * e * e);
        float rest;
        bool alive;
        const float weight = weight_of(value, f.max_alpha, T[k], rest, alive);
        T[k] = alive ? rest : -fabsf(T[k]);
        red[k] += weight * colour.x;
        green[k] += weight * colour.y;
        blue[k] += weight * colour.z;
      }
    }
    __syncwarp();
  }
  if (lane_number() == 0) store(a.ends, tile.number, min(i, end));
  UNROLL for (int k = 0; k < kSubtiles; k++) {
    if (tile.x(k) >= f.width || tile.y(k) >= f.height) continue;
    const size_t at = size_t(tile.y(k)) * f.width + tile.x(k);
    const float rest = fabsf(T[k]);
    store(a.transmittance, at, rest);
    store(a.colour, at, red[k] + rest * f.background[0]);
    store(a.colour, tile.plane + at, green[k] + rest * f.background[1]);
    store(a.colour, 2 * tile.plane + at, blue[k] + rest * f.background[2]);
  }
}

// Ten sums over the warp with twelve shuffles instead of fifty: at each of the first steps a lane gives away half of
// its values and takes the other lane's share of those it keeps. Lane l ends with sum number sum_of_lane(l).
INLINE float exchanged(bool upper, float a, float b, int distance) {
  const float keep = upper ? b : a, give = upper ? a : b;
  return keep + __shfl_xor_sync(kAllLanes, give, distance);
}
INLINE float transposed_sum(const float* v, int lane) {
  float u[5], w[3], x[2];
  UNROLL for (int i = 0; i < 5; i++) u[i] = exchanged(lane & 16, v[2 * i], v[2 * i + 1], 16);
  w[0] = exchanged(lane & 8, u[0], u[1], 8);
  w[1] = exchanged(lane & 8, u[2], u[3], 8);
  w[2] = u[4] + __shfl_xor_sync(kAllLanes, u[4], 8);
  x[0] = exchanged(lane & 4, w[0], w[1], 4);
  x[1] = w[2] + __shfl_xor_sync(kAllLanes, w[2], 4);
  const float y = exchanged(lane & 2, x[0], x[1], 2);
  return y + __shfl_xor_sync(kAllLanes, y, 1);
}
INLINE int sum_of_lane(int lane) {  // -1: another lane has it too
  if (lane & 2) return lane & 13 ? -1 : 8 + (lane >> 4);
  return lane & 1 ? -1 : (lane & 4) | (lane >> 2 & 2) | lane >> 4;
}

// What backward knows of the lane's eight pixels.
struct Pixels {
  float T[kSubtiles], behind[kSubtiles], red[kSubtiles], green[kSubtiles], blue[kSubtiles];
};
INLINE void load_pixels(const BlendArguments& a, const Tile& tile, Pixels& p) {
  const Frame& f = a.frame;
  UNROLL for (int k = 0; k < kSubtiles; k++) {
    p.T[k] = -1.f;
    p.behind[k] = p.red[k] = p.green[k] = p.blue[k] = 0.f;
    if (tile.x(k) >= f.width || tile.y(k) >= f.height) continue;
    const size_t at = size_t(tile.y(k)) * f.width + tile.x(k), green = tile.plane + at, blue = 2 * tile.plane + at;
    p.T[k] = 1.f;
    p.red[k] = fetch(a.colour_gradient, at);
    p.green[k] = fetch(a.colour_gradient, green);
    p.blue[k] = fetch(a.colour_gradient, blue);
    p.behind[k] = p.red[k] * load(a.colour, at) + p.green[k] * load(a.colour, green) + p.blue[k] * load(a.colour, blue);
    if (a.transmittance_gradient) p.behind[k] += fetch(a.transmittance_gradient, at) * load(a.transmittance, at);
  }
}

// q = dL/d(ln alpha) = w c.g - R alpha / (1 - alpha), where R is what everything behind adds to the loss: it starts
// as the finished colour times g and loses w c.g at each Gaussian, front to back, as in forward. Sums of q with powers
// of dx and e are enough for all gradients; those of one column of pixels share dx.
template <bool Absolute>
INLINE void blend_backward_tile(const BlendArguments& a) {
  BATCH_MEMORY;
  const Frame& f = a.frame;
  const Tile tile = tile_of(f);
  if (tile.number >= f.tile_columns * f.tile_rows) return;
  const int lane = lane_number(), number = sum_of_lane(lane);
  Pixels p;
  load_pixels(a, tile, p);
  const u32 end = fetch(a.ends, tile.number);
  for (u32 i = fetch(a.begins, tile.number); i < end; i += kBatch) {
    for (u32 left = load_batch(a, tile, i, end, centres, shapes, colours); left; left &= left - 1) {
      const int j = warp_number() * kBatch + __ffs(int(left)) - 1;
      const float4 centre = centres[j], shape = shapes[j], colour = colours[j];
      const u32 mask = uniform(__float_as_uint(shape.z));
      const Columns c = columns_of(tile, centre, shape);
      float red = 0, green = 0, blue = 0, q0[2] = {0, 0}, q1[2] = {0, 0}, q2 = 0, absolute = 0;
      bool any = false;
      UNROLL for (int k = 0; k < kSubtiles; k++) if (mask >> k & 1) {
        const float e = c.e0[k & 1] + 4.f * (k >> 1), value = exp2_of(c.start[k & 1] - shape.y * e * e);
        float rest;
        bool alive;
        const float weight = weight_of(value, f.max_alpha, p.T[k], rest, alive);
        p.T[k] = alive ? rest : -1.f;
        any |= weight > 0.f;
        const float by_weight = colour.x * p.red[k] + colour.y * p.green[k] + colour.z * p.blue[k];
        p.behind[k] -= weight * by_weight;
        red += weight * p.red[k];
        green += weight * p.green[k];
        blue += weight * p.blue[k];
        float q = weight * (by_weight - p.behind[k] * inverse(rest));
        q = value <= f.max_alpha ? q : 0.f;  // the cap has no slope
        const float qe = q * e;
        q0[k & 1] += q;
        q1[k & 1] += qe;
        q2 += qe * e;
        if (Absolute) {
          const float by_y = (2 / kLog2E) * shape.y * e, by_x = (2 / kLog2E) * shape.x * c.dx[k & 1] - centre.z * by_y;
          absolute += fabsf(q * by_x) * (0.5f * f.width) + fabsf(q * by_y) * (0.5f * f.height);
        }
      }
      if (!__any_sync(kAllLanes, any)) continue;
      const float qx[2] = {q0[0] * c.dx[0], q0[1] * c.dx[1]};
      const float sums[10] = {red,
                              green,
                              blue,
                              q0[0] + q0[1],
                              qx[0] + qx[1],
                              q1[0] + q1[1],
                              qx[0] * c.dx[0] + qx[1] * c.dx[1],
                              q1[0] * c.dx[0] + q1[1] * c.dx[1],
                              q2,
                              absolute};
      const float sum = transposed_sum(sums, lane);
      const u32 pair = __float_as_uint(shape.w);
      if (number >= 0) store(a.slots, size_t(pair) * kSlotWidth + number, sum);
      if (lane == 0) store(a.touched, pair, u8(1));
    }
    __syncwarp();
  }
}

KERNEL(kBlendThreads, blend_backward, BlendArguments) { blend_backward_tile<false>(a); }
KERNEL(kBlendThreads, blend_backward_absolute, BlendArguments) { blend_backward_tile<true>(a); }

}  // namespace splat::card
