#include "city_texture.hpp"
#include "texture.hpp"

namespace splatmeter::demo {

namespace {

constexpr Vec3 frame_white{0.80f, 0.79f, 0.75f}, sandstone{0.64f, 0.58f, 0.47f}, beam{0.20f, 0.13f, 0.09f};
constexpr float window_half = 0.52f, sill = 0.85f, lintel = 2.25f;  // of a window, from the floor of its storey

struct Bay {
    const Facade& facade;
    int column, storey;
    float s, t;  // metres from its middle, and from its floor
    float footprint;

    float chance(int which) const { return lattice(column, storey, which, facade.key); }
};

Vec3 plaster(const Facade& facade, const CitySpot& spot) {
    const float clouds = layered_noise({spot.u * 0.6f, spot.v * 0.6f, 0}, facade.key);
    Vec3 colour = facade.colour * (0.86f + 0.28f * clouds);
    const float grain = resolved(0.05f, spot.footprint);
    if (grain > 0)
        colour = colour * (1 + grain * 0.22f * (noise({spot.u * 18, spot.v * 18, 0}, facade.key + 9) - 0.5f));
    const float streak = noise({spot.u * 2.2f, spot.v * 0.25f, 0}, facade.key + 10);  // where rain ran down
    return colour * (1 - 0.16f * smoothstep(0.55f, 0.8f, streak));
}

bool on_beam(const Bay& bay) {
    constexpr float half = 0.085f;
    const float edge = bay.facade.bay_width() / 2 - std::abs(bay.s);
    if (edge < half || bay.t < 2 * half || std::abs(bay.t - sill + 0.1f) < half ||
        std::abs(bay.t - lintel - 0.1f) < half)
        return true;
    const float jamb = std::abs(std::abs(bay.s) - window_half - 0.12f);
    if (jamb < half && bay.t < lintel + 0.2f) return true;
    if (bay.t > sill || bay.chance(20) > 0.6f) return false;
    const float slope = bay.facade.bay_width() / (2 * sill);  // braces below the windows
    return std::abs(std::abs(bay.s) - slope * bay.t) < 1.5f * half;
}

Vec3 wall_itself(const Bay& bay, const CitySpot& spot) {
    const Facade& facade = bay.facade;
    if (spot.v < 0.45f && facade.masonry != Masonry::brick) {  // plinth of rough stone
        int row, column;
        const float across = whole(spot.v / 0.225f, row),
                    along = whole(spot.u / 0.5f + 0.5f * static_cast<float>(row & 1), column);
        const float joint = std::min(std::min(across, 1 - across) * 0.225f, std::min(along, 1 - along) * 0.5f);
        const Vec3 stone = sandstone * (0.55f + 0.4f * lattice(column, row, 3, facade.key));
        return mix(stone, stone * (joint < 0.012f ? 0.5f : 1.0f), resolved(0.05f, spot.footprint));
    }
    if (facade.masonry == Masonry::timber && spot.v > 0.45f && on_beam(bay)) {
        return beam * (0.75f + 0.5f * noise({spot.u * 9, spot.v * 9, 0}, facade.key + 4));
    }
    if (facade.masonry == Masonry::brick) return brickwork(spot.u, spot.v, facade.colour, facade.key, spot.footprint);
    return plaster(facade, spot);
}

Vec3 pane(const Bay& bay) {
    const float up = (bay.t - sill) / (lintel - sill);
    Vec3 colour = mix(Vec3{0.05f, 0.07f, 0.09f}, Vec3{0.20f, 0.27f, 0.34f}, up * up);
    if (bay.chance(1) < 0.6f) {  // curtains
        const float gather = 0.8f + 0.2f * std::sin(bay.s * 70);
        const float hanging = window_half * (bay.chance(2) < 0.5f ? 0.45f : 0.7f);
        if (std::abs(bay.s) > hanging) colour = mix(colour, Vec3{0.62f, 0.57f, 0.48f} * gather, 0.75f);
        if (bay.chance(3) < 0.35f && up < 0.45f) colour = mix(colour, Vec3{0.66f, 0.66f, 0.62f} * gather, 0.7f);
    }
    return colour;
}

Vec3 window(const Bay& bay) {
    const float side = window_half - std::abs(bay.s), above = lintel - bay.t, below = bay.t - sill;
    Vec3 colour = pane(bay);
    const bool bar = std::abs(bay.s) < 0.03f || std::abs(above - 0.42f) < 0.025f;
    if (std::min(std::min(side, above), below) < 0.07f || bar) colour = frame_white;
    return above < 0.14f ? colour * 0.55f : side < 0.05f ? colour * 0.8f : colour;  // set back a little into the wall
}

Vec3 flower_box(const Bay& bay) {
    if (bay.t < sill - 0.16f) return Vec3{0.36f, 0.18f, 0.11f};
    const float bloom = noise({bay.s * 16 + 50 * bay.chance(5), bay.t * 16, 0}, bay.facade.key + 6);
    const Vec3 flower = bay.chance(6) < 0.5f ? Vec3{0.75f, 0.12f, 0.14f} : Vec3{0.80f, 0.45f, 0.60f};
    return bloom > 0.56f ? flower : Vec3{0.14f, 0.30f, 0.09f} * (0.6f + bloom);
}

Vec3 door(const Bay& bay) {
    const float s = std::abs(bay.s);
    if (s > 0.47f || bay.t > 2.42f) return frame_white;
    if (bay.t > 2.08f) return bay.t < 2.14f ? frame_white : Vec3{0.12f, 0.15f, 0.18f};  // light above the door
    if (std::abs(bay.s - 0.36f) < 0.04f && std::abs(bay.t - 1.02f) < 0.07f) return {0.70f, 0.56f, 0.22f};
    int panel;
    const float height = whole(bay.t / 0.66f, panel);
    const bool groove = std::abs(s - 0.08f) < 0.025f || std::abs(s - 0.40f) < 0.02f || height < 0.08f || height > 0.94f;
    return bay.facade.accent * (groove ? 0.6f : 1.15f);
}

Vec3 shop_window(const Bay& bay) {
    if (bay.t > 2.3f) {  // the sign: a band with something like letters
        const bool letter =
            bay.t > 2.42f && bay.t < 2.68f &&
            noise({bay.s * 9 + 31 * static_cast<float>(bay.column), bay.t * 2, 0}, bay.facade.key + 12) > 0.5f;
        return letter ? Vec3{0.85f, 0.80f, 0.62f} : bay.facade.accent;
    }
    const float edge = std::min(bay.facade.bay_width() / 2 - std::abs(bay.s), std::min(bay.t - 0.45f, 2.3f - bay.t));
    if (bay.t < 0.45f) return bay.facade.accent * 0.8f;
    if (edge < 0.07f) return frame_white * 0.9f;
    int column, shelf;
    const float s = whole(bay.s * 4, column), t = whole((bay.t - 0.45f) / 0.46f, shelf);
    const float goods = lattice(column + 9 * bay.column, shelf, 13, bay.facade.key);
    if (t > 0.92f) return {0.30f, 0.26f, 0.20f};
    const bool thing = s > 0.15f && s < 0.85f && t < 0.35f + 0.5f * goods;
    const Vec3 colour{lattice(column, shelf, 14, bay.facade.key), 0.25f + 0.4f * goods,
                      0.3f * lattice(column, shelf, 15, bay.facade.key) + 0.1f};
    return thing ? colour * 0.7f : Vec3{0.16f, 0.14f, 0.11f};
}

bool has_window(const Bay& bay) {
    if (bay.facade.bay_width() < 2 * window_half + 0.3f || bay.storey >= bay.facade.storeys) return false;
    return bay.facade.front || bay.chance(0) < 0.55f;
}

Vec3 gable(const Bay& bay, const CitySpot& spot) {
    const Facade& facade = bay.facade;
    const float s = std::abs(spot.u - facade.width / 2), t = spot.v - facade.height;
    const bool attic = facade.width > 5 && s < 0.42f && t > 0.45f && t < 1.35f;
    if (!attic) return wall_itself(bay, spot);
    if (s > 0.34f || t < 0.53f || t > 1.27f || s < 0.025f) return frame_white;
    return {0.09f, 0.11f, 0.13f};
}

}  // namespace

Vec3 brickwork(float u, float v, Vec3 brick, std::uint32_t key, float footprint) {
    constexpr float length = 0.25f, height = 0.083f, joint = 0.011f;
    constexpr Vec3 mortar{0.56f, 0.53f, 0.47f};
    const Vec3 mean = mix(brick, mortar, 0.17f) * (0.88f + 0.24f * layered_noise({u * 0.7f, v * 0.7f, 0}, key));
    const float detail = resolved(height, footprint);
    if (detail == 0) return mean;
    int row, column;
    const float across = whole(v / height, row) * height;
    const float along = whole(u / length + 0.5f * static_cast<float>(row & 1), column) * length;
    const float edge = std::min(std::min(along, length - along), std::min(across, height - across));
    const Vec3 one = brick * (0.72f + 0.56f * lattice(column, row, 0, key));
    return mix(mean, edge < joint / 2 ? mortar : one, detail);
}

Vec3 facade_albedo(const Facade& facade, const CitySpot& spot) {
    int column, storey;
    const float s = (whole(spot.u / facade.bay_width(), column) - 0.5f) * facade.bay_width();
    const float t = whole(std::max(spot.v, 0.0f) / storey_height, storey) * storey_height;
    const Bay bay{facade, column, storey, s, t, spot.footprint};
    if (spot.v > facade.height) return gable(bay, spot);
    if (storey == 0 && column == facade.door && std::abs(s) < 0.55f && t < 2.5f) return door(bay);
    if (storey == 0 && facade.shop) return t < storey_height - 0.12f ? shop_window(bay) : sandstone;
    if (storey > 0 && storey < facade.storeys && t < 0.12f && facade.masonry != Masonry::timber)
        return sandstone * 1.1f;  // between storeys
    if (!has_window(bay) || (storey == 0 && column == facade.door)) return wall_itself(bay, spot);
    const float away = std::abs(s);
    if (away < window_half && t > sill && t < lintel) return window(bay);
    if (facade.flowers && storey > 0 && away < window_half + 0.05f && t > sill - 0.32f && t < sill + 0.12f)
        return flower_box(bay);
    if (away < window_half + 0.12f && t > sill - 0.09f && t <= sill) return sandstone * 1.2f;
    if (away < window_half + 0.12f && t >= lintel && t < lintel + 0.16f && facade.masonry == Masonry::brick)
        return sandstone;
    if (facade.shutters && away > window_half + 0.04f && away < window_half + 0.48f && t > sill && t < lintel) {
        int slat;
        return facade.accent *
               (mix(1.0f, whole(t / 0.09f, slat) < 0.35f ? 0.6f : 1.25f, resolved(0.05f, spot.footprint)));
    }
    return wall_itself(bay, spot);
}

}  // namespace splatmeter::demo
