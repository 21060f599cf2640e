// The three nearest neighbours of every point, exactly: a balanced k-d tree in an array, searched in parallel.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "engine.hpp"

namespace splat {
namespace {

constexpr int kLeaf = 8;

class Tree {
 public:
  Tree(int count, const float* points) : points_(points), index_(count), axis_(count) {
    std::iota(index_.begin(), index_.end(), 0);
    build(0, count);
  }

  float mean_squared_distance(int point) const {
    Best best{point, points_ + 3 * size_t(point)};
    search(0, int(index_.size()), best);
    double sum = 0;
    int found = 0;
    for (float d : best.nearest)
      if (d < std::numeric_limits<float>::infinity()) {
        sum += d;
        found++;
      }
    return found ? float(sum / found) : 0.f;
  }

 private:
  struct Best {
    int self;
    const float* at;
    float nearest[3] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::infinity()};
    void offer(float d) {
      if (d >= nearest[2]) return;
      nearest[2] = d;
      if (nearest[2] < nearest[1]) std::swap(nearest[1], nearest[2]);
      if (nearest[1] < nearest[0]) std::swap(nearest[0], nearest[1]);
    }
  };

  float coordinate(int i, int axis) const { return points_[3 * size_t(i) + axis]; }

  int widest_axis(int begin, int end) const {
    int widest = 0;
    float width = -1;
    for (int axis = 0; axis < 3; axis++) {
      float low = coordinate(index_[begin], axis), high = low;
      for (int i = begin; i < end; i++) {
        low = std::min(low, coordinate(index_[i], axis));
        high = std::max(high, coordinate(index_[i], axis));
      }
      if (high - low > width) {
        width = high - low;
        widest = axis;
      }
    }
    return widest;
  }

  void build(int begin, int end) {
    if (end - begin <= kLeaf) return;
    int middle = (begin + end) / 2, axis = widest_axis(begin, end);
    std::nth_element(index_.begin() + begin, index_.begin() + middle, index_.begin() + end,
                     [&](int a, int b) { return coordinate(a, axis) < coordinate(b, axis); });
    axis_[middle] = uint8_t(axis);
    build(begin, middle);
    build(middle + 1, end);
  }

  void visit(int i, Best& best) const {
    if (i == best.self) return;
    float d = 0;
    for (int k = 0; k < 3; k++) {
      float t = coordinate(i, k) - best.at[k];
      d += t * t;
    }
    best.offer(d);
  }

  void search(int begin, int end, Best& best) const {
    if (end - begin <= kLeaf) {
      for (int i = begin; i < end; i++) visit(index_[i], best);
      return;
    }
    int middle = (begin + end) / 2;
    float side = best.at[axis_[middle]] - coordinate(index_[middle], axis_[middle]);
    visit(index_[middle], best);
    side < 0 ? search(begin, middle, best) : search(middle + 1, end, best);
    if (side * side < best.nearest[2]) side < 0 ? search(middle + 1, end, best) : search(begin, middle, best);
  }

  const float* points_;
  std::vector<int> index_;
  std::vector<uint8_t> axis_;
};

}  // namespace

void neighbour_distance(ThreadPool& pool, int count, const float* points, float* mean_squared) {
  if (!count) return;
  const Tree tree(count, points);
  pool.each((count + 1023) / 1024, [&](int task, int) {
    for (int i = task * 1024; i < std::min(count, (task + 1) * 1024); i++)
      mean_squared[i] = tree.mean_squared_distance(i);
  });
}

}  // namespace splat
