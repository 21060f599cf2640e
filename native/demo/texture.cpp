#include "texture.hpp"

#include <array>

namespace splatmeter::demo {

float lattice(int x, int y, int z, std::uint32_t key) {
    const auto wide = [](int k) { return static_cast<std::uint32_t>(k); };
    return unit(scramble(wide(x) * 73856093u ^ wide(y) * 19349663u ^ wide(z) * 83492791u ^ scramble(key)));
}

float whole(float x, int& cell) {  // the fraction; the cell on the side
    const float floor = std::floor(x);
    cell = static_cast<int>(floor);
    return x - floor;
}

namespace {

float ease(float t) { return t * t * (3 - 2 * t); }

float variation(std::uint32_t variant, std::uint32_t seed) { return unit(scramble(variant, seed)); }

Vec3 bricks(Vec3 p, std::uint32_t seed) {
    constexpr float length = 0.25f, width = 0.125f, joint = 0.008f;
    int row, column;
    const float across = whole(p.y / width, row) * width;
    const float along = whole(p.x / length + 0.5f * static_cast<float>(row & 1), column) * length;
    const float edge = std::min(std::min(along, length - along), std::min(across, width - across));
    const float tone = lattice(column, row, 0, seed), hue = lattice(column, row, 1, seed);
    Vec3 brick = mix(Vec3{0.50f, 0.22f, 0.14f}, Vec3{0.66f, 0.38f, 0.25f}, tone);
    brick = mix(brick, {0.46f, 0.30f, 0.27f}, hue > 0.8f ? 0.7f : 0.0f);
    brick = brick * (0.93f + 0.14f * noise(p * 30, seed));
    return edge < joint ? Vec3{0.62f, 0.58f, 0.50f} : brick;
}

Vec3 tile_ring(float radius, float angle, std::uint32_t seed) {
    int around, outward;
    const float fraction = whole(angle / (2 * pi) * 208, around);
    const float step = whole((radius - terrace_radius) / 0.088f, outward);
    const bool dark = ((around + outward) & 1) != 0;
    const float tone = 0.9f + 0.2f * lattice(around, outward, 2, seed);
    const bool grout = std::min(fraction, step) < 0.06f;
    if (grout) return {0.45f, 0.43f, 0.40f};
    return (dark ? Vec3{0.10f, 0.16f, 0.22f} : Vec3{0.78f, 0.74f, 0.64f}) * tone;
}

Vec3 lawn(Vec3 p, std::uint32_t seed) {
    const float stripe = smoothstep(-0.15f, 0.15f, std::sin((p.x * 0.8f + p.y * 0.6f) * pi / 0.55f));
    const Vec3 mown = mix(Vec3{0.17f, 0.33f, 0.07f}, Vec3{0.28f, 0.46f, 0.12f}, stripe);
    const float blades = noise({p.x * 38, p.y * 38, 0}, seed + 3), patches = layered_noise(p * 1.3f, seed + 4);
    Vec3 colour = mown * (0.77f + 0.2f * blades + 0.3f * patches);
    int x, y;
    const float fx = whole(p.x * 5, x), fy = whole(p.y * 5, y);  // daisies: one cell in nine has one
    const float dx = fx - 0.2f - 0.6f * lattice(x, y, 5, seed), dy = fy - 0.2f - 0.6f * lattice(x, y, 6, seed);
    if (lattice(x, y, 7, seed) < 0.11f && dx * dx + dy * dy < 0.02f) colour = {0.85f, 0.84f, 0.74f};
    return colour;
}

Vec3 meadow(Vec3 p, float radius, std::uint32_t seed) {
    const float patches = layered_noise(p * 0.5f, seed + 8), tufts = noise(p * 5, seed + 9);
    const Vec3 grass = mix(Vec3{0.22f, 0.36f, 0.09f}, Vec3{0.45f, 0.47f, 0.17f}, patches) * (0.88f + 0.24f * tufts);
    return mix(grass, {0.34f, 0.45f, 0.28f}, smoothstep(10, dome_radius, radius));
}

Vec3 wood(const Spot& spot, std::uint32_t seed) {
    int plank;
    const float fraction = whole(spot.position.y / 0.095f, plank);
    if (fraction < 0.05f) return {0.16f, 0.09f, 0.05f};
    const float shift = 7 * lattice(plank, 0, 8, seed);
    const float rings = layered_noise({spot.position.x * 2.2f + shift, spot.position.y * 26, shift}, seed + 10);
    const float tone = 0.85f + 0.3f * lattice(plank, 1, 8, seed);
    return mix(Vec3{0.36f, 0.20f, 0.10f}, Vec3{0.64f, 0.42f, 0.23f}, smoothstep(0.25f, 0.75f, rings)) * tone;
}

Vec3 cloth(const Spot& spot) {
    const float across = std::abs(2 * spot.u - 1);  // symmetric about the runner's middle
    const bool hem = across > 0.93f || spot.v < 0.012f || spot.v > 0.988f;
    int stripe;
    const float fraction = whole(across * 9, stripe);
    const Vec3 cream{0.86f, 0.82f, 0.72f}, navy{0.10f, 0.18f, 0.38f}, red{0.70f, 0.13f, 0.12f};
    if (hem) return navy;
    if (stripe % 3 == 2) return fraction < 0.5f ? red : cream;
    return fraction < 0.5f ? navy : cream;
}

Vec3 glaze(const Spot& spot) {
    const Vec3 white{0.84f, 0.85f, 0.84f}, blue{0.07f, 0.17f, 0.50f};
    const float v = spot.v;
    if (v < 0.07f || (v > 0.30f && v < 0.325f) || (v > 0.66f && v < 0.685f) || v > 0.955f) return blue;
    if (v > 0.325f && v < 0.66f) {  // diamonds round the belly
        int a, b;
        const float s = whole(spot.u * 14, a) - 0.5f, t = whole((v - 0.325f) / 0.335f * 2, b) - 0.5f;
        const float ring = std::abs(s) + std::abs(t);
        return ring < 0.2f || (ring > 0.34f && ring < 0.46f) ? blue : white;
    }
    int line;
    return v > 0.72f && whole(v * 40, line) < 0.3f ? blue : white;
}

Vec3 leaf(const Spot& spot, std::uint32_t seed) {
    static constexpr std::array<Vec3, 4> greens{
        {{0.13f, 0.33f, 0.07f}, {0.24f, 0.42f, 0.09f}, {0.10f, 0.27f, 0.11f}, {0.36f, 0.46f, 0.12f}}};
    const float tone = 0.75f + 0.5f * variation(spot.variant, seed);
    const float vein = std::abs(2 * spot.u - 1) < 0.1f ? 1.35f : 1.0f;
    return greens[spot.variant % greens.size()] * (tone * vein);
}

Vec3 petal(const Spot& spot, std::uint32_t seed) {
    static constexpr std::array<Vec3, 6> colours{{{0.80f, 0.10f, 0.10f},
                                                  {0.92f, 0.66f, 0.08f},
                                                  {0.86f, 0.34f, 0.52f},
                                                  {0.86f, 0.84f, 0.80f},
                                                  {0.46f, 0.22f, 0.62f},
                                                  {0.92f, 0.40f, 0.10f}}};
    const Vec3 colour = colours[spot.variant % colours.size()] * (0.9f + 0.2f * variation(spot.variant, seed));
    return mix(colour * 0.6f, colour, smoothstep(0, 0.5f, spot.v));
}

Vec3 fruit(const Spot& spot, std::uint32_t seed) {
    static constexpr std::array<Vec3, 3> colours{{{0.88f, 0.42f, 0.05f}, {0.85f, 0.72f, 0.10f}, {0.62f, 0.10f, 0.08f}}};
    return colours[spot.variant % colours.size()] * (0.88f + 0.2f * noise(spot.position * 60, seed));
}

Vec3 stone(const Spot& spot, std::uint32_t seed) {
    const float grain = layered_noise(spot.position * 9, seed + spot.variant);
    const float moss = smoothstep(0.5f, 0.7f, layered_noise(spot.position * 3, seed + 20));
    const Vec3 grey = mix(Vec3{0.30f, 0.29f, 0.28f}, Vec3{0.66f, 0.63f, 0.58f}, grain);
    return mix(grey, {0.30f, 0.36f, 0.16f}, 0.6f * moss);
}

Vec3 china(const Spot& spot) {
    int line;
    const bool band = spot.v > 0.45f && spot.v < 0.7f && whole(spot.u * 12, line) < 0.5f;
    return band ? Vec3{0.15f, 0.42f, 0.45f} : Vec3{0.84f, 0.83f, 0.79f};
}

}  // namespace

float noise(Vec3 place, std::uint32_t key) {
    int x, y, z;
    const float u = ease(whole(place.x, x)), v = ease(whole(place.y, y)), w = ease(whole(place.z, z));
    const auto row = [&](int b, int c) { return mix(lattice(x, b, c, key), lattice(x + 1, b, c, key), u); };
    const float below = mix(row(y, z), row(y + 1, z), v);
    return w == 0 ? below : mix(below, mix(row(y, z + 1), row(y + 1, z + 1), v), w);
}

float layered_noise(Vec3 place, std::uint32_t key) {
    float sum = 0, weight = 0.5f;
    for (std::uint32_t octave = 0; octave < 4; ++octave, weight *= 0.5f, place = place * 2.03f) {
        sum += weight * noise(place, key + octave);
    }
    return sum / 0.9375f;
}

Vec3 albedo(const Spot& spot, std::uint32_t seed) {
    const float tone = 0.9f + 0.2f * variation(spot.variant, seed);
    switch (spot.material) {
        case Material::wood:
            return wood(spot, seed);
        case Material::cloth:
            return cloth(spot);
        case Material::glaze:
            return glaze(spot);
        case Material::stem:
            return Vec3{0.20f, 0.36f, 0.10f};
        case Material::leaf:
            return leaf(spot, seed);
        case Material::petal:
            return petal(spot, seed);
        case Material::flower_centre:
            return Vec3{0.55f, 0.34f, 0.05f} * (0.6f + 0.6f * noise(spot.position * 150, seed));
        case Material::paint:
            return Vec3{0.78f, 0.78f, 0.74f} * tone * (0.9f + 0.15f * noise(spot.position * Vec3{9, 9, 2}, seed));
        case Material::iron:
            return Vec3{0.09f, 0.30f, 0.32f};
        case Material::stone:
            return stone(spot, seed);
        case Material::terracotta:
            return Vec3{0.62f, 0.30f, 0.18f} * (0.8f + 0.35f * layered_noise(spot.position * Vec3{6, 6, 30}, seed));
        case Material::soil:
            return Vec3{0.16f, 0.10f, 0.07f} * (0.6f + 0.8f * noise(spot.position * 40, seed));
        case Material::bark:
            return Vec3{0.34f, 0.25f, 0.18f} * (0.6f + 0.7f * layered_noise(spot.position * Vec3{14, 14, 3}, seed));
        case Material::fruit:
            return fruit(spot, seed);
        case Material::china:
            return china(spot);
        default:
            return {};  // things of the city
    }
}

Vec3 ground_albedo(Vec3 position, std::uint32_t seed) {
    const float radius = std::sqrt(position.x * position.x + position.y * position.y);
    if (radius < terrace_radius) return bricks(position, seed);
    if (radius < terrace_radius + 0.264f) return tile_ring(radius, std::atan2(position.y, position.x), seed);
    if (radius < fence_radius) return lawn(position, seed);
    return meadow(position, radius, seed);
}

Vec3 sky_light(Vec3 direction) {
    const float rise = std::clamp(direction.z, 0.0f, 1.0f);
    return mix(Vec3{0.42f, 0.47f, 0.52f}, Vec3{0.15f, 0.27f, 0.50f}, std::sqrt(rise));
}

Vec3 sky_picture(Vec3 on_dome, std::uint32_t seed) {
    const Vec3 direction = normalized(on_dome);
    const float rise = direction.z, angle = std::atan2(direction.y, direction.x);
    const float far_hills =
        0.085f + 0.022f * std::sin(3 * angle + 1) + 0.014f * std::sin(7 * angle) + 0.006f * std::sin(17 * angle + 2);
    const float near_hills = 0.045f + 0.018f * std::sin(4 * angle + 4) + 0.010f * std::sin(9 * angle + 1);
    if (rise < near_hills) return Vec3{0.24f, 0.36f, 0.20f} * (0.85f + 0.3f * noise(on_dome * 0.9f, seed + 30));
    if (rise < far_hills) return Vec3{0.34f, 0.45f, 0.47f} * (0.92f + 0.16f * noise(on_dome * 0.4f, seed + 31));
    const float height = std::clamp(rise, 0.0f, 1.0f);
    const Vec3 blue = mix(Vec3{0.56f, 0.72f, 0.90f}, Vec3{0.13f, 0.33f, 0.78f}, smoothstep(0, 0.6f, height));
    const float cloud = layered_noise(direction * Vec3{3.2f, 3.2f, 7}, seed + 32);
    return mix(blue, {1.15f, 1.12f, 1.08f}, 0.85f * smoothstep(0.52f, 0.75f, cloud));
}

bool is_thin(Material material) {
    return material == Material::leaf || material == Material::petal || material == Material::cloth;
}

float gloss(Material material) {
    switch (material) {
        case Material::glaze:
        case Material::china:
            return 0.35f;
        case Material::fruit:
            return 0.12f;
        default:
            return 0;
    }
}

}  // namespace splatmeter::demo
