// What the surfaces of the city look like. Patterns finer than a pixel give way to their mean, as a lens would show
// them.
#pragma once

#include <cstdint>

#include "city_things.hpp"

namespace splatmeter::demo {

struct CitySpot {
    Surface surface;
    Vec3 position;    // world
    float u, v;       // on the surface, in metres where it was mapped
    float footprint;  // metres that a pixel covers there
};

// 1 where a pattern of that size is seen, 0 where it has become its mean.
inline float resolved(float size, float footprint) { return 1 - smoothstep(size, 3 * size, footprint); }

Vec3 facade_albedo(const Facade& facade, const CitySpot& spot);
Vec3 street_ground(const Plan& plan, Vec3 position, float footprint);  // the whole ground, z = 0
Vec3 city_albedo(const Things& things, const CitySpot& spot, std::uint32_t seed);
Vec3 brickwork(float u, float v, Vec3 brick, std::uint32_t key, float footprint);
float city_gloss(Material material);

}  // namespace splatmeter::demo
