#include "tracer.hpp"

#include <mutex>
#include <utility>

#include "garden.hpp"
#include "texture.hpp"

namespace splatmeter::demo {

namespace {

const Vec3 sun_direction = normalized({0.62f, -0.42f, 0.62f});
const Frame sun_frame = frame_around(sun_direction);
constexpr float sun_size = 0.035f;  // radians from the middle to the rim: several real suns, for softer shadows
constexpr Vec3 sun_colour{1.62f, 1.46f, 1.20f};
constexpr Vec3 second_bounce{0.22f, 0.22f, 0.21f};  // stands for all light after the first bounce
constexpr float translucency = 0.45f;               // of leaves and cloth lit from behind
constexpr int ground_gathering = 6;                 // squared: rays that gather light for one place
constexpr int vertex_gathering = 4;
constexpr int leaf_gathering = 2;  // what noise this leaves passes for variety
constexpr int ground_cells = 104;
constexpr float ground_half = fence_radius + 0.6f;  // beyond, the ground sees the open sky
constexpr float lift = 1e-3f;                       // keeps rays from meeting the surface they leave

Vec3 on_dome(const Ray& ray) {
    const float along = dot(ray.origin, ray.direction);
    const float rest = dot(ray.origin, ray.origin) - dome_radius * dome_radius;
    return ray.origin + ray.direction * (std::sqrt(std::max(0.0f, along * along - rest)) - along);
}

}  // namespace

struct World::Point {
    Vec3 position, normal, albedo, indirect;
    bool sky = false;
    bool thin = false;
    float gloss = 0;
};

World::World(std::uint32_t seed, int threads) : seed_(seed), mesh_(plant_garden(seed)), bvh_(mesh_) { bake(threads); }

std::shared_ptr<const World> World::of_seed(std::uint32_t seed, int threads) {
    static std::mutex guard;
    static std::shared_ptr<const World> latest;
    const std::lock_guard lock(guard);
    if (!latest || latest->seed_ != seed) latest = std::make_shared<const World>(seed, threads);
    return latest;
}

World::Points World::meet(const Rays& rays) const {
    const Hits hits = bvh_.nearest(rays);
    Points points;
    for (int lane = 0; lane < lane_count; ++lane) {
        const Ray ray = rays.at(lane);
        const float down = ray.direction.z < 0 ? -ray.origin.z / ray.direction.z : nowhere;
        const Vec3 below = ray.origin + ray.direction * down;
        const bool on_ground = below.x * below.x + below.y * below.y < dome_radius * dome_radius;
        if (on_ground && down < hits.distance[lane])
            points[lane] = ground_point(ray, down);
        else if (hits.triangle[lane] >= 0)
            points[lane] = surface_point(ray, hits, lane);
        else
            points[lane].sky = true;
    }
    return points;
}

World::Point World::ground_point(const Ray& ray, float distance) const {
    Vec3 position = ray.origin + ray.direction * distance;
    position.z = 0;
    return {position, {0, 0, 1}, ground_albedo(position, seed_), ground_light(position)};
}

World::Point World::surface_point(const Ray& ray, const Hits& hits, int lane) const {
    const Triangle& triangle = mesh_.triangles[static_cast<std::size_t>(hits.triangle[lane])];
    const Vertex &a = mesh_.vertices[triangle.a], &b = mesh_.vertices[triangle.b], &c = mesh_.vertices[triangle.c];
    const float u = hits.u[lane], v = hits.v[lane], w = 1 - u - v;
    const auto blend = [&](auto x, auto y, auto z) { return x * w + y * u + z * v; };
    const Vec3 position = ray.origin + ray.direction * hits.distance[lane];
    const Spot spot{triangle.material, triangle.variant, position, blend(a.u, b.u, c.u), blend(a.v, b.v, c.v)};
    return {position,
            normalized(blend(a.normal, b.normal, c.normal)),
            albedo(spot, seed_),
            blend(vertex_light_[triangle.a], vertex_light_[triangle.b], vertex_light_[triangle.c]),
            false,
            is_thin(triangle.material),
            gloss(triangle.material)};
}

// What the sun gives each point through one place on its disc.
Lights World::sunlight(const Points& points, const Places& places) const {
    Rays rays;
    Lights lights;
    for (int lane = 0; lane < lane_count; ++lane) {
        const Point& point = points[lane];
        const float facing = dot(point.normal, sun_direction);
        if (point.sky || (facing < 0 && !point.thin)) continue;
        const auto [u, v] = places[lane];
        const float radius = sun_size * std::sqrt(u), angle = 2 * pi * v;
        const Vec3 aside = sun_frame.side * (radius * std::cos(angle)) + sun_frame.ahead * (radius * std::sin(angle));
        rays.set(lane,
                 {point.position + point.normal * std::copysign(lift, facing), normalized(sun_direction + aside)});
        lights[lane] = sun_colour * (facing < 0 ? -translucency * facing : facing);
    }
    const Hits hits = bvh_.blocked(rays);
    for (int lane = 0; lane < lane_count; ++lane) {
        if (hits.triangle[lane] >= 0) lights[lane] = {};
    }
    return lights;
}

Lights World::radiance(const Rays& rays, const Places& places) const {
    const Points points = meet(rays);
    const Lights sun = sunlight(points, places);
    Lights lights;
    for (int lane = 0; lane < lane_count; ++lane) {
        const Point& point = points[lane];
        lights[lane] =
            point.sky ? sky_picture(on_dome(rays.at(lane)), seed_) : point.albedo * (sun[lane] + point.indirect);
        if (point.gloss > 0 && sun[lane].x > 0) {
            const Vec3 half = normalized(sun_direction - rays.direction.at(lane));
            lights[lane] += sun_colour * (point.gloss * std::pow(std::max(0.0f, dot(half, point.normal)), 70.0f));
        }
    }
    return lights;
}

// Cosine-weighted average of what the half space above the place sends.
Vec3 World::gathered(Vec3 position, Vec3 normal, int side, std::uint32_t key) const {
    const int rays_in_all = side * side;  // a multiple of the lanes
    Random random(key);
    const Frame frame = frame_around(normal);
    Vec3 sum;
    for (int first = 0; first < rays_in_all; first += lane_count) {
        Rays rays;
        Places places;
        for (int lane = 0; lane < lane_count; ++lane) {
            const int k = first + lane;
            const float u = (static_cast<float>(k % side) + random.next()) / static_cast<float>(side);
            const float v = (static_cast<float>(k / side) + random.next()) / static_cast<float>(side);
            const float radius = std::sqrt(u), angle = 2 * pi * v;
            const Vec3 direction{radius * std::cos(angle), radius * std::sin(angle), std::sqrt(1 - u)};
            rays.set(lane, {position + normal * (2 * lift), frame.to_world(direction)});
            places[lane] = {random.next(), random.next()};
        }
        const Points points = meet(rays);
        const Lights sun = sunlight(points, places);
        for (int lane = 0; lane < lane_count; ++lane) {
            sum += points[lane].sky ? sky_light(rays.direction.at(lane))
                                    : points[lane].albedo * (sun[lane] + second_bounce);
        }
    }
    return sum * (1.0f / static_cast<float>(rays_in_all));
}

void World::bake(int threads) {
    constexpr int block = 256;
    vertex_light_.assign(mesh_.vertices.size(), {});
    ground_light_.assign((ground_cells + 1) * (ground_cells + 1), {});
    // Into fresh arrays: while gathering, the light still reads as zero and `second_bounce` stands in for it.
    std::vector<Vec3> on_vertices(vertex_light_.size()), on_ground(ground_light_.size());
    std::vector<bool> thin(mesh_.vertices.size());
    for (const Triangle& triangle : mesh_.triangles) thin[triangle.a] = is_thin(triangle.material);
    for (const Triangle& triangle : mesh_.triangles) thin[triangle.b] = thin[triangle.c] = is_thin(triangle.material);
    const int vertices = static_cast<int>(on_vertices.size());
    in_parallel((vertices + block - 1) / block, threads, [&](int part) {
        for (int k = part * block; k < std::min(vertices, (part + 1) * block); ++k) {
            const Vertex& vertex = mesh_.vertices[k];
            if (vertex.light_of != static_cast<std::uint32_t>(k)) continue;
            const auto key = scramble(seed_, 77u + static_cast<std::uint32_t>(k));
            const int side = vertex.gathering == Gathering::once ? leaf_gathering : vertex_gathering;
            on_vertices[k] = gathered(vertex.position, vertex.normal, side, key);
            if (!thin[k]) continue;
            const Vec3 behind = gathered(vertex.position, vertex.normal * -1.0f, side, key + 1);
            on_vertices[k] = (on_vertices[k] + behind) * 0.5f;
        }
    });
    in_parallel(ground_cells + 1, threads, [&](int row) {
        for (int column = 0; column <= ground_cells; ++column) {
            const int k = row * (ground_cells + 1) + column;
            const auto place = [](int cell) { return ground_half * (2 * static_cast<float>(cell) / ground_cells - 1); };
            on_ground[k] = gathered({place(column), place(row), 0}, {0, 0, 1}, ground_gathering,
                                    scramble(seed_ + 1, static_cast<std::uint32_t>(k)));
        }
    });
    for (int k = 0; k < vertices; ++k) vertex_light_[k] = on_vertices[mesh_.vertices[k].light_of];
    ground_light_ = std::move(on_ground);
}

Vec3 World::ground_light(Vec3 position) const {
    const auto cell = [](float x, int& index) {
        const float place = std::clamp((x / ground_half + 1) * 0.5f, 0.0f, 1.0f) * ground_cells;
        index = std::min(static_cast<int>(place), ground_cells - 1);
        return place - static_cast<float>(index);
    };
    int column, row;
    const float u = cell(position.x, column), v = cell(position.y, row);
    const Vec3* corner = ground_light_.data() + row * (ground_cells + 1) + column;
    return mix(mix(corner[0], corner[1], u), mix(corner[ground_cells + 1], corner[ground_cells + 2], u), v);
}

std::vector<std::uint8_t> World::photograph(const Camera& camera, const Picture& picture) const {
    return exposed(camera, picture, [this](const Rays& rays, const Places& places) { return radiance(rays, places); });
}

void World::surface_points(std::span<const Camera> cameras, const Picture& picture, std::span<Vec3> positions,
                           std::span<std::uint8_t> colors) const {
    in_parallel(static_cast<int>(positions.size()), picture.threads, [&](int k) {
        Random random(scramble(picture.seed, static_cast<std::uint32_t>(k)));
        const Camera& camera = cameras[static_cast<std::size_t>(random.next() * static_cast<float>(cameras.size()))];
        const float x = random.next() * static_cast<float>(picture.width),
                    y = random.next() * static_cast<float>(picture.height);
        Rays rays;
        rays.set(0, camera.through(x, y));
        const Point point = meet(rays)[0];
        positions[k] = point.sky ? on_dome(rays.at(0)) : point.position;
        // A photo shows the neighbourhood, not the point: the colour is that of a pixel around it.
        const Vec3 mean =
            pixel_mean(camera, x - 0.5f, y - 0.5f, picture.samples, random,
                       [this](const Rays& samples, const Places& places) { return radiance(samples, places); });
        for (int channel = 0; channel < 3; ++channel) colors[3 * k + channel] = encode(mean[channel]);
    });
}

}  // namespace splatmeter::demo
