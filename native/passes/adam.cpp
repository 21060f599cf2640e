// Dense Adam over every row, and settling: both touch the whole table. The twins of the lazy update.
#include "../geometry.hpp"
#include "../harmonics.hpp"

namespace splat::SPLAT_LEVEL {
namespace {

constexpr int kRowsPerTask = 2048;

template <class Body>
void each_row_of(ThreadPool& pool, int count, Body&& body) {
  pool.each((count + kRowsPerTask - 1) / kRowsPerTask, [&](int task, int) {
    const int end = (task + 1) * kRowsPerTask < count ? (task + 1) * kRowsPerTask : count;
    for (int row = task * kRowsPerTask; row < end; row++) body(size_t(row));
  });
}

INLINE void adam_one(const AdamStep& step, float rate, float gradient, float& parameter, float& first, float& second) {
  const float m = first * second * step.beta1 + step.rest1 * gradient;
  second = __builtin_sqrtf(second * second * step.beta2 + step.rest2 * gradient * gradient);
  const float direction = m / (second * step.second_correction + step.epsilon);
  first = direction * step.second_correction;
  parameter -= rate * direction;
}

}  // namespace

void adam(ThreadPool& pool, Table& table, const float* geometry, const float* harmonics, const AdamStep& step) {
  each_row_of(pool, table.count, [&](size_t row) {
    float *p = table.geometry + row * kGeometryWidth, *m = table.geometry_moments + row * kGeometryMomentsWidth;
    for (int j = 0; j < kOptimized; j++)
      adam_one(step, step.rates[j], geometry[row * kGeometryWidth + j], p[j], m[j], m[kSecondGeometry + j]);
    p[kLastUpdate] = float(step.number);
    for (int k = 0; k < kHarmonicsWidth; k++) {
      const size_t at = row * kHarmonicsWidth + k;
      adam_one(step, k < 3 ? step.rate_dc : step.rate_rest, harmonics[at], table.harmonics[at],
               table.harmonics_first[at], table.harmonics_second[at]);
    }
  });
}

void settle(ThreadPool& pool, Table& table) {
  const Pending& pending = table.pending;
  if (!pending.by_age) return;
  constexpr int chunks = kHarmonicsWidth / 8;
  each_row_of(pool, table.count, [&](size_t row) {
    float *p = table.geometry + row * kGeometryWidth, *m = table.geometry_moments + row * kGeometryMomentsWidth;
    const int age = age_of(pending, p[kLastUpdate]);
    if (age == 0) return;
    const Owed owed = owed_at(pending, age);
    const float decay2 = __builtin_sqrtf(owed.second_decay),
                decay1 = owed.first_decay / decay2;  // of m / sqrt(v) and sqrt(v)
    for (int j = 0; j < kOptimized; j++) {
      float drift = j < 3 ? owed.mean_drift : owed.drift;
      p[j] -= m[j] * (pending.rates[j] * drift);
      m[j] *= decay1;
      m[kSecondGeometry + j] *= decay2;
    }
    p[kLastUpdate] = float(pending.step);
    f8 h[chunks];
    current_harmonics(table, uint32_t(row), age, chunks, h);
    for (int k = 0; k < chunks; k++) {
      const size_t at = row * kHarmonicsWidth + 8 * k;
      store(table.harmonics + at, h[k]);
      store(table.harmonics_first + at, load(table.harmonics_first + at) * decay1);
      store(table.harmonics_second + at, load(table.harmonics_second + at) * decay2);
    }
  });
}

}  // namespace splat::SPLAT_LEVEL
