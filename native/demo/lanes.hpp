// Four floats side by side by compiler extension: the samples of one pixel travel together.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector.hpp"

namespace splatmeter::demo {

inline constexpr int lane_count = 4;

typedef float Lanes __attribute__((vector_size(16)));
typedef std::int32_t LaneMask __attribute__((vector_size(16)));  // all bits set where true

inline Lanes every_lane(float x) { return Lanes{x, x, x, x}; }
inline Lanes minimum(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes maximum(Lanes a, Lanes b) { return a > b ? a : b; }
inline float least(Lanes a) { return std::min(std::min(a[0], a[1]), std::min(a[2], a[3])); }
inline bool any(LaneMask mask) {
    std::uint64_t halves[2];
    std::memcpy(halves, &mask, sizeof mask);
    return (halves[0] | halves[1]) != 0;
}

struct Lanes3 {
    Lanes x{}, y{}, z{};

    void set(int lane, Vec3 value) {
        x[lane] = value.x;
        y[lane] = value.y;
        z[lane] = value.z;
    }
    Vec3 at(int lane) const { return {x[lane], y[lane], z[lane]}; }
};

inline Lanes3 every_lane(Vec3 v) { return {every_lane(v.x), every_lane(v.y), every_lane(v.z)}; }
inline Lanes3 operator-(const Lanes3& a, const Lanes3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Lanes3 operator*(const Lanes3& a, const Lanes3& b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
inline Lanes dot(const Lanes3& a, const Lanes3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Lanes3 cross(const Lanes3& a, const Lanes3& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace splatmeter::demo
