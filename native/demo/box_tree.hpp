// A binary tree of boxes over anything that has a box: which leaves four rays pass, the nearest first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lanes.hpp"

namespace splatmeter::demo {

inline constexpr float nowhere = 1e30f;  // a distance; finite, so that no compiler option changes comparisons

struct Ray {
    Vec3 origin, direction;
};

struct Rays {
    Lanes3 origin, direction;
    Lanes reach = every_lane(-1);  // how far each goes; negative lanes meet nothing

    void set(int lane, const Ray& ray) {
        origin.set(lane, ray.origin);
        direction.set(lane, ray.direction);
        reach[lane] = nowhere;
    }
    Ray at(int lane) const { return {origin.at(lane), direction.at(lane)}; }
};

struct Hits {
    Lanes distance;
    LaneMask triangle{-1, -1, -1, -1};  // its number; negative where nothing was met
    Lanes u{}, v{};                     // weights of the triangle's second and third corner
};

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

class BoxTree {
   public:
    BoxTree(std::span<const Box> boxes, std::uint32_t leaf_size);

    // The k-th member of a leaf is the order()[k]-th of the boxes.
    std::span<const std::uint32_t> order() const { return order_; }

    // Calls leaf(first, count) for places in the order, while it shortens hits.distance;
    // with stop_at_any, lanes that met a triangle are done.
    template <bool stop_at_any, typename Leaf>
    void walk(const Rays& rays, Hits& hits, const Leaf& leaf) const;

   private:
    struct Node {
        Vec3 low, high;
        std::uint32_t first = 0;  // of its members, or the left of its two adjacent children
        std::uint32_t count = 0;  // of its members; zero in an inner node
    };
    struct Builder;
    static constexpr int deepest = 60;  // bounds the stack of `walk`

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> order_;
};

template <bool stop_at_any, typename Leaf>
void BoxTree::walk(const Rays& rays, Hits& hits, const Leaf& leaf) const {
    const auto inverse = [](Lanes x) { return 1.0f / ((x * x > 1e-24f) ? x : every_lane(1e-12f)); };
    const Lanes3 reciprocal{inverse(rays.direction.x), inverse(rays.direction.y), inverse(rays.direction.z)};
    const auto entry = [&](const Node& node) {  // `nowhere` when missed
        const Lanes3 t0 = (every_lane(node.low) - rays.origin) * reciprocal;
        const Lanes3 t1 = (every_lane(node.high) - rays.origin) * reciprocal;
        const Lanes enter =
            maximum(maximum(minimum(t0.x, t1.x), minimum(t0.y, t1.y)), maximum(minimum(t0.z, t1.z), Lanes{}));
        const Lanes leave =
            minimum(minimum(maximum(t0.x, t1.x), maximum(t0.y, t1.y)), minimum(maximum(t0.z, t1.z), hits.distance));
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
            leaf(node.first, node.count);
            if (stop_at_any) {
                hits.distance = hits.triangle >= 0 ? every_lane(-1) : hits.distance;
                if (!any(hits.distance > 0.0f)) return;
            }
        } else {
            Waiting closer{entry(nodes_[node.first]), node.first},
                farther{entry(nodes_[node.first + 1]), node.first + 1};
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
            if (waiting == 0) return;
            --waiting;
        } while (!any(stack[waiting].entry < hits.distance));
        index = stack[waiting].node;
    }
}

}  // namespace splatmeter::demo
