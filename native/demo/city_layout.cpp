// Which things of the city stand where.

#include <array>

#include "city_things.hpp"
#include "grove.hpp"

namespace splatmeter::demo {

namespace {

constexpr Vec3 upward{0, 0, 1};

Frame facing(Vec3 ahead) { return {cross(ahead, upward), ahead, upward}; }

// Parts of a block, each with random numbers of its own; 0 is its kind.
enum Part : std::uint32_t { yard = 1, beside_street = 2, wild = 3, green = 4, first_house = 10, first_car = 40 };

// Eight houses around a yard: three on the south and the north, one on the west and the east.
void add_houses(Things& things, const Plan& plan, int i, int j) {
    const Vec3 middle{pitch * (static_cast<float>(i) + 0.5f), pitch * (static_cast<float>(j) + 0.5f), 0};
    const float half = pitch / 2 - pavement_edge, third = 2 * half / 3;  // 14.5, 9.67
    struct Place {
        Vec3 ahead;
        float along;
        float width;
    };
    const std::array<Place, 8> places{{{{0, -1, 0}, -third, third},
                                       {{0, -1, 0}, 0, third},
                                       {{0, -1, 0}, third, third},
                                       {{0, 1, 0}, -third, third},
                                       {{0, 1, 0}, 0, third},
                                       {{0, 1, 0}, third, third},
                                       {{-1, 0, 0}, 0, third - 0.8f},
                                       {{1, 0, 0}, 0, third - 0.8f}}};
    for (std::uint32_t k = 0; k < places.size(); ++k) {
        Random random = plan.stream(i, j, first_house + k);
        const Frame frame = facing(places[k].ahead);
        const bool row = plan.stream(i, j, yard).next() < 0.4f && k < 6;  // wall to wall, or with gaps between
        const float setback = random.between(0.2f, 2.0f), depth = random.between(6.8f, 7.8f);
        const float width = places[k].width - (row ? 0.02f : random.between(0.4f, 2.2f));
        const Vec3 centre = middle + frame.ahead * (half - setback - depth / 2) + frame.side * places[k].along;
        add_house(things, {centre, frame, width, depth, setback}, random);
    }
}

void add_yard(Things& things, const Plan& plan, int i, int j) {
    const Vec3 middle{pitch * (static_cast<float>(i) + 0.5f), pitch * (static_cast<float>(j) + 0.5f), 0};
    Random random = plan.stream(i, j, yard);
    random.next();  // tells rows from single houses
    for (int k = 0; k < 5; ++k) {
        const Vec3 foot = middle + Vec3{random.between(-4, 4), random.between(-4.5f, 4.5f), 0};
        const bool fruit = random.next() < 0.5f;
        plant(things, foot, k < 2 ? (fruit ? blossom_tree : lime_tree) : bush, 1, random);
    }
    add_hedge(things, middle + Vec3{-4.5f, random.between(-1, 1), 0}, middle + Vec3{random.between(-1, 3), 0.3f, 0},
              1.1f, 0.5f);
}

void add_park(Things& things, const Plan& plan, int i, int j) {
    const Vec3 middle{pitch * (static_cast<float>(i) + 0.5f), pitch * (static_cast<float>(j) + 0.5f), 0};
    Random random = plan.stream(i, j, green);
    add_fountain(things, middle);
    for (int k = 0; k < 8; ++k) {
        const float angle = pi / 4 * (static_cast<float>(k) + 0.5f);
        const Vec3 outward{std::cos(angle), std::sin(angle), 0};
        if (k % 2 == 0)
            add_bench(things, middle + outward * 4.6f, facing(outward * -1.0f));
        else
            add_lamp(things, middle + outward * 5.0f, outward * -1.0f);
    }
    static constexpr std::array<std::uint16_t, 6> kinds{round_tree, round_tree, lime_tree,
                                                        spruce,     poplar,     blossom_tree};
    for (int k = 0; k < 26; ++k) {
        const Vec3 offset{random.between(-13, 13), random.between(-13, 13), 0};
        const auto kind = kinds[static_cast<std::size_t>(random.next() * kinds.size())];
        const float across =
            std::min(std::abs(offset.x - offset.y), std::abs(offset.x + offset.y));  // from the diagonal paths
        if (length(offset) < 8 || across < 2.6f)
            plant(things, middle + normalized(offset + Vec3{0.1f, 0, 0}) * random.between(9, 13), bush, 1.1f, random);
        else
            plant(things, middle + offset, kind, 1, random);
    }
    const float half = pitch / 2 - pavement_edge - 0.4f;
    for (const Vec3 ahead : {Vec3{1, 0, 0}, Vec3{0, 1, 0}, Vec3{-1, 0, 0}, Vec3{0, -1, 0}}) {
        const Vec3 side = cross(ahead, upward);
        add_hedge(things, middle + ahead * half - side * (half - 2.5f), middle + ahead * half + side * (half - 2.5f),
                  0.75f, 0.5f);
    }
}

// The countryside around: trees here and there, thicker towards the outside, where they hide the horizon.
void add_country(Things& things, const Plan& plan, int i, int j) {
    const Vec3 corner{pitch * static_cast<float>(i), pitch * static_cast<float>(j), 0};
    Random random = plan.stream(i, j, wild);
    for (int k = 0; k < 34; ++k) {
        const Vec3 foot = corner + Vec3{pitch * random.next(), pitch * random.next(), 0};
        const auto outside = [&](float x) { return std::max(-x, x - plan.side()); };
        const float away = std::max(outside(foot.x), outside(foot.y));
        const float chance = random.next(), scale = random.between(0.9f, 1.4f);
        const auto kind = static_cast<std::uint16_t>(random.next() * tree_kinds);
        if (away < 9 || chance > 0.12f + 0.9f * smoothstep(12, 32, away)) continue;
        plant(things, foot, kind, scale, random);
    }
}

// One stretch of street between two crossings: trees and lamps on both pavements, cars along both kerbs.
void add_street(Things& things, const Plan& plan, int i, int j, bool northwards) {
    const Vec3 along = northwards ? Vec3{0, 1, 0} : Vec3{1, 0, 0}, right = cross(along, upward);
    const Vec3 start{pitch * static_cast<float>(i), pitch * static_cast<float>(j), 0};
    const std::uint32_t axis = northwards ? 0 : 1;
    Random random = plan.stream(i, j, beside_street + 100 * (axis + 1));
    const auto kind = random.next() < 0.7f ? lime_tree : blossom_tree;
    for (const float side : {-1.0f, 1.0f}) {
        const Vec3 kerb = start + right * (side * (road_half + 0.55f));
        const float shift = side > 0 ? 0.0f : 3.5f;
        for (const float place : {10.5f, 24.5f}) add_lamp(things, kerb + along * (place + shift - 0.6f), right * -side);
        for (const float place : {8.0f, 14.0f, 21.0f, 28.0f}) {
            if (random.next() < 0.6f)
                plant(things, kerb + along * (place + 0.8f * shift) + right * (0.25f * side), kind, 0.95f, random);
        }
        for (std::uint32_t slot = 0; slot < 4; ++slot) {
            if (random.next() > 0.5f) continue;
            const Vec3 place = start + right * (side * (road_half - 1.1f)) +
                               along * (11.0f + 6.0f * static_cast<float>(slot) + random.between(-0.4f, 0.4f));
            add_car(things, place, facing(along * side),
                    plan.stream(i, j, first_car + 100 * (axis + 1) + (side > 0 ? 10 : 0) + slot));
        }
    }
}

}  // namespace

Things build_city(const Plan& plan) {
    Things things;
    for (int j = -1; j <= plan.size; ++j) {
        for (int i = -1; i <= plan.size; ++i) {
            switch (plan.kind(i, j)) {
                case BlockKind::houses:
                    add_houses(things, plan, i, j);
                    add_yard(things, plan, i, j);
                    break;
                case BlockKind::park:
                    add_park(things, plan, i, j);
                    break;
                case BlockKind::country:
                    add_country(things, plan, i, j);
                    break;
            }
        }
    }
    for (int line = 0; line <= plan.size; ++line) {
        for (int block = 0; block < plan.size; ++block) {
            add_street(things, plan, line, block, true);
            add_street(things, plan, block, line, false);
        }
    }
    return things;
}

}  // namespace splatmeter::demo
