#include "bvh.hpp"

namespace splatmeter::demo {

namespace {

constexpr std::uint32_t leaf_size = 8;
constexpr float self_distance = 1e-4f;  // hits nearer than this are the surface the ray starts from

std::vector<Box> boxes_of(const Mesh& mesh) {
    std::vector<Box> boxes;
    for (const Triangle& triangle : mesh.triangles) {
        Box box;
        for (const std::uint32_t corner : {triangle.a, triangle.b, triangle.c}) {
            const Vec3 position = mesh.vertices[corner].position;
            box.include({position, position});
        }
        boxes.push_back(box);
    }
    return boxes;
}

}  // namespace

Bvh::Bvh(const Mesh& mesh) : tree_(boxes_of(mesh), leaf_size) {
    for (const std::uint32_t index : tree_.order()) {
        const Triangle& triangle = mesh.triangles[index];
        const Vec3 origin = mesh.vertices[triangle.a].position;
        corners_.push_back({origin, mesh.vertices[triangle.b].position - origin,
                            mesh.vertices[triangle.c].position - origin, static_cast<std::int32_t>(index)});
    }
}

void Bvh::meet(const Corner& corner, const Rays& rays, Hits& hits) {
    const Lanes3 edge1 = every_lane(corner.edge1), edge2 = every_lane(corner.edge2);
    const Lanes3 p = cross(rays.direction, edge2);
    const Lanes determinant = dot(edge1, p);
    const Lanes flat = every_lane(1e-16f);  // slivers at poles, and triangles seen from their edge
    const LaneMask solid = determinant * determinant > flat * flat;
    const Lanes scale = 1.0f / (solid ? determinant : every_lane(1));
    const Lanes3 offset = rays.origin - every_lane(corner.origin);
    const Lanes3 q = cross(offset, edge1);
    const Lanes u = dot(offset, p) * scale, v = dot(rays.direction, q) * scale, distance = dot(edge2, q) * scale;
    const LaneMask inside = (u >= 0.0f) & (v >= 0.0f) & (u + v <= 1.0f) & solid;
    const LaneMask met = inside & (distance > self_distance) & (distance < hits.distance);
    if (!any(met)) return;
    const LaneMask number{corner.triangle, corner.triangle, corner.triangle, corner.triangle};
    hits.distance = met ? distance : hits.distance;
    hits.triangle = met ? number : hits.triangle;
    hits.u = met ? u : hits.u;
    hits.v = met ? v : hits.v;
}

template <bool stop_at_any>
Hits Bvh::search(const Rays& rays) const {
    Hits hits{rays.reach};
    tree_.walk<stop_at_any>(rays, hits, [&](std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t k = first; k < first + count; ++k) meet(corners_[k], rays, hits);
    });
    return hits;
}

Hits Bvh::nearest(const Rays& rays) const { return search<false>(rays); }
Hits Bvh::blocked(const Rays& rays) const { return search<true>(rays); }

}  // namespace splatmeter::demo
