// Triangles in a tree of boxes: nearest hit, and whether anything is in the way, for four rays at once.
#pragma once

#include <cstdint>
#include <vector>

#include "box_tree.hpp"
#include "mesh.hpp"

namespace splatmeter::demo {

class Bvh {
   public:
    explicit Bvh(const Mesh& mesh);

    Hits nearest(const Rays& rays) const;
    Hits blocked(const Rays& rays) const;  // any triangle, not the nearest: enough for shadows

   private:
    struct Corner {
        Vec3 origin, edge1, edge2;
        std::int32_t triangle;
    };

    template <bool stop_at_any>
    Hits search(const Rays& rays) const;
    static void meet(const Corner& corner, const Rays& rays, Hits& hits);

    BoxTree tree_;
    std::vector<Corner> corners_;
};

}  // namespace splatmeter::demo
