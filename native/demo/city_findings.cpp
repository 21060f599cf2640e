// What structure from motion would find in photos of the city, without its errors.

#include <algorithm>

#include "city.hpp"

namespace splatmeter::demo {

void City::find(std::span<const Camera> cameras, const Picture& picture, std::uint32_t first,
                std::span<Finding> findings) const {
    in_parallel(static_cast<int>(findings.size()), picture.threads, [&](int k) {
        Random random(scramble(scramble(picture.seed, 6000), first + static_cast<std::uint32_t>(k)));
        const auto number = static_cast<std::size_t>(random.next() * static_cast<float>(cameras.size()));
        const Camera& camera = cameras[std::min(number, cameras.size() - 1)];
        const float x = random.next() * static_cast<float>(picture.width),
                    y = random.next() * static_cast<float>(picture.height);
        Rays rays;
        rays.set(0, camera.through(x, y));
        const Point point = meet(rays, 1 / camera.fx)[0];
        Finding& finding = findings[static_cast<std::size_t>(k)];
        finding.position = point.sky ? on_dome(rays.at(0)) : point.position;
        finding.distance = length(finding.position - rays.origin.at(0));
        // A photo shows the neighbourhood, not the point: the colour is that of a pixel around it.
        const auto light = [&](const Rays& samples, const Places& places) {
            return radiance(samples, places, 1 / camera.fx);
        };
        const Vec3 mean = pixel_mean(camera, x - 0.5f, y - 0.5f, picture.samples, random, light);
        finding.colour = {encode(mean.x), encode(mean.y), encode(mean.z)};
    });
}

std::vector<Observation> City::observers(std::span<const Camera> cameras, const Picture& picture, Vec3 position,
                                         std::size_t most) const {
    struct Candidate {
        float distance;
        Observation seen;
        Vec3 eye;
    };
    std::vector<Candidate> candidates;
    for (std::size_t k = 0; k < cameras.size(); ++k) {
        const Camera& camera = cameras[k];
        const float depth = dot(camera.rows[2], position) + camera.translation.z;
        if (depth < 0.1f) continue;
        const float x = (dot(camera.rows[0], position) + camera.translation.x) / depth * camera.fx + camera.cx;
        const float y = (dot(camera.rows[1], position) + camera.translation.y) / depth * camera.fy + camera.cy;
        if (x < 0 || y < 0 || x >= static_cast<float>(picture.width) || y >= static_cast<float>(picture.height))
            continue;
        const Vec3 eye = camera.through(0, 0).origin;
        candidates.push_back({length(position - eye), {static_cast<std::int32_t>(k), x, y}, eye});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
    std::vector<Observation> observations;
    for (std::size_t first = 0; first < candidates.size() && observations.size() < most; first += lane_count) {
        const std::size_t count = std::min<std::size_t>(lane_count, candidates.size() - first);
        Rays rays;
        for (std::size_t lane = 0; lane < count; ++lane) {
            const Candidate& candidate = candidates[first + lane];
            rays.set(static_cast<int>(lane), {candidate.eye, (position - candidate.eye) * (1 / candidate.distance)});
            rays.reach[lane] =
                std::max(0.001f, 0.999f * candidate.distance - 0.02f);  // the surface itself hides nothing
        }
        const LaneMask dark = hidden(rays);
        for (std::size_t lane = 0; lane < count && observations.size() < most; ++lane) {
            if (!dark[lane]) observations.push_back(candidates[first + lane].seen);
        }
    }
    return observations;
}

}  // namespace splatmeter::demo
