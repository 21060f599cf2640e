// Three-component vectors and counter-based randomness for the built-in scene.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace splatmeter::demo {

inline constexpr float pi = 3.14159265358979f;

struct Vec3 {
    float x = 0, y = 0, z = 0;

    float operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator*(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
inline Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
inline Vec3 operator*(float s, Vec3 a) { return a * s; }
inline Vec3& operator+=(Vec3& a, Vec3 b) { return a = a + b; }

inline float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline float length(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 normalized(Vec3 a) { return a * (1.0f / std::max(length(a), 1e-20f)); }
inline Vec3 cross(Vec3 a, Vec3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
inline Vec3 minimum(Vec3 a, Vec3 b) { return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}; }
inline Vec3 maximum(Vec3 a, Vec3 b) { return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}; }

inline float mix(float a, float b, float t) { return a + (b - a) * t; }
inline Vec3 mix(Vec3 a, Vec3 b, float t) { return a + (b - a) * t; }
inline float smoothstep(float low, float high, float x) {
    const float t = std::clamp((x - low) / (high - low), 0.0f, 1.0f);
    return t * t * (3 - 2 * t);
}

// Right-handed: side, ahead and up are perpendicular unit vectors.
struct Frame {
    Vec3 side, ahead, up;

    Vec3 to_world(Vec3 local) const { return side * local.x + ahead * local.y + up * local.z; }
};

inline Frame frame_around(Vec3 up) {
    const Vec3 reference = std::abs(up.z) < 0.9f ? Vec3{0, 0, 1} : Vec3{1, 0, 0};
    const Vec3 side = normalized(cross(reference, up));
    return {side, cross(up, side), up};
}

// A finalizer: every input bit reaches every output bit.
inline std::uint32_t scramble(std::uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
inline std::uint32_t scramble(std::uint32_t a, std::uint32_t b) { return scramble(a ^ (scramble(b) + 0x9e3779b9u)); }
inline float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// A stream is named by its key and depends on nothing else: no shared state, no order between threads.
class Random {
   public:
    explicit Random(std::uint32_t key) : key_(key) {}
    float next() { return unit(scramble(key_, counter_++)); }
    float between(float low, float high) { return mix(low, high, next()); }

   private:
    std::uint32_t key_;
    std::uint32_t counter_ = 0;
};

}  // namespace splatmeter::demo
