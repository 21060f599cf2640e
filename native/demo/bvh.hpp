// A binary tree of boxes over triangles: nearest hit, and whether anything is in the way, for four rays at once.
#pragma once

#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "mesh.hpp"

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

class Bvh {
public:
    explicit Bvh(const Mesh& mesh);

    Hits nearest(const Rays& rays) const;
    Hits blocked(const Rays& rays) const;  // any triangle, not the nearest: enough for shadows

private:
    struct Node {
        Vec3 low, high;
        std::uint32_t first = 0;  // of its triangles, or the left of its two adjacent children
        std::uint32_t count = 0;  // of its triangles; zero in an inner node
    };
    struct Corner {
        Vec3 origin, edge1, edge2;
        std::int32_t triangle;
    };
    struct Builder;

    template <bool stop_at_any>
    Hits search(const Rays& rays) const;
    static void meet(const Corner& corner, const Rays& rays, Hits& hits);

    std::vector<Node> nodes_;
    std::vector<Corner> corners_;
};

}  // namespace splatmeter::demo
