#include "garden.hpp"

#include <array>

#include "texture.hpp"

namespace splatmeter::demo {

namespace {

constexpr float table_height = 0.76f;
constexpr float table_radius = 0.92f;
constexpr Vec3 vase_place{0.05f, 0.03f, table_height + 0.006f};

std::uint16_t variant_from(Random& random) { return static_cast<std::uint16_t>(random.next() * 65535); }

Vec3 around(float angle, float radius, float height = 0) {
    return {radius * std::cos(angle), radius * std::sin(angle), height};
}

Vec3 random_direction(Random& random) {
    const float z = random.between(-1, 1), angle = 2 * pi * random.next();
    return around(angle, std::sqrt(std::max(0.0f, 1 - z * z)), z);
}

Frame facing(float angle) {  // `ahead` looks away from the origin
    const Vec3 ahead = around(angle, 1);
    return {cross(ahead, {0, 0, 1}), ahead, {0, 0, 1}};
}

Curve straight(Vec3 from, Vec3 to) {
    return [=](float t) { return mix(from, to, t); };
}

void add_table(Mesh& mesh) {
    const Surface wood{Material::wood}, iron{Material::iron};
    const float low = table_height - 0.045f, inner = table_radius - 0.01f;
    const auto turned = [&](float r0, float z0, float r1, float z1, int rows) {
        add_lathe(mesh, wood, {}, 64, rows, straight({r0, 0, z0}, {r1, 0, z1}));
    };
    turned(0, low, inner, low, 8);
    turned(inner, low, table_radius, low + 0.01f, 1);
    turned(table_radius, low + 0.01f, table_radius, table_height - 0.01f, 1);
    turned(table_radius, table_height - 0.01f, inner, table_height, 1);
    turned(inner, table_height, 0, table_height, 20);
    add_lathe(mesh, iron, {}, 24, 24,
              spline({{0.10f, 0, 0.10f},
                      {0.055f, 0, 0.18f},
                      {0.045f, 0, 0.35f},
                      {0.075f, 0, 0.42f},
                      {0.045f, 0, 0.49f},
                      {0.05f, 0, 0.64f},
                      {0.14f, 0, low}}));
    for (int foot = 0; foot < 3; ++foot) {
        const float angle = 2 * pi * static_cast<float>(foot) / 3 + 0.3f;
        add_tube(mesh, iron,
                 spline({around(angle, 0.04f, 0.16f), around(angle, 0.22f, 0.17f), around(angle, 0.38f, 0.05f),
                         around(angle, 0.5f, 0.02f)}),
                 around(angle + pi / 2, 1), 0.024f, 8, 10);
    }
}

// A runner across the table that hangs down on both sides in folds.
void add_cloth(Mesh& mesh) {
    constexpr float half_width = 0.30f, half_length = 1.32f, direction = 0.62f, bend = 0.03f;
    const Vec3 along = around(direction, 1), across = around(direction + pi / 2, 1);
    add_patch(mesh, {Material::cloth}, 36, 96, [=](float u, float v) {
        const float y = (2 * u - 1) * half_width, s = (2 * v - 1) * half_length;
        const float edge = std::sqrt(table_radius * table_radius - y * y) + 0.006f - bend;
        const float over = std::abs(s) - edge;
        float reach = std::abs(s), drop = 0;
        if (over > 0) {
            const float turn = std::min(over / bend, pi / 2), hang = std::max(0.0f, over - bend * pi / 2);
            reach = edge + bend * std::sin(turn) + std::min(hang, 0.2f) * 0.22f * (0.6f + std::sin(y * 42 + 3 * v));
            drop = bend * (1 - std::cos(turn)) + hang;
        }
        return along * std::copysign(reach, s) + across * y + Vec3{0, 0, table_height + 0.005f - drop};
    });
}

void add_flower(Mesh& mesh, Vec3 centre, Vec3 up, float size, std::uint16_t colour, Random& random) {
    const Frame frame = frame_around(up);
    const int petals = 9 + static_cast<int>(random.next() * 5);
    for (int k = 0; k < petals; ++k) {
        const float angle = 2 * pi * (static_cast<float>(k) + 0.3f * random.next()) / static_cast<float>(petals);
        const Vec3 ahead = normalized(frame.to_world(around(angle, 1, random.between(0.15f, 0.45f))));
        const Vec3 side = normalized(cross(ahead, up));
        add_leaf(mesh, {Material::petal, colour}, centre, {side, ahead, cross(side, ahead)}, size, 0.26f, 4);
    }
    add_blob(mesh, {Material::flower_centre}, centre + up * (0.06f * size), Vec3{1, 1, 1} * (0.25f * size), 0, 10);
}

void add_bouquet(Mesh& mesh, Random random) {
    add_lathe(mesh, {Material::glaze}, vase_place, 40, 48,
              spline({{0.0f, 0, 0},
                      {0.075f, 0, 0.0f},
                      {0.085f, 0, 0.03f},
                      {0.125f, 0, 0.11f},
                      {0.140f, 0, 0.18f},
                      {0.110f, 0, 0.26f},
                      {0.060f, 0, 0.32f},
                      {0.055f, 0, 0.36f},
                      {0.085f, 0, 0.40f},
                      {0.070f, 0, 0.39f},
                      {0.048f, 0, 0.34f}}));
    constexpr int stems = 15;
    for (int k = 0; k < stems; ++k) {
        const float angle = 2.39996f * static_cast<float>(k) + random.between(-0.3f, 0.3f);
        const float spread = std::sqrt((static_cast<float>(k) + 0.4f) / stems);
        const Vec3 root = vase_place + Vec3{0, 0, 0.25f};
        const Vec3 neck = vase_place + around(angle, 0.03f * spread, 0.40f);
        const Vec3 head =
            vase_place + around(angle, 0.34f * spread, mix(0.82f, 0.55f, spread) + random.between(-0.04f, 0.04f));
        const Vec3 middle = mix(neck, head, 0.55f) + Vec3{0, 0, 0.06f};
        const Curve stem = spline({root, neck, middle, head});
        add_tube(mesh, {Material::stem}, stem, around(angle + pi / 2, 1), 0.005f, 6, 10);
        const auto colour = static_cast<std::uint16_t>(random.next() * 6);
        add_flower(mesh, head, normalized(head - middle + Vec3{0, 0, 0.08f}), random.between(0.075f, 0.115f), colour,
                   random);
        for (int leaf = 0; leaf < 3; ++leaf) {
            const float turn = angle + random.between(-1.6f, 1.6f);
            const Vec3 ahead = normalized(around(turn, 1, random.between(0.1f, 0.9f)));
            const Vec3 side = normalized(cross(ahead, {0, 0, 1}));
            add_leaf(mesh, {Material::leaf, variant_from(random)}, stem(random.between(0.42f, 0.8f)),
                     {side, ahead, cross(side, ahead)}, random.between(0.10f, 0.19f), 0.17f, 6);
        }
    }
}

void add_tableware(Mesh& mesh, Random random) {
    const auto bowl_place = around(2.55f, 0.56f, table_height + 0.004f);
    add_lathe(mesh, {Material::china}, bowl_place, 32, 20,
              spline({{0.0f, 0, 0},
                      {0.06f, 0, 0.0f},
                      {0.12f, 0, 0.035f},
                      {0.165f, 0, 0.085f},
                      {0.155f, 0, 0.085f},
                      {0.11f, 0, 0.04f},
                      {0, 0, 0.02f}}));
    for (int k = 0; k < 6; ++k) {
        const Vec3 place = k < 5 ? bowl_place + around(1.2566f * static_cast<float>(k), 0.075f, 0.085f)
                                 : bowl_place + Vec3{0, 0, 0.15f};
        add_blob(mesh, {Material::fruit, static_cast<std::uint16_t>(k)}, place,
                 Vec3{1, 1, 0.93f} * random.between(0.046f, 0.054f), 0.02f, 18);
    }
    for (const float angle : {-1.15f, 4.1f + 0.5f}) {
        const Vec3 place = around(angle, 0.62f, table_height + 0.004f);
        add_lathe(mesh, {Material::china}, place, 28, 6,
                  spline({{0, 0, 0}, {0.07f, 0, 0.004f}, {0.095f, 0, 0.016f}, {0.06f, 0, 0.012f}, {0, 0, 0.01f}}));
        add_lathe(mesh, {Material::china}, place + Vec3{0, 0, 0.01f}, 28, 14,
                  spline({{0, 0, 0},
                          {0.03f, 0, 0.0f},
                          {0.045f, 0, 0.03f},
                          {0.052f, 0, 0.08f},
                          {0.047f, 0, 0.078f},
                          {0.038f, 0, 0.03f},
                          {0, 0, 0.02f}}));
        const Vec3 handle = normalized(around(angle + 1.2f, 1));
        add_tube(
            mesh, {Material::china},
            [=](float t) {
                return place + Vec3{0, 0, 0.05f} + handle * (0.046f + 0.026f * std::sin(pi * t)) +
                       Vec3{0, 0, 0.022f * std::cos(pi * t)};
            },
            cross(handle, {0, 0, 1}), 0.005f, 6, 10);
    }
}

// Thin iron rods: the hardest thing in the garden to keep from flickering.
void add_chair(Mesh& mesh, float angle) {
    const Surface iron{Material::iron};
    const Frame frame = facing(angle);
    const Vec3 place = around(angle, 1.38f);
    const auto at = [&](float x, float y, float z) { return place + frame.to_world({x, y, z}); };
    add_lathe(mesh, iron, place, 28, 4, straight({0.215f, 0, 0.455f}, {0, 0, 0.455f}));
    add_lathe(mesh, iron, place, 28, 1, straight({0.215f, 0, 0.43f}, {0.215f, 0, 0.455f}));
    add_lathe(mesh, iron, place, 28, 2, straight({0, 0, 0.43f}, {0.215f, 0, 0.43f}));
    for (const float x : {-1.0f, 1.0f}) {
        for (const float y : {-1.0f, 1.0f}) {
            add_tube(mesh, iron, straight(at(0.19f * x, 0.20f * y, 0), at(0.13f * x, 0.14f * y, 0.44f)), frame.side,
                     0.013f, 8, 3);
        }
    }
    const auto back = [&](float x, float z) { return at(x, 0.19f + 0.16f * (z - 0.43f), z); };
    const auto arch = [](float x) {
        return 0.43f + 0.52f * std::pow(std::max(0.0f, 1 - std::pow(std::abs(x) / 0.2f, 2.6f)), 0.4f);
    };
    add_tube(
        mesh, iron,
        [&](float t) {
            const float turn = pi * t, c = std::cos(turn), s = std::sin(turn);
            return back(-0.2f * std::copysign(std::pow(std::abs(c), 0.77f), c),
                        0.43f + 0.52f * std::pow(s > 0 ? s : 0, 0.77f));
        },
        frame.ahead, 0.012f, 8, 28);
    for (int bar = -4; bar <= 4; ++bar) {
        const float x = 0.04f * static_cast<float>(bar);
        add_tube(mesh, iron, straight(back(x, 0.43f), back(x, arch(x))), frame.side, 0.006f, 6, 3);
    }
}

void add_fence(Mesh& mesh) {
    constexpr int pickets = 216;
    constexpr float half = 0.042f;
    const std::array<Vec3, 5> outline{
        {{-half, 0, 0.08f}, {half, 0, 0.08f}, {half, 0, 0.92f}, {0, 0, 1.02f}, {-half, 0, 0.92f}}};
    const std::array<Vec3, 4> post{{{-0.06f, 0, 0}, {0.06f, 0, 0}, {0.06f, 0, 1.12f}, {-0.06f, 0, 1.12f}}};
    for (int k = 0; k < pickets; ++k) {
        const float angle = 2 * pi * static_cast<float>(k) / pickets;
        const Surface paint{Material::paint, static_cast<std::uint16_t>(k)};
        if (k % 18 == 9)
            add_extrusion(mesh, paint, around(angle, fence_radius + 0.05f), facing(angle), post, 0.06f);
        else
            add_extrusion(mesh, paint, around(angle, fence_radius), facing(angle), outline, 0.012f);
    }
    for (const float height : {0.28f, 0.74f}) {
        add_lathe(mesh, {Material::paint}, {}, pickets, 1,
                  straight({fence_radius + 0.05f, 0, height}, {fence_radius + 0.05f, 0, height + 0.07f}));
        add_lathe(mesh, {Material::paint}, {}, pickets, 1,
                  straight({fence_radius + 0.02f, 0, height + 0.07f}, {fence_radius + 0.02f, 0, height}));
        add_lathe(mesh, {Material::paint}, {}, pickets, 1,
                  straight({fence_radius + 0.05f, 0, height + 0.07f}, {fence_radius + 0.02f, 0, height + 0.07f}));
    }
}

struct Foliage {
    int leaves;
    float leaf_size;
    float blossoms;  // share of leaves that carry one
    std::uint16_t colour;
};

// Leaves on and below the surface of a ball, over a dark core that closes the gaps.
void add_foliage(Mesh& mesh, Vec3 centre, Vec3 radii, const Foliage& kind, Random& random) {
    add_blob(mesh, {Material::leaf, 2}, centre, radii * 0.80f, 0.25f, 12);
    const auto family = static_cast<std::uint16_t>(variant_from(random) & 3);
    for (int k = 0; k < kind.leaves; ++k) {
        const Vec3 direction = random_direction(random);
        const Vec3 place = centre + direction * radii * random.between(0.74f, 1.0f);
        if (place.z < 0.02f) continue;
        const Vec3 outward = normalized(direction + 0.7f * random_direction(random));
        const Vec3 ahead = normalized(cross(outward, random_direction(random)) + 0.4f * outward);
        const Vec3 side = normalized(cross(ahead, outward));
        const auto variant =
            static_cast<std::uint16_t>((variant_from(random) & ~3) | (random.next() < 0.75f ? family : 1));
        add_leaf(mesh, {Material::leaf, variant}, place, {side, ahead, cross(side, ahead)},
                 kind.leaf_size * random.between(0.7f, 1.2f), 0.26f, 2);
        if (random.next() < kind.blossoms) {
            add_blob(mesh, {Material::petal, kind.colour}, place + direction * (0.5f * kind.leaf_size),
                     Vec3{1, 1, 1} * (0.32f * kind.leaf_size), 0.3f, 8, Gathering::once);
        }
    }
}

void add_bushes(Mesh& mesh, Random random) {
    constexpr int bushes = 13;
    for (int k = 0; k < bushes; ++k) {
        const float angle = 2 * pi * (static_cast<float>(k) + random.between(-0.25f, 0.25f)) / bushes;
        const float size = random.between(0.38f, 0.66f);
        const Vec3 radii = Vec3{1, 1, random.between(0.8f, 1.15f)} * size;
        const Foliage kind{380, 0.15f, k % 2 == 0 ? 0.16f : 0.0f, static_cast<std::uint16_t>(random.next() * 6)};
        add_foliage(mesh, around(angle, fence_radius - 0.15f - size, 0.75f * radii.z), radii, kind, random);
    }
}

void add_pot(Mesh& mesh, Vec3 place, std::uint16_t colour, Random random) {
    add_lathe(mesh, {Material::terracotta}, place, 28, 6, straight({0.12f, 0, 0}, {0.175f, 0, 0.25f}));
    add_lathe(mesh, {Material::terracotta}, place, 28, 2, straight({0.195f, 0, 0.25f}, {0.20f, 0, 0.31f}));
    add_lathe(mesh, {Material::terracotta}, place, 28, 1, straight({0.20f, 0, 0.31f}, {0.17f, 0, 0.31f}));
    add_lathe(mesh, {Material::soil}, place, 20, 2, straight({0.18f, 0, 0.28f}, {0, 0, 0.29f}));
    add_tube(mesh, {Material::bark}, straight(place + Vec3{0, 0, 0.28f}, place + Vec3{0, 0, 0.6f}), {1, 0, 0}, 0.016f,
             8, 2);
    add_foliage(mesh, place + Vec3{0, 0, 0.74f}, Vec3{1, 1, 1} * 0.24f, {260, 0.085f, 0.18f, colour}, random);
}

void add_trees(Mesh& mesh, Random random) {
    constexpr int trees = 7;
    for (int k = 0; k < trees; ++k) {
        const float angle = 2 * pi * (static_cast<float>(k) + random.between(-0.3f, 0.3f)) / trees + 0.4f;
        const Vec3 foot = around(angle, random.between(8.2f, 11.5f));
        const float height = random.between(1.9f, 2.6f), size = random.between(1.0f, 1.45f);
        add_tube(mesh, {Material::bark}, straight(foot, foot + Vec3{0.1f, 0.05f, height}), {1, 0, 0}, 0.11f, 10, 6);
        for (int crown = 0; crown < 3; ++crown) {
            const Vec3 centre = foot + around(2.1f * static_cast<float>(crown) + angle, 0.55f * size,
                                              height + 0.3f * static_cast<float>(crown));
            add_foliage(mesh, centre, Vec3{1, 1, 0.85f} * (0.75f * size), {330, 0.30f, 0, 0}, random);
        }
    }
}

void add_stones(Mesh& mesh, Random random) {
    for (std::uint16_t k = 0; k < 16; ++k) {
        const float angle = 2 * pi * random.next(), size = random.between(0.07f, 0.20f);
        const Vec3 radii{size * random.between(0.8f, 1.3f), size, size * random.between(0.55f, 0.85f)};
        add_blob(mesh, {Material::stone, k}, around(angle, random.between(3.15f, 3.9f), 0.3f * size), radii, 0.3f, 18);
    }
}

}  // namespace

Mesh plant_garden(std::uint32_t seed) {
    const auto stream = [seed](std::uint32_t part) { return Random(scramble(seed, 1000 + part)); };
    Mesh mesh;
    add_table(mesh);
    add_cloth(mesh);
    add_bouquet(mesh, stream(1));
    add_tableware(mesh, stream(2));
    for (const float angle : {-0.75f, 1.75f, 3.85f}) add_chair(mesh, angle);
    add_fence(mesh);
    add_bushes(mesh, stream(3));
    for (int k = 0; k < 5; ++k) {
        const float angle = 2 * pi * static_cast<float>(k) / 5 + 0.25f;
        add_pot(mesh, around(angle, 2.35f), static_cast<std::uint16_t>(k), stream(10 + static_cast<std::uint32_t>(k)));
    }
    add_trees(mesh, stream(4));
    add_stones(mesh, stream(5));
    return mesh;
}

}  // namespace splatmeter::demo
