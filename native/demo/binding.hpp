// How pictures and cameras of the built-in scenes go between Python and here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "film.hpp"

namespace splatmeter::demo {

namespace nb = nanobind;

using Cameras = nb::ndarray<const double, nb::shape<-1, 16>, nb::c_contig, nb::device::cpu>;

inline std::vector<Camera> read_cameras(const Cameras& numbers) {
    std::vector<Camera> cameras;
    for (std::size_t k = 0; k < numbers.shape(0); ++k) {
        cameras.push_back(Camera::from_numbers(std::span<const double, 16>(numbers.data() + 16 * k, 16)));
    }
    return cameras;
}

inline Picture checked(int width, int height, int samples, std::uint32_t seed, int threads) {
    constexpr int largest = 1 << 14;
    if (width < 1 || height < 1 || width > largest || height > largest || samples < 1 || threads < 1) {
        throw std::invalid_argument("built-in scene: sizes, samples and threads must be positive, sizes at most 16384");
    }
    return {width, height, samples, seed, threads};
}

template <typename Number>
nb::object hand_over(std::vector<Number> values, std::initializer_list<std::size_t> shape) {
    auto* owned = new std::vector<Number>(std::move(values));
    nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<Number>*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(owned->data(), shape, owner));
}

}  // namespace splatmeter::demo
