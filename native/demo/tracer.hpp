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

namespace splatmeter::demo {

struct Camera {
    std::array<Vec3, 3> rows;  // of the rotation, world to camera; x right, y down, z forward
    Vec3 translation;
    float fx, fy, cx, cy;

    // rotation row by row, translation, fx, fy, cx, cy
    static Camera from_numbers(std::span<const double, 16> numbers);
    Ray through(float x, float y) const;  // pixel coordinates; the first pixel covers [0, 1)
};

struct Picture {
    int width, height;
    int samples;  // per pixel, rounded to a square
    std::uint32_t seed;
    int threads;
};

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
    using Lights = std::array<Vec3, lane_count>;
    using Places = std::array<std::array<float, 2>, lane_count>;  // on the sun's disc, in the unit square

    Points meet(const Rays& rays) const;
    Point ground_point(const Ray& ray, float distance) const;
    Point surface_point(const Ray& ray, const Hits& hits, int lane) const;
    Lights sunlight(const Points& points, const Places& places) const;
    Lights radiance(const Rays& rays, const Places& places) const;
    Vec3 gathered(Vec3 position, Vec3 normal, int side, std::uint32_t key) const;
    Vec3 ground_light(Vec3 position) const;
    Vec3 pixel_mean(const Camera& camera, float left, float top, int wanted, Random& random) const;
    void bake(int threads);

    std::uint32_t seed_;
    Mesh mesh_;
    Bvh bvh_;
    std::vector<Vec3> vertex_light_;  // indirect light that arrives at each vertex
    std::vector<Vec3> ground_light_;  // the same on a grid of the ground
};

}  // namespace splatmeter::demo
