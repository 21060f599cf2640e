// Pass 1: every Gaussian to the screen; a record, a tile box and a depth key for those that can be seen.
#include <cmath>

#include "../geometry.hpp"
#include "../harmonics.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

// What is visible of a chunk. A chunk's records stay in the second-level cache until their colours come; the depths'
// range tells the sort how many bits it must look at.
struct Places {
  uint32_t first, *rows;
  uint64_t* keys;
  Splat* splats;
  TileBox* boxes;
  Chunk sums = {0, 0, UINT32_MAX, 0, 0, 0};
};

// Pixel range to tiles. The ellipse test proper follows later: here a little too much is fine, too little is not.
INLINE i8 first_tile(f8 low_edge, int tiles) {
  f8 pixel = round_up(clamp(low_edge - 0.51f, all(0.f), all(float(tiles * kTile - 1))));
  return truncate(pixel) >> 5;
}
INLINE i8 last_tile(f8 high_edge, int tiles) {
  f8 pixel = clamp(high_edge - 0.49f, all(0.f), all(float(tiles * kTile - 1)));
  return truncate(pixel) >> 5;
}
static_assert(kTile == 32, "tiles are found by shifting");

// NaN and infinities would pass through min and max as ordinary numbers: x - x is 0 only for finite x.
INLINE i8 finite(const f8* column) {
  f8 sum = column[0];
  for (int j = 1; j <= kFilter; j++) sum += column[j];
  return (sum - sum) == 0.f;
}

INLINE void emit(Engine& engine, const uint32_t* rows, const f8* column, const Projection& o, int lanes,
                 Places& places) {
  const Camera& camera = engine.camera;
  f8 opacity = effective_opacity(engine.settings, o);
  f8 reach = log2_of(maximum(opacity * 255.f, all(1e-30f)));
  f8 radius2 = maximum(reach * (2.f / kLog2E), all(0.f));
  f8 half_width = square_root(radius2 * o.a), half_height = square_root(radius2 * o.c);
  f8 x = camera.fx * o.tx * o.inverse_z + camera.cx, y = camera.fy * o.ty * o.inverse_z + camera.cy;
  i8 seen = finite(column) & (o.tz > kNear) & (reach > 0.f) & (o.det_after > 0.f) & (half_width < 1e9f) &
            (half_height < 1e9f) & (x + half_width > 0.5f) & (x - half_width < camera.width - 0.5f) &
            (y + half_height > 0.5f) & (y - half_height < camera.height - 0.5f);
  int mask = sign_bits(seen) & lanes;
  if (!mask) return;
  i8 column0 = first_tile(x - half_width, engine.tile_columns),
     column1 = last_tile(x + half_width, engine.tile_columns);
  i8 row0 = first_tile(y - half_height, engine.tile_rows), row1 = last_tile(y + half_height, engine.tile_rows);
  f8 inverse_a = 1.f / o.a, across = 0.5f * kLog2E * inverse_a, tilt = o.b * inverse_a,
     down = 0.5f * kLog2E * o.a / o.det_after;
  f8 part[16] = {
      x,      y,      across,     tilt,        down,      reach - kLog2Of255, reach,     all(0),
      all(0), all(0), half_width, half_height, column[0], column[1],          column[2], column[kLastUpdate]};
  f8 pairs = to_float(column1 - column0 + 1) * to_float(row1 - row0 + 1);  // binning looks closer at large ones
  f8 box[8] = {(f8)(column0 | column1 << 16), (f8)(row0 | row1 << 16), o.tz, (f8)truncate(pairs)};
  transpose(part);
  transpose(part + 8);
  transpose(box);
  Chunk& sums = places.sums;
  for (; mask; mask &= mask - 1) {
    const int l = __builtin_ctz(mask), k = sums.count++;
    float* splat = &places.splats[k].x;
    TileBox& tiles = places.boxes[k];
    store(splat, part[l]);
    store(splat + 8, part[8 + l]);
    memcpy(&tiles, &box[l], sizeof(TileBox));
    const uint32_t depth = tiles.slot;  // its place on the way
    tiles.slot = uint32_t(sums.slots);
    places.rows[k] = rows[l];
    places.keys[k] = uint64_t(depth) << 32 | (places.first + uint32_t(k));
    sums.nearest = depth < sums.nearest ? depth : sums.nearest;
    sums.farthest = depth > sums.farthest ? depth : sums.farthest;
    sums.tile_rows += tiles.row1 - tiles.row0 + 1;
    sums.slots += tiles.pairs;
  }
}

template <int Degree>
INLINE void colour_eight(const Engine& engine, const Places& places, int begin) {
  const int count = places.sums.count - begin < 8 ? places.sums.count - begin : 8;
  const Camera& camera = engine.camera;
  const Table& table = engine.table;
  constexpr int coefficients = coefficients_of(Degree), chunks = chunks_of(Degree);
  f8 h[kHarmonicsWidth], basis[16], tail[8];
  for (int l = 0; l < 8; l++) {
    f8 part[6];
    const int k = begin + (l < count ? l : count - 1);
    const Splat& splat = places.splats[k];
    tail[l] = load(&splat.green);
    current_harmonics(table, places.rows[k], table.pending.by_age ? age_of(table.pending, splat.unused[2]) : 0, chunks,
                      part);
    for (int j = 0; j < chunks; j++) h[8 * j + l] = part[j];
  }
  for (int k = 0; k < chunks; k++) transpose(h + 8 * k);
  transpose(tail);
  f8 dx = tail[4] - camera.position[0], dy = tail[5] - camera.position[1], dz = tail[6] - camera.position[2];
  f8 inverse = 1.f / square_root(maximum(dx * dx + dy * dy + dz * dz, all(1e-30f)));
  harmonics_basis(dx * inverse, dy * inverse, dz * inverse, basis);
  f8 color[3];
  for (int c = 0; c < 3; c++) {
    f8 sum = all(0.5f);
    for (int j = 0; j < coefficients; j++) sum += basis[j] * h[3 * j + c];
    color[c] = sum;
  }
  i8 clamped = ((color[0] < 0.f) & 1) | ((color[1] < 0.f) & 2) | ((color[2] < 0.f) & 4);
  for (int c = 0; c < 3; c++) color[c] = maximum(color[c], all(0.f));
  f8 packed[8] = {color[0], color[1], color[2], (f8)clamped};
  transpose(packed);
  for (int l = 0; l < count; l++) {
    Splat& splat = places.splats[begin + l];
    memcpy(&splat.red, &packed[l], 3 * sizeof(float));
    memcpy(&splat.clamped_channels, (const float*)&packed[l] + 3, sizeof(uint32_t));
  }
}

// A quick look from the rows alone, before what they owe is known: half-spaces n.mean + d + r radius > 0 outside of
// which nothing can be seen. What a row owes has a bound, because Adam's |m| / sqrt(v) has one (Cauchy-Schwarz).
struct Frustum {
  float normal[5][3], offset[5], per_radius[5];
  float growth;  // of a scale, at most
};

Frustum frustum_of(const Camera& camera, const Settings& settings, const Pending& pending) {
  float away = 0, growth = 1;
  if (pending.by_age && pending.moves) {
    const Owed oldest = pending.by_age[kPendingAges - 1];
    const float beta1 = pending.by_age[1].first_decay, beta2 = pending.by_age[1].second_decay;
    const float most = 1.01f * (1 - beta1) / std::sqrt((1 - beta2) * (1 - beta1 * beta1 / beta2));
    away = std::sqrt(3.f) * most * oldest.mean_drift;
    growth = std::exp(most * oldest.drift * pending.rates[kLogScale]);
  }
  constexpr float kSigmas = 3.34f;  // sqrt(2 ln 255), where an opacity of one has fallen to 1/255
  const float blur = kSigmas * std::sqrt(settings.kernel_size) + 1, *W = camera.rotation, *t = camera.translation;
  auto steepest = [](float low, float high) { return std::sqrt(1 + std::fmax(low * low, high * high)); };
  const float focal[2] = {camera.fx, camera.fy}, middle[2] = {camera.cx, camera.cy},
              size[2] = {float(camera.width), float(camera.height)};
  const float stretch[2] = {steepest(camera.slope_low_x, camera.slope_high_x),
                            steepest(camera.slope_low_y, camera.slope_high_y)};
  Frustum f;
  f.growth = growth;
  for (int side = 0; side < 4; side++) {  // left, right, top, bottom: f x + m z + sigmas f stretch radius > 0
    const int axis = side / 2;
    const float along = side % 2 ? -focal[axis] : focal[axis],
                deep = (side % 2 ? size[axis] - middle[axis] : middle[axis]) + blur;
    for (int k = 0; k < 3; k++) f.normal[side][k] = along * W[3 * axis + k] + deep * W[6 + k];
    f.offset[side] = along * t[axis] + deep * t[2] + (std::fabs(along) + std::fabs(deep)) * away;
    f.per_radius[side] = kSigmas * focal[axis] * stretch[axis];
  }
  for (int k = 0; k < 3; k++) f.normal[4][k] = W[6 + k];
  f.offset[4] = t[2] - kNear + away;
  f.per_radius[4] = 0;
  return f;
}

INLINE int candidates_of(const Frustum& f, const f8* column) {
  f8 largest = maximum(maximum(column[kLogScale], column[kLogScale + 1]), column[kLogScale + 2]);
  f8 radius = f.growth * exp2_of(clamp(largest * kLog2E, all(-60.f), all(60.f))) + column[kFilter];
  i8 outside = {};
  for (int side = 0; side < 5; side++) {
    const float* n = f.normal[side];
    f8 distance = n[0] * column[0] + n[1] * column[1] + n[2] * column[2] + f.offset[side] + f.per_radius[side] * radius;
    outside |= distance <= 0.f;
  }
  return ~sign_bits(outside) & kAllLanes;
}

INLINE void project_eight_rows(Engine& engine, const uint32_t* rows, int lanes, Places& places) {
  const Table& table = engine.table;
  f8 column[kGeometryWidth], first[16];
  OwedColumns owed;
  Projection o;
  load_geometry(table.geometry, rows, column);
  if (table.pending.moves && owed_by(table.pending, column, owed)) {
    load_owed_moments(table, rows, column[kLastUpdate], first);
    catch_up_geometry(table.pending, owed, first, column);
  }
  project_eight(engine.camera, engine.settings, column, o);
  emit(engine, rows, column, o, lanes, places);
}

template <int Degree>
void project_chunk(Engine& engine, const Frustum& frustum, int chunk) {
  const Table& table = engine.table;
  const int begin = chunk * kChunk, end = begin + kChunk < table.count ? begin + kChunk : table.count;
  Places places{uint32_t(begin), engine.rows.data() + begin, engine.depth_keys[0].data() + begin,
                engine.splats.data() + begin, engine.boxes.data() + begin};
  uint32_t candidates[kChunk + 8];
  int count = 0;
  for (int i = begin; i < end; i += 8) {
    uint32_t rows[8];
    f8 column[kGeometryWidth];
    for (int l = 0; l < 8; l++) rows[l] = uint32_t(i + l < end ? i + l : end - 1);
    load_geometry(table.geometry, rows, column);
    int lanes = candidates_of(frustum, column) & (end - i >= 8 ? kAllLanes : (1 << (end - i)) - 1);
    for (; lanes; lanes &= lanes - 1) candidates[count++] = uint32_t(i + __builtin_ctz(lanes));
  }
  for (int l = 0; l < 8 && count; l++) candidates[count + l] = candidates[count - 1];
  for (int i = 0; i < count; i += 8)
    project_eight_rows(engine, candidates + i, count - i >= 8 ? kAllLanes : (1 << (count - i)) - 1, places);
  for (int i = 0; i < places.sums.count; i += 8) colour_eight<Degree>(engine, places, i);
  engine.chunks.data()[chunk] = places.sums;
}

}  // namespace

void project(Engine& engine) {
  const int count = engine.table.count, chunks = engine.chunk_count = (count + kChunk - 1) / kChunk;
  engine.tile_columns = (engine.camera.width + kTile - 1) / kTile;
  engine.tile_rows = (engine.camera.height + kTile - 1) / kTile;
  engine.splats.at_least(count);
  engine.boxes.at_least(count);
  engine.rows.at_least(count);
  for (auto& keys : engine.depth_keys) keys.at_least(count);
  Chunk* chunk = engine.chunks.at_least(chunks);
  const Frustum frustum = frustum_of(engine.camera, engine.settings, engine.table.pending);
  constexpr void (*by_degree[])(Engine&, const Frustum&, int) = {project_chunk<0>, project_chunk<1>, project_chunk<2>,
                                                                 project_chunk<3>};
  engine.pool.each(chunks, [&](int k, int) { by_degree[engine.settings.sh_degree](engine, frustum, k); });
  engine.visible_count = 0;
  engine.tile_rows_touched = 0;
  engine.slot_count = 0;
  engine.nearest = UINT32_MAX;
  engine.farthest = 0;
  for (int k = 0; k < chunks; k++) {
    engine.visible_count += chunk[k].count;
    engine.tile_rows_touched += size_t(chunk[k].tile_rows);
    chunk[k].first_slot = engine.slot_count;
    engine.slot_count += chunk[k].slots;  // whoever calls must stop if they are more than kMostSlots
    engine.nearest = chunk[k].nearest < engine.nearest ? chunk[k].nearest : engine.nearest;
    engine.farthest = chunk[k].farthest > engine.farthest ? chunk[k].farthest : engine.farthest;
  }
}

}  // namespace splat::SPLAT_LEVEL
