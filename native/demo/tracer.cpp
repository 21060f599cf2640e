#include "tracer.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "garden.hpp"
#include "texture.hpp"

namespace splatmeter::demo {

namespace {

const Vec3 sun_direction = normalized({0.62f, -0.42f, 0.62f});
const Frame sun_frame = frame_around(sun_direction);
constexpr float sun_size = 0.035f;  // radians from the middle to the rim: several real suns, for softer shadows
constexpr Vec3 sun_colour{1.62f, 1.46f, 1.20f};
constexpr Vec3 second_bounce{0.30f, 0.30f, 0.28f};  // stands for all light after the first bounce
constexpr float translucency = 0.45f;               // of leaves and cloth lit from behind
constexpr float exposure = 1.5f;
constexpr int gather_side = 7;                      // squared: rays per baked place
constexpr int ground_cells = 160;
constexpr float ground_half = fence_radius + 0.6f;  // beyond, the ground sees the open sky
constexpr float lift = 1e-3f;                       // keeps rays from meeting the surface they leave

// Calls work(k) once for every k below count, from `threads` threads.
template <typename Work>
void in_parallel(int count, int threads, const Work& work) {
    std::atomic<int> next{0};
    const auto take = [&] {
        for (int k = next++; k < count; k = next++) work(k);
    };
    std::vector<std::jthread> others;
    for (int k = 1; k < threads; ++k) others.emplace_back(take);
    take();
}

std::uint8_t encode(float linear) {
    const float shown = 1 - std::exp(-exposure * std::max(linear, 0.0f));  // bright parts bend instead of clipping
    const float curve = shown < 0.0031308f ? 12.92f * shown : 1.055f * std::pow(shown, 1 / 2.4f) - 0.055f;
    return static_cast<std::uint8_t>(std::lround(255 * std::clamp(curve, 0.0f, 1.0f)));
}

int square_side(int samples) {
    return std::max(1, static_cast<int>(std::lround(std::sqrt(static_cast<float>(samples)))));
}

}  // namespace

struct World::Point {
    Vec3 position, normal, albedo, indirect;
    bool thin = false;
    float gloss = 0;
};

Camera Camera::from_numbers(std::span<const double, 16> numbers) {
    const auto number = [&](int k) { return static_cast<float>(numbers[static_cast<std::size_t>(k)]); };
    const auto row = [&](int k) { return Vec3{number(k), number(k + 1), number(k + 2)}; };
    return {{row(0), row(3), row(6)}, row(9), number(12), number(13), number(14), number(15)};
}

Ray Camera::through(float x, float y) const {
    const auto to_world = [&](Vec3 v) { return rows[0] * v.x + rows[1] * v.y + rows[2] * v.z; };
    return {to_world(translation) * -1.0f, normalized(to_world({(x - cx) / fx, (y - cy) / fy, 1}))};
}

World::World(std::uint32_t seed, int threads) : seed_(seed), mesh_(plant_garden(seed)), bvh_(mesh_) { bake(threads); }

std::shared_ptr<const World> World::of_seed(std::uint32_t seed, int threads) {
    static std::mutex guard;
    static std::shared_ptr<const World> latest;
    const std::lock_guard lock(guard);
    if (!latest || latest->seed_ != seed) latest = std::make_shared<const World>(seed, threads);
    return latest;
}

bool World::meet(const Ray& ray, Point& point) const {
    const Hit hit = bvh_.nearest(ray);
    const float down = ray.direction.z < 0 ? -ray.origin.z / ray.direction.z : Hit::nowhere;
    if (down < hit.distance) {
        const Vec3 position = ray.origin + ray.direction * down;
        if (position.x * position.x + position.y * position.y > dome_radius * dome_radius) return false;
        point = {position, {0, 0, 1}, ground_albedo(position, seed_), ground_light(position)};
        return true;
    }
    if (!hit.found()) return false;
    const Triangle& triangle = mesh_.triangles[hit.triangle];
    const Vertex &a = mesh_.vertices[triangle.a], &b = mesh_.vertices[triangle.b], &c = mesh_.vertices[triangle.c];
    const float w = 1 - hit.u - hit.v;
    const auto blend = [&](auto x, auto y, auto z) { return x * w + y * hit.u + z * hit.v; };
    const Vec3 position = ray.origin + ray.direction * hit.distance;
    const Spot spot{triangle.material, triangle.variant, position, blend(a.u, b.u, c.u), blend(a.v, b.v, c.v)};
    point = {position, normalized(blend(a.normal, b.normal, c.normal)), albedo(spot, seed_),
             blend(vertex_light_[triangle.a], vertex_light_[triangle.b], vertex_light_[triangle.c]),
             is_thin(triangle.material), gloss(triangle.material)};
    return true;
}

Vec3 World::on_dome(const Ray& ray) const {
    const float along = dot(ray.origin, ray.direction);
    const float rest = dot(ray.origin, ray.origin) - dome_radius * dome_radius;
    return ray.origin + ray.direction * (std::sqrt(std::max(0.0f, along * along - rest)) - along);
}

// (u, v) in the unit square choose a place on the sun's disc.
Vec3 World::sunlight(const Point& point, float u, float v) const {
    float facing = dot(point.normal, sun_direction);
    Vec3 outward = point.normal;
    if (facing < 0) {
        if (!point.thin) return {};
        facing *= -translucency;
        outward = outward * -1.0f;
    }
    const float radius = sun_size * std::sqrt(u), angle = 2 * pi * v;
    const Vec3 towards = normalized(sun_direction + sun_frame.side * (radius * std::cos(angle)) + sun_frame.ahead * (radius * std::sin(angle)));
    return bvh_.blocked({point.position + outward * lift, towards}) ? Vec3{} : sun_colour * facing;
}

Vec3 World::radiance(const Ray& ray, float u, float v) const {
    Point point;
    if (!meet(ray, point)) return sky_picture(on_dome(ray), seed_) * 0.85f;
    const Vec3 sun = sunlight(point, u, v);
    Vec3 light = point.albedo * (sun + point.indirect);
    if (point.gloss > 0 && sun.x > 0) {
        const Vec3 half = normalized(sun_direction - ray.direction);
        light += sun_colour * (point.gloss * std::pow(std::max(0.0f, dot(half, point.normal)), 70.0f));
    }
    return light;
}

// Cosine-weighted average of what the half space above the place sends.
Vec3 World::gathered(Vec3 position, Vec3 normal, std::uint32_t key) const {
    Random random(key);
    const Frame frame = frame_around(normal);
    Vec3 sum;
    for (int k = 0; k < gather_side * gather_side; ++k) {
        const float u = (static_cast<float>(k % gather_side) + random.next()) / gather_side;
        const float v = (static_cast<float>(k / gather_side) + random.next()) / gather_side;
        const float radius = std::sqrt(u), angle = 2 * pi * v;
        const Vec3 direction = frame.to_world({radius * std::cos(angle), radius * std::sin(angle), std::sqrt(1 - u)});
        Point point;
        if (!meet({position + normal * (2 * lift), direction}, point)) sum += sky_light(direction);
        else sum += point.albedo * (sunlight(point, random.next(), random.next()) + second_bounce);
    }
    return sum * (1.0f / (gather_side * gather_side));
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
            const auto key = scramble(seed_, 77u + static_cast<std::uint32_t>(k));
            on_vertices[k] = gathered(vertex.position, vertex.normal, key);
            if (!thin[k]) continue;
            const Vec3 behind = gathered(vertex.position, vertex.normal * -1.0f, key + 1);
            on_vertices[k] = (on_vertices[k] + behind) * 0.5f;
        }
    });
    in_parallel(ground_cells + 1, threads, [&](int row) {
        for (int column = 0; column <= ground_cells; ++column) {
            const int k = row * (ground_cells + 1) + column;
            const auto place = [](int cell) { return ground_half * (2 * static_cast<float>(cell) / ground_cells - 1); };
            on_ground[k] = gathered({place(column), place(row), 0}, {0, 0, 1}, scramble(seed_ + 1, static_cast<std::uint32_t>(k)));
        }
    });
    vertex_light_ = std::move(on_vertices);
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
    const int side = square_side(picture.samples), samples = side * side;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(picture.width) * picture.height * 3);
    in_parallel(picture.height, picture.threads, [&](int y) {
        for (int x = 0; x < picture.width; ++x) {
            const int index = y * picture.width + x;
            Random random(scramble(picture.seed, static_cast<std::uint32_t>(index)));
            const int turn = static_cast<int>(random.next() * static_cast<float>(samples));
            Vec3 sum;
            for (int k = 0; k < samples; ++k) {
                // One sample in each cell of the pixel, and one in each cell of the sun, paired differently per pixel.
                const int cell = (k * (side + 1) + turn) % samples;
                const auto jitter = [&](int place) { return (static_cast<float>(place) + random.next()) / static_cast<float>(side); };
                const float dx = jitter(k % side), dy = jitter(k / side), u = jitter(cell % side), v = jitter(cell / side);
                sum += radiance(camera.through(static_cast<float>(x) + dx, static_cast<float>(y) + dy), u, v);
            }
            sum = sum * (1.0f / static_cast<float>(samples));
            for (int channel = 0; channel < 3; ++channel) pixels[3 * index + channel] = encode(sum[channel]);
        }
    });
    return pixels;
}

void World::surface_points(std::span<const Camera> cameras, const Picture& picture, std::span<Vec3> positions,
                           std::span<std::uint8_t> colors) const {
    const int side = square_side(picture.samples), samples = side * side;
    in_parallel(static_cast<int>(positions.size()), picture.threads, [&](int k) {
        Random random(scramble(picture.seed, static_cast<std::uint32_t>(k)));
        const auto chosen = static_cast<std::size_t>(random.next() * static_cast<float>(cameras.size()));
        const float x = random.next() * static_cast<float>(picture.width), y = random.next() * static_cast<float>(picture.height);
        const Ray ray = cameras[chosen].through(x, y);
        Point point;
        positions[k] = meet(ray, point) ? point.position : on_dome(ray);
        Vec3 sum;
        for (int sample = 0; sample < samples; ++sample) {
            const auto jitter = [&](int place) { return (static_cast<float>(place) + random.next()) / static_cast<float>(side); };
            const float u = jitter(sample % side), v = jitter(sample / side);
            // A photo shows the neighbourhood, not the point: the colour is averaged over one pixel.
            sum += radiance(cameras[chosen].through(x + random.next() - 0.5f, y + random.next() - 0.5f), u, v);
        }
        for (int channel = 0; channel < 3; ++channel) colors[3 * k + channel] = encode(sum[channel] / static_cast<float>(samples));
    });
}

}  // namespace splatmeter::demo
