// The plan of the city: a grid of streets, and what stands between them. Everything is a hash of seed and place.
//
// Block (i, j) lies between the streets i and i + 1, j and j + 1, whatever the size: a larger city has the same
// blocks and more.
#pragma once

#include <cstdint>

#include "vector.hpp"

namespace splatmeter::demo {

inline constexpr float pitch = 40;            // metres from the middle of a street to that of the next
inline constexpr float road_half = 3.6f;      // from the middle of a street to the kerb
inline constexpr float pavement_edge = 5.5f;  // and to where the blocks begin
inline constexpr float storey_height = 2.9f;

enum class BlockKind : std::uint8_t { houses, park, country };

struct Plan {
    std::uint32_t seed;
    int size;  // blocks on a side

    float side() const { return pitch * static_cast<float>(size); }
    Vec3 centre() const { return {side() / 2, side() / 2, 0}; }
    float dome_radius() const { return 0.75f * side() + 130; }  // of the sky, around the centre

    BlockKind kind(int i, int j) const {
        if (i < 0 || j < 0 || i >= size || j >= size) return BlockKind::country;
        if (i == 1 && j == 1) return BlockKind::park;
        return i + j > 0 && stream(i, j, 0).next() < 0.07f ? BlockKind::park : BlockKind::houses;
    }

    // Random numbers for one part of one block.
    Random stream(int i, int j, std::uint32_t part) const {
        const auto place = static_cast<std::uint32_t>((i + 256) * 4096 + j + 256);
        return Random(scramble(scramble(seed, 5000 + part), place));
    }
};

}  // namespace splatmeter::demo
