// The extension _scenery: the built-in scenes for Python. It knows nothing of the engine.

#include "binding.hpp"
#include "tracer.hpp"

using namespace splatmeter::demo;

namespace {

nb::object demo_photo(const Cameras& numbers, int width, int height, int samples, std::uint32_t seed, int threads) {
    const std::vector<Camera> cameras = read_cameras(numbers);
    if (cameras.size() != 1) throw std::invalid_argument("demo_photo: expected one camera, an array [1, 16]");
    const Picture picture = checked(width, height, samples, seed, threads);
    std::vector<std::uint8_t> pixels;
    {
        const nb::gil_scoped_release released;
        pixels = World::of_seed(seed, threads)->photograph(cameras[0], picture);
    }
    return hand_over(std::move(pixels), {static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3});
}

nb::object demo_points(const Cameras& numbers, int width, int height, int samples, std::uint32_t seed, int threads,
                       int count) {
    const std::vector<Camera> cameras = read_cameras(numbers);
    if (cameras.empty() || count < 1)
        throw std::invalid_argument("demo_points: expected cameras [C, 16] and a positive count");
    const Picture picture = checked(width, height, samples, seed, threads);
    std::vector<Vec3> places(static_cast<std::size_t>(count));
    std::vector<std::uint8_t> colors(places.size() * 3);
    std::vector<float> positions;
    {
        const nb::gil_scoped_release released;
        World::of_seed(seed, threads)->surface_points(cameras, picture, places, colors);
        for (const Vec3& place : places) positions.insert(positions.end(), {place.x, place.y, place.z});
    }
    return nb::make_tuple(hand_over(std::move(positions), {places.size(), 3}),
                          hand_over(std::move(colors), {places.size(), 3}));
}

}  // namespace

void bind_city(nb::module_& module);

NB_MODULE(_scenery, module) {
    bind_city(module);
    module.def("demo_photo", &demo_photo, nb::arg("camera"), nb::arg("width"), nb::arg("height"), nb::arg("samples"),
               nb::arg("seed"), nb::arg("threads"),
               "One photo of the built-in garden, uint8 [H, W, 3]. camera [1, 16]: rotation row by row (world to "
               "camera), translation, fx, fy, cx, cy.");
    module.def("demo_points", &demo_points, nb::arg("cameras"), nb::arg("width"), nb::arg("height"), nb::arg("samples"),
               nb::arg("seed"), nb::arg("threads"), nb::arg("count"),
               "Surface points seen by the cameras [C, 16]: float32 [N, 3] world and their colours, uint8 [N, 3].");
}
