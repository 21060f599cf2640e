#include "city.hpp"

#include <mutex>
#include <utility>

#include "city_texture.hpp"

namespace splatmeter::demo {

namespace {

const Vec3 sun_direction = normalized({0.60f, -0.38f, 0.72f});
const Frame sun_frame = frame_around(sun_direction);
constexpr float sun_size = 0.025f;  // radians from the middle to the rim: several real suns, for softer shadows
constexpr Vec3 sun_colour{1.60f, 1.45f, 1.20f};
constexpr Vec3 from_sky{0.36f, 0.43f, 0.54f}, from_below{0.26f, 0.24f, 0.20f};
constexpr Vec3 horizon{0.56f, 0.74f, 0.95f}, zenith{0.13f, 0.31f, 0.74f};
constexpr float lift = 3e-3f;       // keeps rays from meeting the surface they leave; metres
constexpr float open_cell = 1;      // metres; what is finer hardly changes the light of the sky
constexpr int open_side = 6;        // squared: rays that look for the sky from one place
constexpr float hiding_reach = 25;  // metres; what is farther away hardly hides the sky

}  // namespace

City::City(const Plan& plan, int threads)
    : plan_(plan),
      things_(build_city(plan)),
      built_(things_.mesh),
      grove_(plan.seed, std::move(things_.trees)),
      open_cells_(static_cast<int>((plan.side() + 2 * pitch) / open_cell)) {
    bake(threads);
}

std::shared_ptr<const City> City::planned(const Plan& plan, int threads) {
    static std::mutex guard;
    static std::shared_ptr<const City> latest;
    const std::lock_guard lock(guard);
    if (!latest || latest->plan_.seed != plan.seed || latest->plan_.size != plan.size) {
        latest.reset();  // before the next one: two cities need twice the memory
        latest = std::make_shared<const City>(plan, threads);
    }
    return latest;
}

City::Points City::meet(const Rays& rays, float pixel_angle) const {
    Hits hits = built_.nearest(rays);
    LaneMask tree{-1, -1, -1, -1};
    Rays rest = rays;
    rest.reach = hits.distance;
    grove_.nearest(rest, hits, tree);
    Points points;
    for (int lane = 0; lane < lane_count; ++lane) {
        if (rays.reach[lane] < 0) continue;
        const Ray ray = rays.at(lane);
        const float down = ray.direction.z < 0 ? -ray.origin.z / ray.direction.z : nowhere;
        if (down < hits.distance[lane] &&
            length(ray.origin + ray.direction * down - plan_.centre()) < plan_.dome_radius()) {
            points[lane] = ground_point(ray, down, pixel_angle);
        } else if (hits.triangle[lane] < 0) {
            points[lane].sky = true;
        } else if (tree[lane] >= 0) {
            points[lane] = tree_point(ray, hits, lane, grove_.tree(tree[lane]), pixel_angle);
        } else {
            points[lane] = built_point(ray, hits, lane, pixel_angle);
        }
    }
    return points;
}

City::Point City::ground_point(const Ray& ray, float distance, float pixel_angle) const {
    Vec3 position = ray.origin + ray.direction * distance;
    position.z = 0;
    const float haze = smoothstep(0.6f, 1.0f, length(position - plan_.centre()) / plan_.dome_radius());
    const Vec3 albedo = mix(street_ground(plan_, position, distance * pixel_angle), {0.36f, 0.46f, 0.40f}, haze);
    return {position, {0, 0, 1}, albedo, openness(position, {0, 0, 1})};
}

City::Point City::built_point(const Ray& ray, const Hits& hits, int lane, float pixel_angle) const {
    const Triangle& triangle = things_.mesh.triangles[static_cast<std::size_t>(hits.triangle[lane])];
    const Vertex &a = things_.mesh.vertices[triangle.a], &b = things_.mesh.vertices[triangle.b],
                 &c = things_.mesh.vertices[triangle.c];
    const float u = hits.u[lane], v = hits.v[lane], w = 1 - u - v, distance = hits.distance[lane];
    const auto blend = [&](auto x, auto y, auto z) { return x * w + y * u + z * v; };
    const Vec3 position = ray.origin + ray.direction * distance;
    Vec3 normal = normalized(blend(a.normal, b.normal, c.normal));
    if (dot(normal, ray.direction) > 0) normal = normal * -1.0f;  // roofs from below
    const CitySpot spot{{triangle.material, triangle.variant},
                        position,
                        blend(a.u, b.u, c.u),
                        blend(a.v, b.v, c.v),
                        distance * pixel_angle};
    return {position, normal, city_albedo(things_, spot, plan_.seed), openness(position, normal),
            city_gloss(triangle.material)};
}

City::Point City::tree_point(const Ray& ray, const Hits& hits, int lane, const Planting& tree,
                             float pixel_angle) const {
    const Mesh& mesh = grove_.mesh_of(tree);
    const Triangle& triangle = mesh.triangles[static_cast<std::size_t>(hits.triangle[lane])];
    const Vertex &a = mesh.vertices[triangle.a], &b = mesh.vertices[triangle.b], &c = mesh.vertices[triangle.c];
    const float u = hits.u[lane], v = hits.v[lane], w = 1 - u - v, distance = hits.distance[lane];
    const Vec3 local = normalized(a.normal * w + b.normal * u + c.normal * v);
    const Vec3 normal{local.x * tree.cosine - local.y * tree.sine, local.x * tree.sine + local.y * tree.cosine,
                      local.z};
    const Vec3 position = ray.origin + ray.direction * distance;
    const CitySpot spot{{triangle.material, triangle.variant}, position, 0, 0, distance * pixel_angle};
    const float tint = triangle.material == Material::bark ? 1 : tree.tint;
    return {position, normal, city_albedo(things_, spot, plan_.seed) * tint, openness(position, normal)};
}

LaneMask City::hidden(const Rays& rays) const {
    Hits hits = built_.blocked(rays);
    if (any(hits.distance > 0.0f)) {
        Rays rest = rays;
        rest.reach = hits.distance;
        grove_.blocked(rest, hits);
    }
    return hits.triangle >= 0;
}

// What the sun gives each point through one place on its disc.
Lights City::sunlight(const Points& points, const Places& places) const {
    Rays rays;
    Lights lights;
    for (int lane = 0; lane < lane_count; ++lane) {
        const Point& point = points[lane];
        const float facing = dot(point.normal, sun_direction);
        if (point.sky || facing <= 0) continue;
        const auto [u, v] = places[lane];
        const float radius = sun_size * std::sqrt(u), angle = 2 * pi * v;
        const Vec3 aside = sun_frame.side * (radius * std::cos(angle)) + sun_frame.ahead * (radius * std::sin(angle));
        rays.set(lane, {point.position + point.normal * lift, normalized(sun_direction + aside)});
        lights[lane] = sun_colour * facing;
    }
    if (!any(rays.reach > 0.0f)) return lights;
    const LaneMask dark = hidden(rays);
    for (int lane = 0; lane < lane_count; ++lane) {
        if (dark[lane]) lights[lane] = {};
    }
    return lights;
}

Lights City::radiance(const Rays& rays, const Places& places, float pixel_angle) const {
    const Points points = meet(rays, pixel_angle);
    const Lights sun = sunlight(points, places);
    Lights lights;
    for (int lane = 0; lane < lane_count; ++lane) {
        if (rays.reach[lane] < 0) continue;
        const Point& point = points[lane];
        if (point.sky) {
            lights[lane] = sky(rays.direction.at(lane));
            continue;
        }
        const Vec3 ambient = mix(from_below, from_sky, 0.5f + 0.5f * point.normal.z) * point.openness;
        lights[lane] = point.albedo * (sun[lane] + ambient);
        if (point.gloss > 0) {
            const Vec3 half = normalized(sun_direction - rays.direction.at(lane));
            const float shine = sun[lane].x > 0 ? std::pow(std::max(0.0f, dot(half, point.normal)), 60.0f) : 0;
            lights[lane] += (sun_colour * shine + from_sky * (0.3f * point.openness)) * point.gloss;
        }
    }
    return lights;
}

Vec3 City::on_dome(const Ray& ray) const {
    const Vec3 origin = ray.origin - plan_.centre();
    const float along = dot(origin, ray.direction),
                rest = dot(origin, origin) - plan_.dome_radius() * plan_.dome_radius();
    return ray.origin + ray.direction * (std::sqrt(std::max(0.0f, along * along - rest)) - along);
}

Vec3 City::sky(Vec3 direction) const { return mix(horizon, zenith, smoothstep(-0.05f, 0.75f, direction.z)); }

// Near the ground light is what reaches the ground there; above the roofs nothing hides the sky.
float City::openness(Vec3 position, Vec3 normal) const {
    const auto cell = [&](float x, int& index) {
        const float place = std::clamp((x + pitch) / open_cell, 0.0f, static_cast<float>(open_cells_));
        index = std::min(static_cast<int>(place), open_cells_ - 1);
        return place - static_cast<float>(index);
    };
    int column, row;
    const float u = cell(position.x + 0.8f * normal.x, column), v = cell(position.y + 0.8f * normal.y, row);
    const std::size_t stride = static_cast<std::size_t>(open_cells_) + 1;
    const float* corner = open_.data() + static_cast<std::size_t>(row) * stride + static_cast<std::size_t>(column);
    const float below = mix(mix(corner[0], corner[1], u), mix(corner[stride], corner[stride + 1], u), v);
    return mix(below, 1.0f, smoothstep(0, 9, position.z));
}

float City::open_sky(Vec3 position, std::uint32_t key) const {
    Random random(key);
    int open = 0;
    for (int first = 0; first < open_side * open_side; first += lane_count) {
        Rays rays;
        for (int lane = 0; lane < lane_count; ++lane) {
            const int k = first + lane;
            const float u = (static_cast<float>(k % open_side) + random.next()) / open_side;
            const float angle = 2 * pi * (static_cast<float>(k / open_side) + random.next()) / open_side;
            const float radius = std::sqrt(u);
            rays.set(lane, {position, {radius * std::cos(angle), radius * std::sin(angle), std::sqrt(1 - u)}});
            rays.reach[lane] = hiding_reach;
        }
        const LaneMask dark = hidden(rays);
        for (int lane = 0; lane < lane_count; ++lane) open += dark[lane] ? 0 : 1;
    }
    return static_cast<float>(open) / (open_side * open_side);
}

void City::bake(int threads) {
    const int stride = open_cells_ + 1;
    std::vector<float> found(static_cast<std::size_t>(stride) * stride);
    in_parallel(stride, threads, [&](int row) {
        for (int column = 0; column < stride; ++column) {
            const Vec3 place{open_cell * static_cast<float>(column) - pitch,
                             open_cell * static_cast<float>(row) - pitch, 0.05f};
            const auto key =
                scramble(scramble(plan_.seed + 3, static_cast<std::uint32_t>(row)), static_cast<std::uint32_t>(column));
            found[static_cast<std::size_t>(row) * stride + column] =
                0.3f + 0.7f * open_sky(place, key);  // walls give some light back
        }
    });
    open_ = std::move(found);
}

std::vector<std::uint8_t> City::photograph(const Camera& camera, const Picture& picture) const {
    return exposed(camera, picture,
                   [&](const Rays& rays, const Places& places) { return radiance(rays, places, 1 / camera.fx); });
}

}  // namespace splatmeter::demo
