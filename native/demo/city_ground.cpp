#include "city_texture.hpp"
#include "texture.hpp"

namespace splatmeter::demo {

namespace {

Vec3 asphalt(Vec3 p, std::uint32_t seed, float footprint) {
    const float worn = layered_noise({p.x * 0.35f, p.y * 0.35f, 0}, seed + 50);
    Vec3 colour = Vec3{0.17f, 0.17f, 0.18f} * (0.75f + 0.5f * worn);
    int x, y;
    whole(p.x / 2.3f, x);
    whole(p.y / 3.1f, y);
    if (lattice(x, y, 51, seed) < 0.07f) colour = colour * 0.72f;  // mended places
    const float grain = resolved(0.06f, footprint);
    if (grain > 0) colour = colour * (1 + grain * 0.32f * (noise({p.x * 14, p.y * 14, 0}, seed + 52) - 0.5f));
    const float cracks = resolved(0.03f, footprint);
    if (cracks == 0) return colour;
    const float crack = std::abs(layered_noise({p.x * 0.8f, p.y * 0.8f, 0}, seed + 53) - 0.5f);
    return crack < 0.004f ? colour * (1 - 0.28f * cracks) : colour;
}

// What is painted on a street; `across` and `along` are metres from its middle and from the crossing.
Vec3 road(Vec3 p, float across, float along, std::uint32_t seed, float footprint) {
    const Vec3 base = asphalt(p, seed, footprint);
    const float wear = 0.55f + 0.4f * smoothstep(0.3f, 0.6f, noise({p.x * 3, p.y * 3, 0}, seed + 54));
    const Vec3 paint{0.72f, 0.71f, 0.67f};
    int stripe;
    if (along > 4.0f && along < 6.4f && across < 3.2f)
        return whole(across + 0.25f, stripe) < 0.5f ? mix(base, paint, wear) : base;
    if (along > 6.8f && along < 7.1f && across < 3.4f) return mix(base, paint, wear);
    if (along > 8 && across < 0.07f && whole(along / 3, stripe) < 0.55f) return mix(base, paint, wear);
    if (across > road_half - 0.28f) return base * 0.72f;  // gutter
    const float from_cover = std::sqrt((across - 1.4f) * (across - 1.4f) + (along - 13) * (along - 13));
    if (from_cover < 0.36f)
        return Vec3{0.12f, 0.11f, 0.11f} * (from_cover > 0.29f                       ? 1.7f
                                            : whole((p.x + p.y) * 12, stripe) < 0.5f ? 1.3f
                                                                                     : 0.8f);
    return base;
}

Vec3 slabs(Vec3 p, float size, Vec3 colour, std::uint32_t seed, float footprint) {
    int x, y;
    const float u = whole(p.x / size, x) * size, v = whole(p.y / size, y) * size;
    const float edge = std::min(std::min(u, size - u), std::min(v, size - v));
    const Vec3 mean = colour * (0.85f + 0.3f * layered_noise({p.x * 0.9f, p.y * 0.9f, 0}, seed + 55));
    const Vec3 slab = mean * (edge < 0.014f ? 0.55f : 0.86f + 0.28f * lattice(x, y, 56, seed));
    return mix(mean * 0.96f, slab, resolved(0.5f * size, footprint));
}

Vec3 pavement(Vec3 p, float from_middle, std::uint32_t seed, float footprint) {
    int stone;
    if (from_middle < road_half + 0.17f)
        return Vec3{0.52f, 0.51f, 0.49f} * (whole(p.x + p.y, stone) < 0.03f ? 0.6f : 1.0f);
    return slabs(p, 0.5f, {0.46f, 0.44f, 0.41f}, seed, footprint);
}

Vec3 lawn(Vec3 p, std::uint32_t seed, float footprint) {
    const float patches = layered_noise({p.x * 0.45f, p.y * 0.45f, 0}, seed + 57),
                tufts = noise({p.x * 3.1f, p.y * 3.1f, 0}, seed + 58);
    Vec3 colour = mix(Vec3{0.15f, 0.28f, 0.06f}, Vec3{0.32f, 0.42f, 0.11f}, patches) * (0.82f + 0.36f * tufts);
    const float blades = resolved(0.06f, footprint);
    if (blades > 0) colour = colour * (1 + blades * 0.5f * (noise({p.x * 16, p.y * 16, 0}, seed + 59) - 0.5f));
    int x, y;
    const float u = whole(p.x * 2.5f, x), v = whole(p.y * 2.5f, y);
    const float dx = u - 0.2f - 0.6f * lattice(x, y, 60, seed), dy = v - 0.2f - 0.6f * lattice(x, y, 61, seed);
    const bool flower = lattice(x, y, 62, seed) < 0.1f && dx * dx + dy * dy < 0.02f;
    return flower ? mix(colour, {0.85f, 0.82f, 0.60f}, resolved(0.1f, footprint)) : colour;
}

Vec3 gravel(Vec3 p, std::uint32_t seed, float footprint) {
    const float pebbles = resolved(0.06f, footprint) * 0.45f * (noise({p.x * 15, p.y * 15, 0}, seed + 63) - 0.5f);
    return Vec3{0.62f, 0.54f, 0.40f} * (0.84f + 0.3f * layered_noise({p.x, p.y, 0}, seed + 64) + pebbles);
}

Vec3 flower_bed(Vec3 p, std::uint32_t seed) {
    int x, y;
    const float u = whole(p.x * 4, x) - 0.5f, v = whole(p.y * 4, y) - 0.5f;
    const float pick = lattice(x, y, 65, seed);
    const Vec3 soil = Vec3{0.17f, 0.11f, 0.07f} * (0.7f + 0.6f * noise({p.x * 9, p.y * 9, 0}, seed + 66));
    if (u * u + v * v > 0.16f) return mix(soil, {0.14f, 0.28f, 0.08f}, 0.6f);
    return pick < 0.3f    ? Vec3{0.78f, 0.16f, 0.14f}
           : pick < 0.55f ? Vec3{0.86f, 0.66f, 0.12f}
           : pick < 0.8f  ? Vec3{0.70f, 0.36f, 0.62f}
                          : Vec3{0.84f, 0.82f, 0.78f};
}

Vec3 park(Vec3 p, float x, float y, std::uint32_t seed, float footprint) {
    const float radius = std::sqrt(x * x + y * y), across = std::min(std::abs(x - y), std::abs(x + y)) * 0.7071f;
    if (radius < 5.6f) return slabs({p.x + 0.1f, p.y, 0}, 0.33f, {0.56f, 0.40f, 0.31f}, seed, footprint);
    if (radius < 6.3f) return flower_bed(p, seed);
    if (across < 1.1f) return gravel(p, seed, footprint);
    return lawn(p, seed, footprint);
}

// Gardens between and behind houses: x and y from the middle of the block.
Vec3 garden(Vec3 p, float x, float y, std::uint32_t seed, float footprint) {
    const float outward = std::max(std::abs(x), std::abs(y));
    if (outward > 13.0f) return slabs(p, 0.4f, {0.50f, 0.45f, 0.38f}, seed, footprint);  // in front of the houses
    if (std::abs(x) < 0.5f || std::abs(y + 1.8f) < 0.45f) return gravel(p, seed, footprint);
    if (x > 1.2f && x < 3.6f && y > -5 && y < -2.6f) return flower_bed(p, seed);
    return lawn(p, seed, footprint);
}

Vec3 fields(Vec3 p, float away, std::uint32_t seed, float footprint) {
    int x, y;
    whole((p.x + 6 * noise({p.x * 0.03f, p.y * 0.03f, 0}, seed + 67)) / 37, x);
    whole((p.y + 6 * noise({p.x * 0.03f, p.y * 0.03f, 0}, seed + 68)) / 29, y);
    const float crop = lattice(x, y, 69, seed);
    const Vec3 grass = lawn(p, seed, footprint);
    if (crop < 0.5f || away < 8) return grass;
    const float furrow = std::sin((crop < 0.75f ? p.x : p.y) * 4.2f);
    const Vec3 earth = crop < 0.75f ? Vec3{0.52f, 0.44f, 0.20f} : Vec3{0.34f, 0.36f, 0.13f};
    return mix(grass,
               earth * (0.9f + 0.16f * resolved(0.5f, footprint) * furrow + 0.15f * noise({p.x, p.y, 0}, seed + 70)),
               smoothstep(8, 10, away));
}

}  // namespace

Vec3 street_ground(const Plan& plan, Vec3 p, float footprint) {
    const auto from_street = [](float x) { return std::abs(x - pitch * std::round(x / pitch)); };
    const auto outside = [&](float x) { return std::max(-x, x - plan.side()); };
    const float away = std::max(outside(p.x), outside(p.y));
    if (away > pavement_edge) return fields(p, away - pavement_edge, plan.seed, footprint);
    const float dx = from_street(p.x), dy = from_street(p.y), nearest = std::min(dx, dy);
    if (dx < road_half || dy < road_half) {
        if (away > road_half) return pavement(p, away, plan.seed, footprint);  // streets end at the edge of the city
        const bool crossing = dx < road_half && dy < road_half;
        if (crossing) return asphalt(p, plan.seed, footprint);
        return dx < dy ? road(p, dx, dy, plan.seed, footprint) : road(p, dy, dx, plan.seed, footprint);
    }
    if (nearest < pavement_edge) return pavement(p, nearest, plan.seed, footprint);
    const int i = static_cast<int>(std::floor(p.x / pitch)), j = static_cast<int>(std::floor(p.y / pitch));
    const float x = p.x - pitch * (static_cast<float>(i) + 0.5f), y = p.y - pitch * (static_cast<float>(j) + 0.5f);
    return plan.kind(i, j) == BlockKind::park ? park(p, x, y, plan.seed, footprint)
                                              : garden(p, x, y, plan.seed, footprint);
}

}  // namespace splatmeter::demo
