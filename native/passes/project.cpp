// Pass 1: every Gaussian to the screen; a record, a tile box and a depth key for those that can be seen.
#include "../geometry.hpp"
#include "../harmonics.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kChunk = 4096;  // rows a task; its records stay in the second-level cache until their colours come

// The visible rows of a chunk, with their current means and ages for the colours.
struct ChunkList {
  uint32_t *rows, *keys;
  int count = 0;
  float mean[3][kChunk + 8], last_update[kChunk + 8];
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

INLINE void emit(Engine& engine, const uint32_t* rows, const f8* column, const Projection& o, int lanes, ChunkList& list) {
  const Camera& camera = engine.camera;
  f8 opacity = effective_opacity(engine.settings, o);
  f8 reach = log2_of(maximum(opacity * 255.f, all(1e-30f)));
  f8 radius2 = maximum(reach * (2.f / kLog2E), all(0.f));
  f8 half_width = square_root(radius2 * o.a), half_height = square_root(radius2 * o.c);
  f8 x = camera.fx * o.tx * o.inverse_z + camera.cx, y = camera.fy * o.ty * o.inverse_z + camera.cy;
  i8 seen = finite(column) & (o.tz > kNear) & (reach > 0.f) & (o.det_after > 0.f) & (half_width < 1e9f) & (half_height < 1e9f) &
            (x + half_width > 0.5f) & (x - half_width < camera.width - 0.5f) &
            (y + half_height > 0.5f) & (y - half_height < camera.height - 0.5f);
  int mask = sign_bits(seen) & lanes;
  if (!mask) return;
  i8 column0 = first_tile(x - half_width, engine.tile_columns), column1 = last_tile(x + half_width, engine.tile_columns);
  i8 row0 = first_tile(y - half_height, engine.tile_rows), row1 = last_tile(y + half_height, engine.tile_rows);
  f8 inverse_a = 1.f / o.a, across = 0.5f * kLog2E * inverse_a, tilt = o.b * inverse_a, down = 0.5f * kLog2E * o.a / o.det_after;
  Splat* splats = engine.splats.data();
  TileBox* boxes = engine.boxes.data();
  f8 part[16] = {x, y, across, tilt, down, reach - kLog2Of255, reach, all(0), all(0), all(0), half_width, half_height};
  transpose(part), transpose(part + 8);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    uint32_t row = rows[l];
    float* splat = &splats[row].x;
    store(splat, part[l]), store(splat + 8, part[8 + l]);
    boxes[row] = {uint16_t(column0[l]), uint16_t(column1[l]), uint16_t(row0[l]), uint16_t(row1[l]), 0, 0};
    list.rows[list.count] = row;
    float depth = o.tz[l];
    memcpy(&list.keys[list.count], &depth, 4);
    for (int j = 0; j < 3; j++) list.mean[j][list.count] = column[j][l];
    list.last_update[list.count++] = column[kLastUpdate][l];
  }
}

INLINE void colour_eight(Engine& engine, const ChunkList& list, int begin) {
  const int count = list.count - begin < 8 ? list.count - begin : 8;
  const Camera& camera = engine.camera;
  const Table& table = engine.table;
  const int degree = engine.settings.sh_degree, coefficients = coefficients_of(degree), chunks = chunks_of(degree);
  f8 h[kHarmonicsWidth], basis[16];
  for (int l = 0; l < 8; l++) {
    f8 part[6];
    int k = begin + (l < count ? l : count - 1);
    current_harmonics(table, list.rows[k], table.pending.drift ? age_of(table.pending, list.last_update[k]) : 0, chunks, part);
    for (int j = 0; j < chunks; j++) h[8 * j + l] = part[j];
  }
  for (int k = 0; k < chunks; k++) transpose(h + 8 * k);
  f8 dx = load(list.mean[0] + begin) - camera.position[0], dy = load(list.mean[1] + begin) - camera.position[1];
  f8 dz = load(list.mean[2] + begin) - camera.position[2];
  f8 inverse = 1.f / square_root(maximum(dx * dx + dy * dy + dz * dz, all(1e-30f)));
  harmonics_basis(dx * inverse, dy * inverse, dz * inverse, basis);
  f8 color[3];
  for (int c = 0; c < 3; c++) {
    f8 sum = all(0.5f);
    for (int j = 0; j < coefficients; j++) sum += basis[j] * h[3 * j + c];
    color[c] = sum;
  }
  for (int l = 0; l < count; l++) {
    Splat& splat = engine.splats.data()[list.rows[begin + l]];
    float r = color[0][l], g = color[1][l], b = color[2][l];
    splat.clamped_channels = (r < 0) | (g < 0) << 1 | (b < 0) << 2;
    splat.red = r < 0 ? 0 : r, splat.green = g < 0 ? 0 : g, splat.blue = b < 0 ? 0 : b;
  }
}

void project_chunk(Engine& engine, int chunk) {
  const Table& table = engine.table;
  const int begin = chunk * kChunk, end = begin + kChunk < table.count ? begin + kChunk : table.count;
  ChunkList list;
  list.rows = engine.depth_rows[0].data() + begin, list.keys = engine.depth_keys[0].data() + begin;
  for (int i = begin; i < end; i += 8) {
    uint32_t rows[8];
    for (int l = 0; l < 8; l++) rows[l] = uint32_t(i + l < end ? i + l : end - 1);
    f8 column[kGeometryWidth], moment[kGeometryMomentsWidth], unused[2];
    load_geometry(table.geometry, rows, column);
    catch_up_geometry(table, rows, column, moment, &unused[0], &unused[1]);
    Projection o;
    to_camera(engine.camera, column, o);
    if (!sign_bits(o.tz > kNear)) continue;
    shape(column, o), screen_matrix(engine.camera, o), footprint(engine.settings, o);
    emit(engine, rows, column, o, end - i >= 8 ? kAllLanes : (1 << (end - i)) - 1, list);
  }
  for (int j = 0; j < 3; j++)  // the last vector's idle lanes read zeros, not what the stack held
    for (int l = 0; l < 8; l++) list.mean[j][list.count + l] = 0;
  for (int i = 0; i < list.count; i += 8) colour_eight(engine, list, i);
  engine.chunk_counts.data()[chunk] = list.count;
}

}  // namespace

void project(Engine& engine) {
  const int count = engine.table.count, chunks = (count + kChunk - 1) / kChunk;
  engine.tile_columns = (engine.camera.width + kTile - 1) / kTile;
  engine.tile_rows = (engine.camera.height + kTile - 1) / kTile;
  engine.splats.at_least(count), engine.boxes.at_least(count), engine.visible.at_least(count);
  for (int k = 0; k < 2; k++) engine.depth_rows[k].at_least(count), engine.depth_keys[k].at_least(count);
  int* counts = engine.chunk_counts.at_least(chunks + 1);
  engine.pool.each(chunks, [&](int chunk, int) { project_chunk(engine, chunk); });
  int total = 0;
  for (int k = 0; k < chunks; k++) { int n = counts[k]; counts[k] = total, total += n; }
  counts[chunks] = engine.visible_count = total;
  uint32_t *visible = engine.visible.data(), *keys = engine.depth_keys[1].data();
  const uint32_t *rows_in = engine.depth_rows[0].data(), *keys_in = engine.depth_keys[0].data();
  engine.pool.each(chunks, [&](int k, int) {
    size_t bytes = sizeof(uint32_t) * size_t(counts[k + 1] - counts[k]);
    memcpy(visible + counts[k], rows_in + size_t(k) * kChunk, bytes);
    memcpy(keys + counts[k], keys_in + size_t(k) * kChunk, bytes);
  });
}

}  // namespace splat::SPLAT_LEVEL
