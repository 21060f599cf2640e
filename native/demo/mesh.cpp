#include "mesh.hpp"

#include <utility>

#include "texture.hpp"

namespace splatmeter::demo {

namespace {

constexpr float difference = 1e-3f;  // step of the numerical derivative, in the unit square

// Poles have no derivative of their own: the normal is taken a little inside.
Vec3 normal_at(const Patch& patch, float u, float v) {
    const float s = std::clamp(u, 2 * difference, 1 - 2 * difference);
    const float t = std::clamp(v, 2 * difference, 1 - 2 * difference);
    const Vec3 along_u = patch(s + difference, t) - patch(s - difference, t);
    const Vec3 along_v = patch(s, t + difference) - patch(s, t - difference);
    return normalized(cross(along_u, along_v));
}

}  // namespace

void add_patch(Mesh& mesh, Surface surface, int columns, int rows, const Patch& patch, Gathering gathering) {
    const auto first = static_cast<std::uint32_t>(mesh.vertices.size());
    const auto middle = first + static_cast<std::uint32_t>((rows / 2) * (columns + 1) + columns / 2);
    for (int row = 0; row <= rows; ++row) {
        for (int column = 0; column <= columns; ++column) {
            const float u = static_cast<float>(column) / static_cast<float>(columns);
            const float v = static_cast<float>(row) / static_cast<float>(rows);
            const auto own = static_cast<std::uint32_t>(mesh.vertices.size());
            mesh.vertices.push_back(
                {patch(u, v), normal_at(patch, u, v), u, v, gathering == Gathering::once ? middle : own, gathering});
        }
    }
    const auto stride = static_cast<std::uint32_t>(columns + 1);
    for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(rows); ++row) {
        for (std::uint32_t column = 0; column + 1 < stride; ++column) {
            const std::uint32_t corner = first + row * stride + column;
            mesh.triangles.push_back({corner, corner + 1, corner + stride + 1, surface.material, surface.variant});
            mesh.triangles.push_back({corner, corner + stride + 1, corner + stride, surface.material, surface.variant});
        }
    }
}

void add_face(Mesh& mesh, Surface surface, std::span<const Vec3> corners) {
    const auto first = static_cast<std::uint32_t>(mesh.vertices.size());
    const Vec3 normal = normalized(cross(corners[1] - corners[0], corners[2] - corners[0]));
    for (const Vec3& corner : corners) {
        mesh.vertices.push_back(
            {corner, normal, 0, 0, static_cast<std::uint32_t>(mesh.vertices.size()), Gathering::each_vertex});
    }
    for (std::uint32_t k = 2; k < corners.size(); ++k) {
        mesh.triangles.push_back({first, first + k - 1, first + k, surface.material, surface.variant});
    }
}

void add_extrusion(Mesh& mesh, Surface surface, Vec3 origin, const Frame& frame, std::span<const Vec3> outline,
                   float half_depth) {
    std::vector<Vec3> front, back;
    for (const Vec3& point : outline) {
        front.push_back(origin + frame.to_world({point.x, -half_depth, point.z}));
        back.push_back(origin + frame.to_world({point.x, half_depth, point.z}));
    }
    const std::size_t count = outline.size();
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t next = (k + 1) % count;
        add_face(mesh, surface, std::vector{front[k], back[k], back[next], front[next]});
    }
    add_face(mesh, surface, front);
    add_face(mesh, surface, std::vector(back.rbegin(), back.rend()));
}

void add_lathe(Mesh& mesh, Surface surface, Vec3 base, int sides, int rows, const Curve& profile) {
    add_patch(mesh, surface, sides, rows, [&](float u, float v) {
        const Vec3 point = profile(v);
        const float angle = 2 * pi * u;
        return base + Vec3{point.x * std::cos(angle), point.x * std::sin(angle), point.z};
    });
}

void add_tube(Mesh& mesh, Surface surface, const Curve& curve, Vec3 reference, float radius, int sides, int rows) {
    add_patch(mesh, surface, sides, rows, [&](float u, float v) {
        const float t = std::clamp(v, difference, 1 - difference);
        const Vec3 ahead = normalized(curve(t + difference) - curve(t - difference));
        const Vec3 side = normalized(cross(reference, ahead));
        const Vec3 up = cross(ahead, side);
        const float angle = 2 * pi * u;
        return curve(v) + (side * std::cos(angle) + up * std::sin(angle)) * radius;
    });
}

void add_blob(Mesh& mesh, Surface surface, Vec3 centre, Vec3 radii, float dents, int sides, Gathering gathering) {
    add_patch(
        mesh, surface, sides, std::max(3, sides / 2),
        [&](float u, float v) {
            const float angle = 2 * pi * u, rise = pi * (v - 0.5f);
            const Vec3 direction{std::cos(rise) * std::cos(angle), std::cos(rise) * std::sin(angle), std::sin(rise)};
            const float swell = 1 + dents * (2 * noise(direction * 1.7f, surface.variant) - 1);
            return centre + direction * radii * swell;
        },
        gathering);
}

void add_leaf(Mesh& mesh, Surface surface, Vec3 base, const Frame& frame, float size, float width, int rows) {
    add_patch(
        mesh, surface, 2, rows,
        [&](float u, float v) {
            const float across = 2 * u - 1;
            const float outline = std::max(std::sin(pi * std::pow(v, 0.75f)), 0.02f);
            const float cup = 0.25f * across * across * width * outline + 0.35f * v * (1 - v) - 0.12f * v * v;
            return base + frame.to_world({across * width * outline * size, v * size, cup * size});
        },
        Gathering::once);
}

Curve spline(std::vector<Vec3> points) {
    return [points = std::move(points)](float t) {
        const int last = static_cast<int>(points.size()) - 1;
        const float place = std::clamp(t, 0.0f, 1.0f) * static_cast<float>(last);
        const int k = std::min(static_cast<int>(place), last - 1);
        const float s = place - static_cast<float>(k);
        const Vec3 p0 = points[std::max(k - 1, 0)], p1 = points[k];
        const Vec3 p2 = points[k + 1], p3 = points[std::min(k + 2, last)];
        return p1 + 0.5f * s * (p2 - p0 + s * (2 * p0 - 5 * p1 + 4 * p2 - p3 + s * (3 * (p1 - p2) + p3 - p0)));
    };
}

}  // namespace splatmeter::demo
