// How the trees of the city grow.
#pragma once

#include <cstdint>

#include "mesh.hpp"

namespace splatmeter::demo {

Mesh grow_tree(std::uint16_t kind, Random random);  // stands at the origin, in metres

}  // namespace splatmeter::demo
