#include "tree_models.hpp"

#include <array>

#include "grove.hpp"

namespace splatmeter::demo {

namespace {

struct Foliage {
    int leaves;
    float leaf_size;
    std::uint16_t family;  // of greens
    float blossoms = 0;    // share of leaves that are blossoms
};

Vec3 random_direction(Random& random) {
    const float z = random.between(-1, 1), angle = 2 * pi * random.next(),
                radius = std::sqrt(std::max(0.0f, 1 - z * z));
    return {radius * std::cos(angle), radius * std::sin(angle), z};
}

// A leaf, or a twig of them: a rhomb. Its normal is mostly that of the crown, so that crowns look round from afar.
void add_blade(Mesh& mesh, Surface surface, Vec3 place, Vec3 outward, float size, Random& random) {
    const Vec3 up = normalized(outward + 0.8f * random_direction(random));
    const Vec3 ahead = normalized(cross(up, random_direction(random)) + 0.3f * outward),
               side = normalized(cross(ahead, up));
    const std::size_t first = mesh.vertices.size();
    add_face(mesh, surface,
             std::array<Vec3, 4>{place, place + ahead * (0.5f * size) + side * (0.3f * size), place + ahead * size,
                                 place + ahead * (0.5f * size) - side * (0.3f * size)});
    for (std::size_t k = first; k < mesh.vertices.size(); ++k)
        mesh.vertices[k].normal = normalized(outward + 0.45f * up);
}

// Leaves on and below the surface of a ball, over a dark core that closes the gaps.
void add_crown(Mesh& mesh, Vec3 centre, Vec3 radii, const Foliage& kind, Random& random) {
    add_blob(mesh, {Material::leaf, static_cast<std::uint16_t>(kind.family + 8)}, centre, radii * 0.78f, 0.25f, 12);
    for (int k = 0; k < kind.leaves; ++k) {
        const Vec3 direction = random_direction(random);
        const Vec3 place = centre + direction * radii * random.between(0.72f, 1.0f);
        const auto tone = static_cast<std::uint16_t>(random.next() * 4096);
        const bool blossom = random.next() < kind.blossoms;
        const Surface surface{blossom ? Material::petal : Material::leaf,
                              static_cast<std::uint16_t>(16 * tone + (blossom ? 0 : kind.family))};
        add_blade(mesh, surface, place, direction, kind.leaf_size * random.between(0.7f, 1.2f), random);
    }
}

void add_trunk(Mesh& mesh, float height, float radius) {
    add_tube(
        mesh, {Material::bark},
        [=](float t) {
            return Vec3{0.06f * std::sin(3 * t), 0.04f * t, height * t};
        },
        {1, 0, 0}, radius, 8, 3);
}

void grow_broad(Mesh& mesh, float trunk, float size, int crowns, const Foliage& kind, Random& random) {
    add_trunk(mesh, trunk + 0.6f * size, 0.09f * size);
    for (int k = 0; k < crowns; ++k) {
        const float angle = 2 * pi * (static_cast<float>(k) + 0.3f * random.next()) / static_cast<float>(crowns);
        const Vec3 centre{0.42f * size * std::cos(angle), 0.42f * size * std::sin(angle),
                          trunk + size * random.between(0.6f, 0.95f)};
        add_crown(mesh, centre, Vec3{1, 1, 0.9f} * (size * random.between(0.62f, 0.78f)), kind, random);
    }
    add_crown(mesh, {0, 0, trunk + 1.25f * size}, Vec3{1, 1, 0.95f} * (0.72f * size), kind, random);
}

void grow_spruce(Mesh& mesh, Random& random) {
    add_trunk(mesh, 1.2f, 0.14f);
    constexpr int tiers = 6;
    for (int k = 0; k < tiers; ++k) {
        const float t = static_cast<float>(k) / tiers, radius = 1.45f * (1 - t) + 0.2f;
        add_crown(mesh, {0, 0, 1.1f + 5.2f * t}, {radius, radius, 0.62f},
                  {static_cast<int>(620 * radius) + 60, 0.22f, 2}, random);
    }
}

}  // namespace

Mesh grow_tree(std::uint16_t kind, Random random) {
    Mesh mesh;
    switch (kind) {
        case lime_tree:
            grow_broad(mesh, 2.3f, 1.5f, 4, {750, 0.19f, 0}, random);
            break;
        case round_tree:
            grow_broad(mesh, 2.2f, 2.0f, 5, {850, 0.23f, 1}, random);
            break;
        case poplar:
            add_trunk(mesh, 2, 0.16f);
            add_crown(mesh, {0, 0, 2.6f}, {0.9f, 0.9f, 1.6f}, {1000, 0.18f, 3}, random);
            add_crown(mesh, {0.05f, 0, 5}, {1.0f, 1.0f, 2.6f}, {1700, 0.18f, 3}, random);
            break;
        case spruce:
            grow_spruce(mesh, random);
            break;
        case blossom_tree:
            grow_broad(mesh, 1.5f, 1.1f, 3, {800, 0.13f, 1, 0.55f}, random);
            break;
        default:
            add_crown(mesh, {0, 0, 0.4f}, {0.6f, 0.6f, 0.5f}, {450, 0.12f, 0, 0.12f}, random);
            break;
    }
    return mesh;
}

}  // namespace splatmeter::demo
