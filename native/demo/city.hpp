// Photographs of the city: a sun with a soft edge, and light from the sky where it is not hidden.
//
// Rays find what is built in one tree of boxes, and trees in another. Every random number is a hash of seed and
// place, so a picture is the same with any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "city_things.hpp"
#include "film.hpp"
#include "grove.hpp"

namespace splatmeter::demo {

// A point that structure from motion might find: where a ray of some camera ends.
struct Finding {
    Vec3 position;
    float distance;  // from that camera
    std::array<std::uint8_t, 3> colour;
};

struct Observation {
    std::int32_t camera;
    float x, y;  // pixels
};

class City {
   public:
    City(const Plan& plan, int threads);

    // The latest city is kept: photographs of one come in a row.
    static std::shared_ptr<const City> planned(const Plan& plan, int threads);

    std::vector<std::uint8_t> photograph(const Camera& camera, const Picture& picture) const;  // [H, W, 3]

    // The findings number first, first + 1, ... : random pixels of random cameras.
    void find(std::span<const Camera> cameras, const Picture& picture, std::uint32_t first,
              std::span<Finding> findings) const;

    // Which cameras see a place that nothing hides: the nearest ones, `most` at most.
    std::vector<Observation> observers(std::span<const Camera> cameras, const Picture& picture, Vec3 position,
                                       std::size_t most) const;

   private:
    struct Point {  // where a ray ends, with all that shading needs
        Vec3 position, normal, albedo;
        float openness = 1;
        float gloss = 0;
        bool sky = false;
    };
    using Points = std::array<Point, lane_count>;

    Points meet(const Rays& rays, float pixel_angle) const;
    Point ground_point(const Ray& ray, float distance, float pixel_angle) const;
    Point built_point(const Ray& ray, const Hits& hits, int lane, float pixel_angle) const;
    Point tree_point(const Ray& ray, const Hits& hits, int lane, const Planting& tree, float pixel_angle) const;
    LaneMask hidden(const Rays& rays) const;  // whether anything is in the way of each ray
    Lights sunlight(const Points& points, const Places& places) const;
    Lights radiance(const Rays& rays, const Places& places, float pixel_angle) const;
    Vec3 on_dome(const Ray& ray) const;
    Vec3 sky(Vec3 direction) const;
    float openness(Vec3 position, Vec3 normal) const;
    float open_sky(Vec3 position, std::uint32_t key) const;
    void bake(int threads);

    Plan plan_;
    Things things_;
    Bvh built_;
    Grove grove_;
    int open_cells_;           // a side of the grid below
    std::vector<float> open_;  // how much of the sky the ground sees
};

}  // namespace splatmeter::demo
