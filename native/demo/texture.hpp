// What surfaces look like: procedural colours, the same from every side.
#pragma once

#include <cstdint>

#include "mesh.hpp"

namespace splatmeter::demo {

float lattice(int x, int y, int z, std::uint32_t key);  // a number in [0, 1) for each cell of a grid
float whole(float x, int& cell);                        // the fraction; the cell on the side
float noise(Vec3 place, std::uint32_t key);             // smooth, in [0, 1], one bump per unit
float layered_noise(Vec3 place, std::uint32_t key);     // four octaves of it, in [0, 1]

struct Spot {
    Material material;
    std::uint16_t variant;
    Vec3 position;  // world
    float u, v;     // on the patch
};

Vec3 albedo(const Spot& spot, std::uint32_t seed);
Vec3 ground_albedo(Vec3 position, std::uint32_t seed);  // brick terrace, tile ring, lawn, meadow
Vec3 sky_light(Vec3 direction);                         // what the sky sends down: no clouds, no hills
Vec3 sky_picture(Vec3 on_dome, std::uint32_t seed);     // what the sky dome shows: hills, haze, clouds
bool is_thin(Material material);                        // lit and seen from both sides
float gloss(Material material);                         // strength of the sun's highlight

inline constexpr float terrace_radius = 2.75f;
inline constexpr float fence_radius = 6.2f;
inline constexpr float dome_radius = 24.0f;

}  // namespace splatmeter::demo
