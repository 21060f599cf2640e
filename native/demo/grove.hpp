// Trees: a few models, planted many times. A tree costs a few numbers, whatever its leaves cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bvh.hpp"
#include "city_things.hpp"

namespace splatmeter::demo {

// Kinds of trees, by their number in a Planting.
inline constexpr std::uint16_t lime_tree = 0, round_tree = 1, poplar = 2, spruce = 3, blossom_tree = 4, bush = 5,
                               tree_kinds = 6;

class Grove {
   public:
    Grove(std::uint32_t seed, std::vector<Planting> trees);

    // Shortens what is already known of the rays; `tree` tells which one each met.
    void nearest(const Rays& rays, Hits& hits, LaneMask& tree) const;
    void blocked(const Rays& rays, Hits& hits) const;

    const Planting& tree(int number) const { return trees_[static_cast<std::size_t>(number)]; }
    const Mesh& mesh_of(const Planting& tree) const { return models_[tree.kind].mesh; }

   private:
    struct Model {
        Mesh mesh;
        Bvh bvh;
        Box box;

        explicit Model(Mesh made);
    };

    static Rays seen_from(const Planting& tree, const Rays& rays, Lanes reach);
    static std::vector<Model> grow(std::uint32_t seed);
    std::vector<Box> boxes() const;

    std::vector<Model> models_;
    std::vector<Planting> trees_;
    BoxTree places_;
};

}  // namespace splatmeter::demo
