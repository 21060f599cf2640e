// The garden itself: which things stand where.
#pragma once

#include <cstdint>

#include "mesh.hpp"

namespace splatmeter::demo {

// Everything but the ground and the sky; z is up, the ground lies at z = 0, the table at the origin.
Mesh plant_garden(std::uint32_t seed);

}  // namespace splatmeter::demo
