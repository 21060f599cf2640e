#include "grove.hpp"

#include <utility>

#include "tree_models.hpp"

namespace splatmeter::demo {

Grove::Model::Model(Mesh made) : mesh(std::move(made)), bvh(mesh) {
    for (const Vertex& vertex : mesh.vertices) box.include({vertex.position, vertex.position});
}

Grove::Grove(std::uint32_t seed, std::vector<Planting> trees)
    : models_(grow(seed)), trees_(std::move(trees)), places_(boxes(), 2) {}

std::vector<Grove::Model> Grove::grow(std::uint32_t seed) {
    std::vector<Model> models;
    for (std::uint16_t kind = 0; kind < tree_kinds; ++kind)
        models.emplace_back(grow_tree(kind, Random(scramble(seed, 4000u + kind))));
    return models;
}

// Round, so that any turn about the vertical fits.
std::vector<Box> Grove::boxes() const {
    std::vector<Box> made;
    for (const Planting& tree : trees_) {
        const Box& box = models_[tree.kind].box;
        const Vec3 far = maximum(box.low * -1.0f, box.high);
        const float radius = tree.scale * std::sqrt(far.x * far.x + far.y * far.y);
        made.push_back({tree.foot + Vec3{-radius, -radius, tree.scale * box.low.z},
                        tree.foot + Vec3{radius, radius, tree.scale * box.high.z}});
    }
    return made;
}

// Lengths along a ray stay what they are: its direction shrinks with everything else.
Rays Grove::seen_from(const Planting& tree, const Rays& rays, Lanes reach) {
    const Lanes cosine = every_lane(tree.cosine / tree.scale), sine = every_lane(tree.sine / tree.scale);
    const auto turned = [&](const Lanes3& v) {
        return Lanes3{v.x * cosine + v.y * sine, v.y * cosine - v.x * sine, v.z * (1.0f / tree.scale)};
    };
    return {turned(rays.origin - every_lane(tree.foot)), turned(rays.direction), reach};
}

void Grove::nearest(const Rays& rays, Hits& hits, LaneMask& tree) const {
    places_.walk<false>(rays, hits, [&](std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t k = first; k < first + count; ++k) {
            const auto number = static_cast<std::int32_t>(places_.order()[k]);
            const Planting& here = trees_[places_.order()[k]];
            const Hits found = models_[here.kind].bvh.nearest(seen_from(here, rays, hits.distance));
            const LaneMask met = found.triangle >= 0;
            hits.distance = met ? found.distance : hits.distance;
            hits.triangle = met ? found.triangle : hits.triangle;
            hits.u = met ? found.u : hits.u;
            hits.v = met ? found.v : hits.v;
            tree = met ? LaneMask{number, number, number, number} : tree;
        }
    });
}

void Grove::blocked(const Rays& rays, Hits& hits) const {
    places_.walk<true>(rays, hits, [&](std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t k = first; k < first + count; ++k) {
            const Planting& here = trees_[places_.order()[k]];
            const Hits found = models_[here.kind].bvh.blocked(seen_from(here, rays, hits.distance));
            hits.triangle = found.triangle >= 0 ? found.triangle : hits.triangle;
        }
    });
}

}  // namespace splatmeter::demo
