// Pass 7: projection backward and Adam for each visible Gaussian in one go; its gradient never reaches memory.
// Rows that are not visible are left alone: what dense Adam would do to them has a closed form (geometry.hpp),
// applied when they are read next.
#include "../projection_gradient.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRowsPerTask = 512;

// Visible rows of one task that some pixel really saw. What lies hidden behind others has no gradient at all: for it
// this step
// is one more of those that lazy Adam makes up for later, and its 700 bytes stay untouched.
struct SeenRows {
  int count = 0;
  uint32_t rows[kRowsPerTask + 8], places[kRowsPerTask + 8];
  f8 head[kRowsPerTask + 8], tail[kRowsPerTask + 8];  // floats 0..7 and 4..11 of the pair sums
};

struct Eight {                // the last one repeats its last row in the idle lanes
  uint32_t rows[8], next[8];  // next: of the eight after these, or the last row again
  int count, at;
};

INLINE Eight rows_at(const SeenRows& seen, int begin) {
  Eight e;
  e.at = begin;
  e.count = seen.count - begin < 8 ? seen.count - begin : 8;
  for (int l = 0; l < 8; l++) e.rows[l] = seen.rows[begin + (l < e.count ? l : e.count - 1)];
  for (int l = 0; l < 8; l++) e.next[l] = seen.rows[begin + 8 + l < seen.count ? begin + 8 + l : seen.count - 1];
  return e;
}

// Adds each Gaussian's pairs in their fixed order (tiles row by row): the same bits for any number of threads.
// Calls hidden(row) for rows without gradient.
template <class Hidden>
INLINE void find_seen(const Engine& engine, const Chunk& chunk, uint32_t begin, uint32_t end, SeenRows& seen,
                      Hidden&& hidden) {
  for (uint32_t place = begin; place < end; place++) {
    const uint32_t row = engine.rows.data()[place];
    const TileBox& box = engine.boxes.data()[place];
    const float* pair = engine.pair_gradients.data() + (chunk.first_slot + box.slot) * kPairWidth;
    f8 head = all(0.f), tail = all(0.f);
    // most have just one
    if (__builtin_expect(box.pairs > 0, 1)) {
      head = load(pair);
      tail = load(pair + 4);
    }
    for (uint32_t k = 1; k < box.pairs; k++) {
      head += load(pair + k * kPairWidth);
      tail += load(pair + k * kPairWidth + 4);
    }
    if (!sign_bits((head != 0.f) | (tail != 0.f))) {
      hidden(row);
      continue;
    }
    seen.rows[seen.count] = row;
    seen.places[seen.count] = place;
    seen.head[seen.count] = head;
    seen.tail[seen.count++] = tail;
  }
}

INLINE PairSums pair_sums(const Engine& engine, const SeenRows& seen, const Eight& e, f8* unclamped) {
  f8 head[8], tail[8];
  int32_t bits[8];
  for (int l = 0; l < 8; l++) {
    const int k = e.at + (l < e.count ? l : e.count - 1);
    head[l] = seen.head[k];
    tail[l] = seen.tail[k];
    bits[l] = int32_t(engine.splats.data()[seen.places[k]].clamped_channels);
  }
  transpose(head);
  transpose(tail);
  i8 flags;
  memcpy(&flags, bits, sizeof flags);
  for (int c = 0; c < 3; c++) unclamped[c] = keep_where((flags & (1 << c)) == 0, all(1.f));
  return {head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7], tail[4], tail[5]};
}

struct Loaded {
  f8 column[kGeometryWidth], moment[kGeometryMomentsWidth];
  OwedColumns owed;
  f8 rows[kHarmonicsWidth];  // harmonics [row, chunk]
  float color[8][4];         // the colours' gradient, row by row
  f8 light[16];              // its product with the harmonics, by coefficient
  bool behind;               // at least one of the rows
};

INLINE void store_triples(const f8* column, float (*row)[4]) {
  i8 quad[4] = {(i8)column[0], (i8)column[1], (i8)column[2], i8{}};
  transpose_quads(quad);
  for (int l = 0; l < 4; l++) {
    memcpy(row[l], &quad[l], 16);
    memcpy(row[l + 4], (const char*)&quad[l] + 16, 16);
  }
}

// Five arrays are too many for the processor to see coming what it will read, so the next eight rows are asked for
// while these are worked on: a line now and then, because many at once fill the queue of misses and everything waits
// behind them.
constexpr int kLine = 64 / sizeof(float);
INLINE void ask_for(const float* row, int width) {
  for (int k = 0; k < width; k += kLine) __builtin_prefetch(row + k);
}

// Rows of harmonics stay rows: of their 48 numbers only 16 products with the colour's gradient have to become columns.
template <int Degree>
INLINE void multiply_harmonics(const f8* row, const float* color, f8* light) {
  constexpr int chunks = chunks_of(Degree);
  for (int half = 0; half < (coefficients_of(Degree) + 7) / 8; half++) {
    f8 part[3], h[3];
    for (int k = 0; k < 3; k++) part[k] = 3 * half + k < chunks ? row[3 * half + k] : all(0.f);
    split_triples(part, h);
    light[8 * half] = color[1] * h[1] + color[0] * h[0] + color[2] * h[2];  // rounded as always: green first
  }
}

template <int Degree>
INLINE void load_rows(const Engine& engine, const Eight& e, Loaded& in) {
  const Table& table = engine.table;
  constexpr int chunks = chunks_of(Degree);
  load_geometry(table.geometry, e.rows, in.column);
  in.owed.first_decay = in.owed.second_decay = all(1.f);
  in.behind = false;
  if (table.geometry_moments) {
    load_moments(table.geometry_moments, e.rows, in.moment);
    in.behind = owed_by(table.pending, in.column, in.owed);
    if (in.behind && table.pending.moves) catch_up_geometry(table.pending, in.owed, in.moment, in.column);
  }
  float last_update[8];
  store(last_update, in.column[kLastUpdate]);
  for (int l = 0; l < 8; l++) {
    f8* row = in.rows + 6 * l;
    current_harmonics(table, e.rows[l], in.behind ? age_of(table.pending, last_update[l]) : 0, chunks, row);
    const size_t next = e.next[l];
    ask_for(table.harmonics + next * kHarmonicsWidth, 8 * chunks);
    if (table.geometry_moments) ask_for(table.geometry_moments + next * kGeometryMomentsWidth, kGeometryMomentsWidth);
    multiply_harmonics<Degree>(row, in.color[l], in.light + l);
  }
  transpose(in.light);
  if (coefficients_of(Degree) > 8) transpose(in.light + 8);
  for (int j = coefficients_of(Degree); j < 16; j++) in.light[j] = all(0.f);
}

INLINE void add_statistics(const Engine& engine, const Gradient& g, const PairSums& sums, f8* column) {
  f8 x = g.mean2d[0] * (0.5f * engine.camera.width), y = g.mean2d[1] * (0.5f * engine.camera.height);
  column[kGradientSum] += square_root(x * x + y * y);
  column[kAbsoluteSum] += sums.absolute;
  column[kVisits] += 1.f;
}

// One step of Adam for a rate of 1. Moments are kept as m / sqrt(v) and sqrt(v), see Table in ops.py.
struct AdamConstants {
  float beta1, beta2, rest1, rest2, correction, epsilon;
};
template <class Decay>
INLINE f8 descent(const AdamConstants& c, f8 gradient, Decay first_decay, Decay second_decay, f8& first, f8& second) {
  f8 m = first * second * (c.beta1 * first_decay) + c.rest1 * gradient;
  f8 v = second * second * (c.beta2 * second_decay) + c.rest2 * gradient * gradient;
  second = square_root(v);
  f8 step = m / (second * c.correction + c.epsilon);
  first = step * c.correction;
  return step;
}
INLINE AdamConstants constants_of(const AdamStep& s) {
  return {s.beta1, s.beta2, s.rest1, s.rest2, s.second_correction, s.epsilon};
}

INLINE void adam_geometry(const Table& table, const Eight& e, const AdamStep& step, const Gradient& g, Loaded& in) {
  const AdamConstants constants = constants_of(step);
  for (int j = 0; j < kOptimized; j++) {
    in.column[j] -= step.rates[j] * descent(constants, g.column[j], in.owed.first_decay, in.owed.second_decay,
                                            in.moment[j], in.moment[kSecondGeometry + j]);
  }
  in.column[kLastUpdate] = all(float(step.number));
  for (int k = 0; k < 3; k++) transpose(in.moment + 8 * k);
  for (int l = 0; l < e.count; l++)
    for (int k = 0; k < 3; k++)
      store(table.geometry_moments + size_t(e.rows[l]) * kGeometryMomentsWidth + 8 * k, in.moment[8 * k + l]);
}

template <int Degree>
INLINE void adam_harmonics(const Engine& engine, const Eight& e, const AdamStep& step, const Gradient& g, Loaded& in) {
  const Table& table = engine.table;
  const AdamConstants constants = constants_of(step);
  constexpr int chunks = chunks_of(Degree), coefficients = coefficients_of(Degree);
  f8 basis[16];
  for (int j = 0; j < 16; j++) basis[j] = g.basis[j];
  transpose(basis);
  if (coefficients > 8) transpose(basis + 8);
  const float dc = step.rate_dc, rest = step.rate_rest;
  float first_decay[8], second_decay[8];
  store(first_decay, in.owed.first_decay);
  store(second_decay, in.owed.second_decay);
  for (int l = 0; l < e.count; l++) {
    const size_t at = size_t(e.rows[l]) * kHarmonicsWidth;
    const float decay1 = first_decay[l], decay2 = second_decay[l];
    f8 gradient[6], color[3];  // of the row: each number of the basis times the three channels
    repeat_triple(in.color[l], color);
    for (int half = 0; 3 * half < chunks; half++) as_triples(basis[8 * half + l], gradient + 3 * half);
    for (int k = 0; k < chunks; k++) {
      gradient[k] *= color[k % 3];
      const size_t next = size_t(e.next[l]) * kHarmonicsWidth + k / 2 * kLine;
      __builtin_prefetch((k % 2 ? table.harmonics_second : table.harmonics_first) + next);
      if (8 * k + 8 > 3 * coefficients) gradient[k] = keep_where(lane_mask(3 * coefficients - 8 * k), gradient[k]);
      float *p = table.harmonics + at + 8 * k, *m = table.harmonics_first + at + 8 * k,
            *v = table.harmonics_second + at + 8 * k;
      f8 first = load(m), second = load(v), rate = k ? all(rest) : f8{dc, dc, dc, rest, rest, rest, rest, rest};
      f8 step_at_rate_1 = descent(constants, gradient[k], decay1, decay2, first, second);
      store(m, first);
      store(v, second);
      store(p, in.rows[6 * l + k] - rate * step_at_rate_1);
    }
  }
}

// Without a step only the statistics are written: rows stay as far behind as they were.
INLINE void store_geometry(const Table& table, const Eight& e, bool whole, f8* column) {
  transpose(column);
  transpose(column + 8);
  for (int l = 0; l < e.count; l++) {
    float* row = table.geometry + size_t(e.rows[l]) * kGeometryWidth;
    if (whole) {
      store(row, column[l]);
      store(row + 8, column[8 + l]);
    } else
      memcpy(row + kGradientSum, (const float*)&column[8 + l] + (kGradientSum - 8), 3 * sizeof(float));
  }
}

template <int Degree>
INLINE void differentiate(const Engine& engine, const SeenRows& seen, const Eight& e, Loaded& in, PairSums& sums,
                          Gradient& g) {
  f8 unclamped[3];
  sums = pair_sums(engine, seen, e, unclamped);
  g.color[0] = sums.red * unclamped[0];
  g.color[1] = sums.green * unclamped[1];
  g.color[2] = sums.blue * unclamped[2];
  store_triples(g.color, in.color);
  load_rows<Degree>(engine, e, in);
  projection_gradient(engine, in.column, sums, in.light, g);
}

template <class Hidden, class Body>
void each_eight(Engine& engine, Hidden&& hidden, Body&& body) {
  constexpr int tasks_per_chunk = kChunk / kRowsPerTask;
  engine.pool.each(engine.chunk_count * tasks_per_chunk, [&](int task, int) {
    const Chunk& chunk = engine.chunks.data()[task / tasks_per_chunk];
    const int first = task % tasks_per_chunk * kRowsPerTask,
              count = chunk.count - first < kRowsPerTask ? chunk.count - first : kRowsPerTask;
    if (count <= 0) return;
    const uint32_t begin = uint32_t(task * kRowsPerTask);
    SeenRows seen;
    find_seen(engine, chunk, begin, begin + uint32_t(count), seen, hidden);
    for (int i = 0; i < seen.count; i += 8) body(seen, rows_at(seen, i));
  });
}

template <int Degree>
void update_degree(Engine& engine, const AdamStep* step) {
  auto hidden = [&](uint32_t row) { engine.table.geometry[size_t(row) * kGeometryWidth + kVisits] += 1.f; };
  each_eight(engine, hidden, [&](const SeenRows& seen, const Eight& e) {
    Loaded in;
    PairSums sums;
    Gradient g;
    differentiate<Degree>(engine, seen, e, in, sums, g);
    add_statistics(engine, g, sums, in.column);
    if (step) {
      adam_harmonics<Degree>(engine, e, *step, g, in);
      adam_geometry(engine.table, e, *step, g, in);
    }
    store_geometry(engine.table, e, step != nullptr, in.column);
  });
}

template <int Degree>
void gradients_degree(Engine& engine, const GradientArrays& out) {
  each_eight(
      engine, [&](uint32_t row) { out.visible[row] = true; },
      [&](const SeenRows& seen, const Eight& e) {
        Loaded in;
        PairSums sums;
        Gradient g;
        differentiate<Degree>(engine, seen, e, in, sums, g);
        const float half_x = 0.5f * engine.camera.width, half_y = 0.5f * engine.camera.height;
        for (int l = 0; l < e.count; l++) {
          const size_t row = e.rows[l];
          for (int j = 0; j < kOptimized; j++) out.geometry[row * kGeometryWidth + j] = g.column[j][l];
          for (int k = 0; k < 3 * coefficients_of(Degree); k++)
            out.harmonics[row * kHarmonicsWidth + k] = g.basis[k / 3][l] * g.color[k % 3][l];
          out.mean2d[2 * row] = g.mean2d[0][l] * half_x;
          out.mean2d[2 * row + 1] = g.mean2d[1][l] * half_y;
          out.mean2d_absolute[row] = sums.absolute[l];
          out.visible[row] = true;
        }
      });
}

}  // namespace

void update(Engine& engine, const AdamStep* step) {
  constexpr void (*by_degree[])(Engine&, const AdamStep*) = {update_degree<0>, update_degree<1>, update_degree<2>,
                                                             update_degree<3>};
  by_degree[engine.settings.sh_degree](engine, step);
}

void gradients(Engine& engine, const GradientArrays& out) {
  constexpr void (*by_degree[])(Engine&, const GradientArrays&) = {gradients_degree<0>, gradients_degree<1>,
                                                                   gradients_degree<2>, gradients_degree<3>};
  by_degree[engine.settings.sh_degree](engine, out);
}

}  // namespace splat::SPLAT_LEVEL
