#include "bvh.hpp"

#include <array>
#include <numeric>
#include <utility>

namespace splatmeter::demo {

namespace {

constexpr int bin_count = 16;
constexpr std::uint32_t leaf_size = 8;
constexpr int deepest = 60;  // bounds the stack of `search`
constexpr float self_distance = 1e-4f;  // hits nearer than this are the surface the ray starts from

struct Box {
    Vec3 low{nowhere, nowhere, nowhere}, high{-nowhere, -nowhere, -nowhere};

    void include(const Box& other) {
        low = minimum(low, other.low);
        high = maximum(high, other.high);
    }
    float area() const {
        const Vec3 size = high - low;
        return size.x < 0 ? 0 : size.x * size.y + size.y * size.z + size.z * size.x;
    }
};

}  // namespace

struct Bvh::Builder {
    std::vector<Box> boxes;
    std::vector<Vec3> centres;
    std::vector<std::uint32_t> order;
    std::vector<Node>& nodes;

    Builder(const Mesh& mesh, std::vector<Node>& target) : order(mesh.triangles.size()), nodes(target) {
        for (const Triangle& triangle : mesh.triangles) {
            Box box;
            for (const std::uint32_t corner : {triangle.a, triangle.b, triangle.c}) {
                const Vec3 position = mesh.vertices[corner].position;
                box.include({position, position});
            }
            boxes.push_back(box);
            centres.push_back((box.low + box.high) * 0.5f);
        }
        std::iota(order.begin(), order.end(), 0u);
        nodes.reserve(2 * order.size() + 1);
        nodes.emplace_back();
        split(0, 0, static_cast<std::uint32_t>(order.size()), 0);
    }

    void split(std::size_t index, std::uint32_t begin, std::uint32_t end, int depth) {
        Box box, spread;
        for (std::uint32_t k = begin; k < end; ++k) {
            box.include(boxes[order[k]]);
            spread.include({centres[order[k]], centres[order[k]]});
        }
        nodes[index] = {box.low, box.high, begin, end - begin};
        if (end - begin <= leaf_size || depth == deepest) return;
        const auto [axis, plane] = best_plane(spread, begin, end);
        const auto middle = std::partition(order.begin() + begin, order.begin() + end,
                                           [&, axis = axis, plane = plane](std::uint32_t k) { return centres[k][axis] < plane; });
        const auto cut = static_cast<std::uint32_t>(middle - order.begin());
        if (cut == begin || cut == end) return;
        const std::size_t left = nodes.size();
        nodes.resize(left + 2);
        nodes[index].first = static_cast<std::uint32_t>(left);
        nodes[index].count = 0;
        split(left, begin, cut, depth + 1);
        split(left + 1, cut, end, depth + 1);
    }

    // The plane between bins with the least expected work: area times count on either side.
    std::pair<int, float> best_plane(const Box& spread, std::uint32_t begin, std::uint32_t end) const {
        std::pair<int, float> best{0, nowhere};
        float least = nowhere;
        for (int axis = 0; axis < 3; ++axis) {
            const float low = spread.low[axis], width = spread.high[axis] - low;
            if (!(width > 0)) continue;
            std::array<Box, bin_count> bins;
            std::array<float, bin_count> counts{};
            for (std::uint32_t k = begin; k < end; ++k) {
                const float place = (centres[order[k]][axis] - low) / width * bin_count;
                const int bin = std::min(static_cast<int>(place), bin_count - 1);
                bins[bin].include(boxes[order[k]]);
                counts[bin] += 1;
            }
            std::array<float, bin_count> left_cost{};
            Box left, right;
            float left_count = 0, right_count = 0;
            for (int k = 0; k + 1 < bin_count; ++k) {
                left.include(bins[k]);
                left_count += counts[k];
                left_cost[k + 1] = left.area() * left_count;
            }
            for (int k = bin_count - 1; k > 0; --k) {
                right.include(bins[k]);
                right_count += counts[k];
                const float cost = left_cost[k] + right.area() * right_count;
                if (cost < least) {
                    least = cost;
                    best = {axis, low + width * static_cast<float>(k) / bin_count};
                }
            }
        }
        return best;
    }
};

Bvh::Bvh(const Mesh& mesh) {
    const Builder builder(mesh, nodes_);
    for (const std::uint32_t index : builder.order) {
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
    const auto inverse = [](Lanes x) { return 1.0f / ((x * x > 1e-24f) ? x : every_lane(1e-12f)); };
    const Lanes3 reciprocal{inverse(rays.direction.x), inverse(rays.direction.y), inverse(rays.direction.z)};
    Hits hits{rays.reach};
    const auto entry = [&](const Node& node) {  // `nowhere` when missed
        const Lanes3 t0 = (every_lane(node.low) - rays.origin) * reciprocal;
        const Lanes3 t1 = (every_lane(node.high) - rays.origin) * reciprocal;
        const Lanes enter = maximum(maximum(minimum(t0.x, t1.x), minimum(t0.y, t1.y)), maximum(minimum(t0.z, t1.z), Lanes{}));
        const Lanes leave = minimum(minimum(maximum(t0.x, t1.x), maximum(t0.y, t1.y)), minimum(maximum(t0.z, t1.z), hits.distance));
        return enter <= leave ? enter : every_lane(nowhere);
    };
    struct Waiting {
        Lanes entry;
        std::uint32_t node;
    };
    std::array<Waiting, deepest + 4> stack;
    int waiting = 0;
    std::uint32_t index = 0;
    for (;;) {
        const Node& node = nodes_[index];
        if (node.count > 0) {
            for (std::uint32_t k = node.first; k < node.first + node.count; ++k) meet(corners_[k], rays, hits);
            if (stop_at_any) {
                hits.distance = hits.triangle >= 0 ? every_lane(-1) : hits.distance;
                if (!any(hits.distance > 0.0f)) return hits;
            }
        } else {
            Waiting closer{entry(nodes_[node.first]), node.first}, farther{entry(nodes_[node.first + 1]), node.first + 1};
            float closest = least(closer.entry), other = least(farther.entry);
            if (other < closest) {
                std::swap(closer, farther);
                std::swap(closest, other);
            }
            if (other < nowhere) stack[waiting++] = farther;
            if (closest < nowhere) {
                index = closer.node;
                continue;
            }
        }
        do {
            if (waiting == 0) return hits;
            --waiting;
        } while (!any(stack[waiting].entry < hits.distance));
        index = stack[waiting].node;
    }
}

Hits Bvh::nearest(const Rays& rays) const { return search<false>(rays); }
Hits Bvh::blocked(const Rays& rays) const { return search<true>(rays); }

}  // namespace splatmeter::demo
