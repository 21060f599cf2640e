#include "bvh.hpp"

#include <array>
#include <numeric>
#include <utility>

namespace splatmeter::demo {

namespace {

constexpr float infinity = Hit::nowhere;
constexpr int bin_count = 16;
constexpr std::uint32_t leaf_size = 4;
constexpr int deepest = 60;  // bounds the stack of `search`
constexpr float self_distance = 1e-4f;  // hits nearer than this are the surface the ray starts from

struct Box {
    Vec3 low{infinity, infinity, infinity}, high{-infinity, -infinity, -infinity};

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
        std::pair<int, float> best{0, infinity};
        float least = infinity;
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
                            mesh.vertices[triangle.c].position - origin, index});
    }
}

template <bool any>
Hit Bvh::search(const Ray& ray) const {
    const auto inverse = [](float x) { return 1.0f / (std::abs(x) > 1e-12f ? x : 1e-12f); };
    const Vec3 reciprocal{inverse(ray.direction.x), inverse(ray.direction.y), inverse(ray.direction.z)};
    Hit hit;
    const auto entry = [&](const Node& node) {  // infinite when missed
        const Vec3 t0 = (node.low - ray.origin) * reciprocal, t1 = (node.high - ray.origin) * reciprocal;
        const Vec3 lower = minimum(t0, t1), upper = maximum(t0, t1);
        const float enter = std::max(std::max(lower.x, lower.y), std::max(lower.z, 0.0f));
        const float leave = std::min(std::min(upper.x, upper.y), std::min(upper.z, hit.distance));
        return enter <= leave ? enter : infinity;
    };
    const auto meet = [&](const Corner& corner) {
        const Vec3 p = cross(ray.direction, corner.edge2);
        const float determinant = dot(corner.edge1, p);
        if (std::abs(determinant) < 1e-16f) return;  // slivers at poles
        const float scale = 1.0f / determinant;
        const Vec3 offset = ray.origin - corner.origin;
        const float u = dot(offset, p) * scale;
        const Vec3 q = cross(offset, corner.edge1);
        const float v = dot(ray.direction, q) * scale;
        const float distance = dot(corner.edge2, q) * scale;
        if (u >= 0 && v >= 0 && u + v <= 1 && distance > self_distance && distance < hit.distance) {
            hit = {distance, corner.triangle, u, v};
        }
    };
    std::array<std::pair<std::uint32_t, float>, deepest + 4> stack;
    int waiting = 0;
    std::uint32_t index = 0;
    if (entry(nodes_[0]) == infinity) return hit;
    for (;;) {
        const Node& node = nodes_[index];
        if (node.count > 0) {
            for (std::uint32_t k = node.first; k < node.first + node.count; ++k) meet(corners_[k]);
            if (any && hit.found()) return hit;
        } else {
            std::uint32_t near_child = node.first, far_child = node.first + 1;
            float near_entry = entry(nodes_[near_child]), far_entry = entry(nodes_[far_child]);
            if (far_entry < near_entry) {
                std::swap(near_child, far_child);
                std::swap(near_entry, far_entry);
            }
            if (far_entry < infinity) stack[waiting++] = {far_child, far_entry};
            if (near_entry < infinity) {
                index = near_child;
                continue;
            }
        }
        do {
            if (waiting == 0) return hit;
            --waiting;
        } while (stack[waiting].second >= hit.distance);
        index = stack[waiting].first;
    }
}

Hit Bvh::nearest(const Ray& ray) const { return search<false>(ray); }
bool Bvh::blocked(const Ray& ray) const { return search<true>(ray).found(); }

}  // namespace splatmeter::demo
