// Photographs of the garden: sun with a soft edge, one bounce of light from sky and surroundings.
//
// Every random number is a hash of seed, pixel and sample, so a picture is the same with any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bvh.hpp"
#include "film.hpp"

namespace splatmeter::demo {

class World {
   public:
    World(std::uint32_t seed, int threads);

    // The latest world is kept: photographs of one garden come in a row.
    static std::shared_ptr<const World> of_seed(std::uint32_t seed, int threads);

    std::vector<std::uint8_t> photograph(const Camera& camera, const Picture& picture) const;  // [H, W, 3]

    // Where rays through random pixels of random cameras end, and the colour there.
    void surface_points(std::span<const Camera> cameras, const Picture& picture, std::span<Vec3> positions,
                        std::span<std::uint8_t> colors) const;

   private:
    struct Point;  // where a ray ends, with all that shading needs
    using Points = std::array<Point, lane_count>;

    Points meet(const Rays& rays) const;
    Point ground_point(const Ray& ray, float distance) const;
    Point surface_point(const Ray& ray, const Hits& hits, int lane) const;
    Lights sunlight(const Points& points, const Places& places) const;
    Lights radiance(const Rays& rays, const Places& places) const;
    Vec3 gathered(Vec3 position, Vec3 normal, int side, std::uint32_t key) const;
    Vec3 ground_light(Vec3 position) const;
    void bake(int threads);

    std::uint32_t seed_;
    Mesh mesh_;
    Bvh bvh_;
    std::vector<Vec3> vertex_light_;  // indirect light that arrives at each vertex
    std::vector<Vec3> ground_light_;  // the same on a grid of the ground
};

}  // namespace splatmeter::demo
