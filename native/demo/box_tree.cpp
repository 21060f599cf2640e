#include "box_tree.hpp"

#include <algorithm>
#include <numeric>

namespace splatmeter::demo {

namespace {

constexpr int bin_count = 16;

}  // namespace

struct BoxTree::Builder {
    std::span<const Box> boxes;
    std::uint32_t leaf_size;
    std::vector<Node>& nodes;
    std::vector<std::uint32_t>& order;
    std::vector<Vec3> centres;

    Builder(std::span<const Box> given, std::uint32_t members, BoxTree& tree)
        : boxes(given), leaf_size(members), nodes(tree.nodes_), order(tree.order_) {
        for (const Box& box : boxes) centres.push_back((box.low + box.high) * 0.5f);
        order.resize(boxes.size());
        std::iota(order.begin(), order.end(), 0u);
        nodes.reserve(2 * order.size() + 1);
        nodes.emplace_back();
        split(0, 0, static_cast<std::uint32_t>(order.size()), 0);
        nodes.shrink_to_fit();
    }

    void split(std::size_t index, std::uint32_t begin, std::uint32_t end, int depth) {
        Box box, spread;
        for (std::uint32_t k = begin; k < end; ++k) {
            box.include(boxes[order[k]]);
            spread.include({centres[order[k]], centres[order[k]]});
        }
        nodes[index] = {box.low, box.high, begin, end - begin};
        if (end - begin <= leaf_size || depth == deepest) return;
        const auto [axis, plane] = best_plane(spread, begin, end);
        const auto middle =
            std::partition(order.begin() + begin, order.begin() + end,
                           [&, axis = axis, plane = plane](std::uint32_t k) { return centres[k][axis] < plane; });
        const auto cut = static_cast<std::uint32_t>(middle - order.begin());
        if (cut == begin || cut == end) return;
        const std::size_t left = nodes.size();
        nodes.resize(left + 2);
        nodes[index].first = static_cast<std::uint32_t>(left);
        nodes[index].count = 0;
        split(left, begin, cut, depth + 1);
        split(left + 1, cut, end, depth + 1);
    }

    // The plane between bins with the least expected work: area times count on either side.
    std::pair<int, float> best_plane(const Box& spread, std::uint32_t begin, std::uint32_t end) const {
        std::pair<int, float> best{0, nowhere};
        float least = nowhere;
        for (int axis = 0; axis < 3; ++axis) {
            const float low = spread.low[axis], width = spread.high[axis] - low;
            if (!(width > 0)) continue;
            std::array<Box, bin_count> bins;
            std::array<float, bin_count> counts{};
            for (std::uint32_t k = begin; k < end; ++k) {
                const float place = (centres[order[k]][axis] - low) / width * bin_count;
                const int bin = std::min(static_cast<int>(place), bin_count - 1);
                bins[bin].include(boxes[order[k]]);
                counts[bin] += 1;
            }
            std::array<float, bin_count> left_cost{};
            Box left, right;
            float left_count = 0, right_count = 0;
            for (int k = 0; k + 1 < bin_count; ++k) {
                left.include(bins[k]);
                left_count += counts[k];
                left_cost[k + 1] = left.area() * left_count;
            }
            for (int k = bin_count - 1; k > 0; --k) {
                right.include(bins[k]);
                right_count += counts[k];
                const float cost = left_cost[k] + right.area() * right_count;
                if (cost < least) {
                    least = cost;
                    best = {axis, low + width * static_cast<float>(k) / bin_count};
                }
            }
        }
        return best;
    }
};

BoxTree::BoxTree(std::span<const Box> boxes, std::uint32_t leaf_size) { Builder(boxes, leaf_size, *this); }

}  // namespace splatmeter::demo
