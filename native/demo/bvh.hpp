// A binary tree of boxes over triangles: nearest hit, and whether anything is in the way.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh.hpp"

namespace splatmeter::demo {

struct Ray {
    Vec3 origin, direction;
};

struct Hit {
    static constexpr float nowhere = 1e30f;  // finite, so that no compiler option changes comparisons

    float distance = nowhere;
    std::uint32_t triangle = 0;
    float u = 0, v = 0;  // weights of the triangle's second and third corner

    bool found() const { return distance < nowhere; }
};

class Bvh {
public:
    explicit Bvh(const Mesh& mesh);

    Hit nearest(const Ray& ray) const;
    bool blocked(const Ray& ray) const;  // up to infinity

private:
    struct Node {
        Vec3 low, high;
        std::uint32_t first = 0;  // of its triangles, or the left of its two adjacent children
        std::uint32_t count = 0;  // of its triangles; zero in an inner node
    };
    struct Corner {
        Vec3 origin, edge1, edge2;
        std::uint32_t triangle;
    };
    struct Builder;

    template <bool any>
    Hit search(const Ray& ray) const;

    std::vector<Node> nodes_;
    std::vector<Corner> corners_;
};

}  // namespace splatmeter::demo
