// The built-in city for Python.

#include "binding.hpp"
#include "city.hpp"

using namespace splatmeter::demo;

namespace {

constexpr int largest_city = 32;  // blocks on a side: facades are counted in 16 bits

Plan checked_plan(std::uint32_t seed, int size) {
    if (size < 1 || size > largest_city)
        throw std::invalid_argument("city: the size must be from 1 to 32 blocks on a side");
    return {seed, size};
}

nb::object city_photo(const Cameras& numbers, int width, int height, int samples, std::uint32_t seed, int size,
                      int threads) {
    const std::vector<Camera> cameras = read_cameras(numbers);
    if (cameras.size() != 1) throw std::invalid_argument("city_photo: expected one camera, an array [1, 16]");
    const Picture picture = checked(width, height, samples, seed, threads);
    const Plan plan = checked_plan(seed, size);
    std::vector<std::uint8_t> pixels;
    {
        const nb::gil_scoped_release released;
        pixels = City::planned(plan, threads)->photograph(cameras[0], picture);
    }
    return hand_over(std::move(pixels), {static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3});
}

struct Findings {
    std::vector<float> positions, distances, pixels;
    std::vector<std::uint8_t> colours;
    std::vector<std::int32_t> counts, cameras;
};

// Those that two cameras see at least: one alone cannot tell how far away a point is.
Findings gathered(const City& city, std::span<const Camera> cameras, const Picture& picture, std::uint32_t first,
                  int draws, std::size_t longest) {
    std::vector<Finding> drawn(static_cast<std::size_t>(draws));
    city.find(cameras, picture, first, drawn);
    std::vector<std::vector<Observation>> tracks(drawn.size());
    in_parallel(draws, picture.threads, [&](int k) {
        const auto index = static_cast<std::size_t>(k);
        tracks[index] = city.observers(cameras, picture, drawn[index].position, longest);
    });
    Findings found;
    for (std::size_t k = 0; k < drawn.size(); ++k) {
        if (tracks[k].size() < 2) continue;
        const Vec3 place = drawn[k].position;
        found.positions.insert(found.positions.end(), {place.x, place.y, place.z});
        found.distances.push_back(drawn[k].distance);
        found.colours.insert(found.colours.end(), drawn[k].colour.begin(), drawn[k].colour.end());
        found.counts.push_back(static_cast<std::int32_t>(tracks[k].size()));
        for (const Observation& seen : tracks[k]) {
            found.cameras.push_back(seen.camera);
            found.pixels.insert(found.pixels.end(), {seen.x, seen.y});
        }
    }
    return found;
}

nb::object city_points(const Cameras& numbers, int width, int height, int samples, std::uint32_t seed, int size,
                       int threads, std::uint32_t first, int draws, int longest) {
    const std::vector<Camera> cameras = read_cameras(numbers);
    if (cameras.empty() || draws < 1 || longest < 2)
        throw std::invalid_argument("city_points: expected cameras [C, 16], some draws, and tracks of 2 or more");
    const Picture picture = checked(width, height, samples, seed, threads);
    const Plan plan = checked_plan(seed, size);
    Findings found;
    {
        const nb::gil_scoped_release released;
        found =
            gathered(*City::planned(plan, threads), cameras, picture, first, draws, static_cast<std::size_t>(longest));
    }
    const std::size_t points = found.counts.size(), seen = found.cameras.size();
    return nb::make_tuple(
        hand_over(std::move(found.positions), {points, 3}), hand_over(std::move(found.distances), {points}),
        hand_over(std::move(found.colours), {points, 3}), hand_over(std::move(found.counts), {points}),
        hand_over(std::move(found.cameras), {seen}), hand_over(std::move(found.pixels), {seen, 2}));
}

}  // namespace

void bind_city(nb::module_& module) {
    module.def(
        "city_photo", &city_photo, nb::arg("camera"), nb::arg("width"), nb::arg("height"), nb::arg("samples"),
        nb::arg("seed"), nb::arg("size"), nb::arg("threads"),
        "One photo of the built-in city of size x size blocks, uint8 [H, W, 3]. camera [1, 16] as for demo_photo.");
    module.def("city_points", &city_points, nb::arg("cameras"), nb::arg("width"), nb::arg("height"), nb::arg("samples"),
               nb::arg("seed"), nb::arg("size"), nb::arg("threads"), nb::arg("first"), nb::arg("draws"),
               nb::arg("longest"),
               "Surface points that at least two of the cameras [C, 16] see, of the draws first, first + 1, ...: "
               "positions float32 [N, 3], "
               "distances from the camera that found them [N], colours uint8 [N, 3], how many cameras see each [N], "
               "which ones [M] and "
               "where, in pixels [M, 2].");
}
