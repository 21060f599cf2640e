#include "film.hpp"

namespace splatmeter::demo {

namespace {

constexpr float exposure = 1.45f;

}  // namespace

std::uint8_t encode(float linear) {
    const float shown = 1 - std::exp(-exposure * std::max(linear, 0.0f));  // bright parts bend instead of clipping
    const float curve = shown < 0.0031308f ? 12.92f * shown : 1.055f * std::pow(shown, 1 / 2.4f) - 0.055f;
    return static_cast<std::uint8_t>(std::lround(255 * std::clamp(curve, 0.0f, 1.0f)));
}

int square_side(int samples) {
    return std::max(1, static_cast<int>(std::lround(std::sqrt(static_cast<float>(samples)))));
}

Camera Camera::from_numbers(std::span<const double, 16> numbers) {
    const auto number = [&](int k) { return static_cast<float>(numbers[static_cast<std::size_t>(k)]); };
    const auto row = [&](int k) { return Vec3{number(k), number(k + 1), number(k + 2)}; };
    return {{row(0), row(3), row(6)}, row(9), number(12), number(13), number(14), number(15)};
}

Ray Camera::through(float x, float y) const {
    const auto to_world = [&](Vec3 v) { return rows[0] * v.x + rows[1] * v.y + rows[2] * v.z; };
    return {to_world(translation) * -1.0f, normalized(to_world({(x - cx) / fx, (y - cy) / fy, 1}))};
}

}  // namespace splatmeter::demo
