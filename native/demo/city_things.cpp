#include "city_things.hpp"

#include <array>

namespace splatmeter::demo {

namespace {

constexpr Vec3 upward{0, 0, 1};

Curve straight(Vec3 from, Vec3 to) {
    return [=](float t) { return mix(from, to, t); };
}

}  // namespace

void add_mapped_face(Mesh& mesh, Surface surface, std::span<const Mapped> corners) {
    std::vector<Vec3> positions;
    for (const Mapped& corner : corners) positions.push_back(corner.position);
    const std::size_t first = mesh.vertices.size();
    add_face(mesh, surface, positions);
    for (std::size_t k = 0; k < corners.size(); ++k) {
        mesh.vertices[first + k].u = corners[k].u;
        mesh.vertices[first + k].v = corners[k].v;
    }
}

void add_box(Mesh& mesh, Surface surface, Vec3 centre, const Frame& frame, Vec3 half_sides_and_height) {
    const auto [x, y, height] = half_sides_and_height;
    const auto at = [&, x = x, y = y](int corner, float z) {
        static constexpr std::array<float, 4> right{1, 1, -1, -1}, front{-1, 1, 1, -1};
        const auto k = static_cast<std::size_t>(corner % 4);
        return centre + frame.to_world({x * right[k], y * front[k], z});
    };
    for (int k = 0; k < 4; ++k) {
        const float width = k % 2 == 0 ? 2 * y : 2 * x;
        add_mapped_face(mesh, surface,
                        std::array<Mapped, 4>{{{at(k, 0), 0, 0},
                                               {at(k + 1, 0), width, 0},
                                               {at(k + 1, height), width, height},
                                               {at(k, height), 0, height}}});
    }
    add_mapped_face(mesh, surface,
                    std::array<Mapped, 4>{{{at(0, height), 2 * x, 0},
                                           {at(1, height), 2 * x, 2 * y},
                                           {at(2, height), 0, 2 * y},
                                           {at(3, height), 0, 0}}});
}

void add_car(Things& things, Vec3 place, const Frame& frame, Random random) {
    Mesh& mesh = things.mesh;
    const auto colour = static_cast<std::uint16_t>(random.next() * 65535);
    const float length = random.between(3.7f, 4.4f) / 2, roof = random.between(1.4f, 1.6f);
    const Frame sideways{frame.ahead, frame.side * -1.0f, frame.up};  // outlines lie in the plane of ahead and up
    const std::array<Vec3, 6> body{{{-length, 0, 0.25f},
                                    {length, 0, 0.25f},
                                    {length, 0, 0.62f},
                                    {length - 0.25f, 0, 0.80f},
                                    {-length + 0.1f, 0, 0.88f},
                                    {-length, 0, 0.7f}}};
    const std::array<Vec3, 4> cabin{{{-length + 0.15f, 0, 0.86f},
                                     {length - 1.15f, 0, 0.82f},
                                     {length - 1.75f, 0, roof - 0.06f},
                                     {-length + 0.6f, 0, roof - 0.06f}}};
    const std::array<Vec3, 4> top{{{-length + 0.6f, 0, roof - 0.06f},
                                   {length - 1.75f, 0, roof - 0.06f},
                                   {length - 1.85f, 0, roof},
                                   {-length + 0.7f, 0, roof}}};
    add_extrusion(mesh, {Material::car_paint, colour}, place, sideways, body, 0.86f);
    add_extrusion(mesh, {Material::glass}, place, sideways, cabin, 0.76f);
    add_extrusion(mesh, {Material::car_paint, colour}, place, sideways, top, 0.76f);
    for (const float along : {-length + 0.75f, length - 0.75f}) {
        for (const float across : {-0.80f, 0.80f}) {
            std::array<Vec3, 10> wheel;
            for (std::size_t k = 0; k < wheel.size(); ++k) {
                const float angle = 2 * pi * static_cast<float>(k) / wheel.size();
                wheel[k] = {along + 0.32f * std::cos(angle), 0, 0.32f + 0.32f * std::sin(angle)};
            }
            add_extrusion(mesh, {Material::tyre}, place + frame.side * across, sideways, wheel, 0.1f);
        }
    }
    for (const float across : {-0.6f, 0.6f}) {
        add_box(mesh, {Material::lantern}, place + frame.to_world({across, length, 0.52f}), frame,
                {0.16f, 0.03f, 0.14f});
        add_box(mesh, {Material::lantern, 1}, place + frame.to_world({across, -length, 0.55f}), frame,
                {0.14f, 0.03f, 0.14f});
    }
}

void add_lamp(Things& things, Vec3 foot, Vec3 towards_road) {
    const Frame frame{cross(towards_road, upward), towards_road, upward};
    const Vec3 top = foot + upward * 4.2f, end = top + towards_road * 0.9f + upward * 0.25f;
    add_box(things.mesh, {Material::iron}, foot, frame, {0.11f, 0.11f, 0.7f});
    add_tube(things.mesh, {Material::iron}, straight(foot + upward * 0.7f, top), {1, 0, 0}, 0.055f, 6, 1);
    add_tube(things.mesh, {Material::iron}, straight(top, end), upward, 0.04f, 5, 1);
    add_box(things.mesh, {Material::iron}, end - upward * 0.02f, frame, {0.2f, 0.2f, 0.06f});
    add_box(things.mesh, {Material::lantern}, end - upward * 0.3f, frame, {0.14f, 0.14f, 0.28f});
}

void add_bench(Things& things, Vec3 place, const Frame& frame) {
    for (const float y : {-0.15f, 0.0f, 0.15f})
        add_box(things.mesh, {Material::wood}, place + frame.to_world({0, y, 0.43f}), frame, {0.85f, 0.06f, 0.04f});
    for (const float z : {0.6f, 0.78f})
        add_box(things.mesh, {Material::wood}, place + frame.to_world({0, -0.27f, z}), frame, {0.85f, 0.025f, 0.12f});
    for (const float x : {-0.65f, 0.65f}) {
        add_box(things.mesh, {Material::iron}, place + frame.to_world({x, -0.05f, 0}), frame, {0.04f, 0.2f, 0.44f});
        add_box(things.mesh, {Material::iron}, place + frame.to_world({x, -0.31f, 0}), frame, {0.04f, 0.03f, 0.9f});
    }
}

void add_fountain(Things& things, Vec3 place) {
    const auto ring = [&](Material material, Vec3 from, Vec3 to) {
        add_lathe(things.mesh, {material}, place, 28, 1, straight(from, to));
    };
    ring(Material::stone, {2.4f, 0, 0}, {2.3f, 0, 0.55f});
    ring(Material::stone, {2.3f, 0, 0.55f}, {2.0f, 0, 0.55f});
    ring(Material::stone, {2.0f, 0, 0.55f}, {2.0f, 0, 0.3f});
    ring(Material::water, {2.0f, 0, 0.42f}, {0.01f, 0, 0.42f});
    ring(Material::stone, {0.35f, 0, 0.4f}, {0.18f, 0, 1.2f});
    ring(Material::stone, {0.18f, 0, 1.2f}, {0.95f, 0, 1.5f});
    ring(Material::water, {0.95f, 0, 1.49f}, {0.1f, 0, 1.46f});
    ring(Material::stone, {0.12f, 0, 1.4f}, {0.02f, 0, 2.1f});
}

void add_hedge(Things& things, Vec3 from, Vec3 to, float height, float thickness) {
    const Vec3 along = to - from;
    if (length(along) < 0.3f) return;
    const Vec3 side = normalized(along);
    add_box(things.mesh, {Material::hedge}, (from + to) * 0.5f, {side, cross(upward, side), upward},
            {length(along) / 2, thickness / 2, height});
}

void plant(Things& things, Vec3 foot, std::uint16_t kind, float scale, Random& random) {
    const float angle = 2 * pi * random.next();
    things.trees.push_back({foot, std::cos(angle), std::sin(angle), scale * random.between(0.85f, 1.15f), kind,
                            random.between(0.8f, 1.15f)});
}

}  // namespace splatmeter::demo
