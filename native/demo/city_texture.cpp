#include "city_texture.hpp"

#include <array>

#include "texture.hpp"

namespace splatmeter::demo {

namespace {

Vec3 tiles(const CitySpot& spot, std::uint32_t seed) {
    static constexpr std::array<Vec3, 5> colours{{{0.52f, 0.20f, 0.12f},
                                                  {0.44f, 0.17f, 0.12f},
                                                  {0.36f, 0.22f, 0.16f},
                                                  {0.24f, 0.25f, 0.28f},
                                                  {0.56f, 0.28f, 0.16f}}};
    const std::uint32_t key = scramble(spot.surface.variant, seed);
    const Vec3 base = colours[spot.surface.variant % colours.size()];
    const float weather = layered_noise({spot.u * 0.5f, spot.v * 0.5f, 0}, key);
    Vec3 mean = base * (0.74f + 0.5f * weather);
    if (spot.v < 0.14f) mean = mean * 1.2f;  // ridge
    const float detail = resolved(0.22f, spot.footprint);
    if (detail == 0) return mean * 0.93f;
    int row, column;
    const float down = whole(spot.v / 0.36f, row),
                along = whole(spot.u / 0.26f + 0.5f * static_cast<float>(row & 1), column);
    const float round = 0.82f + 0.3f * std::sin(pi * along);  // tiles bulge
    const Vec3 tile = mean * (round * (0.8f + 0.4f * lattice(column, row, 1, key)) * (down > 0.86f ? 0.55f : 1.0f));
    return mix(mean * 0.93f, tile, detail);
}

Vec3 foliage(const CitySpot& spot, std::uint32_t seed) {
    static constexpr std::array<Vec3, 4> greens{
        {{0.14f, 0.30f, 0.06f}, {0.24f, 0.37f, 0.08f}, {0.07f, 0.20f, 0.10f}, {0.20f, 0.34f, 0.11f}}};
    const Vec3 base = greens[spot.surface.variant % 4];
    if ((spot.surface.variant & 8) != 0) return base * 0.45f;  // deep inside a crown
    return base * (0.65f + 0.85f * unit(scramble(spot.surface.variant, seed)));
}

Vec3 hedge(const CitySpot& spot, std::uint32_t seed) {
    const float coarse = noise(spot.position * 2.1f, seed + 80), fine = noise(spot.position * 13, seed + 81);
    return mix(Vec3{0.08f, 0.20f, 0.05f}, Vec3{0.22f, 0.38f, 0.09f},
               0.5f * coarse + 0.5f * mix(0.5f, smoothstep(0.25f, 0.75f, fine), resolved(0.08f, spot.footprint)));
}

Vec3 car_paint(std::uint16_t variant) {
    static constexpr std::array<Vec3, 7> colours{{{0.55f, 0.05f, 0.05f},
                                                  {0.06f, 0.14f, 0.42f},
                                                  {0.72f, 0.72f, 0.70f},
                                                  {0.10f, 0.11f, 0.12f},
                                                  {0.40f, 0.42f, 0.44f},
                                                  {0.08f, 0.28f, 0.18f},
                                                  {0.78f, 0.56f, 0.08f}}};
    return colours[variant % colours.size()];
}

Vec3 awning(const CitySpot& spot) {
    static constexpr std::array<Vec3, 6> colours{{{0.65f, 0.10f, 0.10f},
                                                  {0.10f, 0.32f, 0.20f},
                                                  {0.12f, 0.24f, 0.50f},
                                                  {0.72f, 0.46f, 0.10f},
                                                  {0.46f, 0.14f, 0.34f},
                                                  {0.10f, 0.40f, 0.44f}}};
    int stripe;
    return whole(spot.u / 0.6f, stripe) < 0.5f ? colours[spot.surface.variant % colours.size()]
                                               : Vec3{0.82f, 0.79f, 0.71f};
}

}  // namespace

Vec3 city_albedo(const Things& things, const CitySpot& spot, std::uint32_t seed) {
    switch (spot.surface.material) {
        case Material::wall:
            return facade_albedo(things.facades[spot.surface.variant], spot);
        case Material::roof:
            return tiles(spot, seed);
        case Material::chimney:
            return brickwork(spot.u, spot.v, {0.46f, 0.24f, 0.17f}, seed, spot.footprint);
        case Material::leaf:
            return foliage(spot, seed);
        case Material::petal:
            return Vec3{0.80f, 0.50f, 0.58f} * (0.8f + 0.4f * unit(scramble(spot.surface.variant, seed)));
        case Material::hedge:
            return hedge(spot, seed);
        case Material::car_paint:
            return car_paint(spot.surface.variant);
        case Material::glass:
            return {0.06f, 0.08f, 0.10f};
        case Material::tyre:
            return {0.05f, 0.05f, 0.05f};
        case Material::lantern:
            return spot.surface.variant == 0 ? Vec3{0.85f, 0.83f, 0.72f} : Vec3{0.50f, 0.05f, 0.05f};
        case Material::awning:
            return awning(spot);
        case Material::water:
            return mix(Vec3{0.10f, 0.24f, 0.28f}, Vec3{0.34f, 0.50f, 0.52f},
                       noise(spot.position * Vec3{6, 6, 1}, seed + 82));
        case Material::paving:
            return Vec3{0.55f, 0.52f, 0.47f} * (0.85f + 0.3f * noise(spot.position * 7, seed + 83));
        case Material::iron:
            return {0.07f, 0.10f, 0.10f};
        case Material::wood:
            return Vec3{0.42f, 0.25f, 0.13f} * (0.75f + 0.5f * noise(spot.position * Vec3{5, 5, 30}, seed + 84));
        case Material::stone:
            return Vec3{0.58f, 0.55f, 0.49f} * (0.75f + 0.5f * layered_noise(spot.position * 5, seed + 85));
        case Material::bark:
            return Vec3{0.28f, 0.21f, 0.15f} * (0.6f + 0.8f * noise(spot.position * Vec3{11, 11, 3}, seed + 86));
        default:
            return {};  // things of the garden
    }
}

float city_gloss(Material material) {
    switch (material) {
        case Material::car_paint:
            return 0.22f;
        case Material::glass:
            return 0.35f;
        case Material::water:
            return 0.15f;
        default:
            return 0;
    }
}

}  // namespace splatmeter::demo
