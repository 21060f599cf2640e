// What every picture of a built-in scene shares: cameras, threads, samples of a pixel, and the curve of the film.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "box_tree.hpp"

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

using Lights = std::array<Vec3, lane_count>;
using Places = std::array<std::array<float, 2>, lane_count>;  // on the sun's disc, in the unit square

std::uint8_t encode(float linear);
int square_side(int samples);

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

// One sample in each cell of the unit square at (left, top), and one in each cell of the sun, paired at random.
template <typename Radiance>
Vec3 pixel_mean(const Camera& camera, float left, float top, int wanted, Random& random, const Radiance& radiance) {
    const int side = square_side(wanted), samples = side * side;
    const int turn = static_cast<int>(random.next() * static_cast<float>(samples));
    const auto jitter = [&](int cell) { return (static_cast<float>(cell) + random.next()) / static_cast<float>(side); };
    Vec3 sum;
    for (int first = 0; first < samples; first += lane_count) {
        const int count = std::min(lane_count, samples - first);
        Rays rays;
        Places places{};
        for (int lane = 0; lane < count; ++lane) {
            const int k = first + lane, partner = (k * (side + 1) + turn) % samples;
            const float dx = jitter(k % side), dy = jitter(k / side);
            rays.set(lane, camera.through(left + dx, top + dy));
            places[lane][0] = jitter(partner % side);
            places[lane][1] = jitter(partner / side);
        }
        const Lights lights = radiance(rays, places);
        for (int lane = 0; lane < count; ++lane) sum += lights[lane];
    }
    return sum * (1.0f / static_cast<float>(samples));
}

// [H, W, 3]; every random number is a hash of seed, pixel and sample.
template <typename Radiance>
std::vector<std::uint8_t> exposed(const Camera& camera, const Picture& picture, const Radiance& radiance) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(picture.width) * picture.height * 3);
    in_parallel(picture.height, picture.threads, [&](int y) {
        for (int x = 0; x < picture.width; ++x) {
            const int index = y * picture.width + x;
            Random random(scramble(picture.seed, static_cast<std::uint32_t>(index)));
            const Vec3 mean =
                pixel_mean(camera, static_cast<float>(x), static_cast<float>(y), picture.samples, random, radiance);
            for (int channel = 0; channel < 3; ++channel)
                pixels[3 * static_cast<std::size_t>(index) + channel] = encode(mean[channel]);
        }
    });
    return pixels;
}

}  // namespace splatmeter::demo
