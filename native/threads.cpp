#include "threads.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define RELAX() _mm_pause()
#else
#define RELAX() std::this_thread::yield()
#endif

namespace splat {
namespace {

// Passes follow each other within microseconds, calls from Python within some tens of them, and waking a thread costs
// as
// much: spin for a while, then sleep. Spinning for good would halve the speed as soon as any other process
// wants the core.
constexpr int kSpins = 8000;
constexpr int kWorthDividing = 1 << 14;

template <class T>
void wait_while_equal(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; i++) {
    if (value.load(std::memory_order_acquire) != old) return;
    RELAX();
  }
  value.wait(old, std::memory_order_acquire);
}

struct Range {
  uint32_t first, end;
};
uint64_t packed(Range range) { return uint64_t(range.first) << 32 | range.end; }
Range unpacked(uint64_t bits) { return {uint32_t(bits >> 32), uint32_t(bits)}; }

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {
  shares_ = std::make_unique<Share[]>(threads_);
  workers_ = std::make_unique<std::thread[]>(threads_ - 1);
  for (int i = 1; i < threads_; i++) workers_[i - 1] = std::thread([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  closing_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (int i = 1; i < threads_; i++) workers_[i - 1].join();
}

int ThreadPool::parts_of(int count, int per_thread) const {
  return threads_ * (threads_ > 1 && count > kWorthDividing ? per_thread : 1);
}

void ThreadPool::run(int count, Task task, void* context) {
  if (count <= 0) return;
  if (threads_ == 1 || count == 1) {
    for (int i = 0; i < count; i++) task(context, i, 0);
    return;
  }
  task_ = task;
  context_ = context;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(0);
  for (int left = busy_.load(std::memory_order_acquire); left; left = busy_.load(std::memory_order_acquire))
    wait_while_equal(busy_, left);
}

void ThreadPool::work(int worker) {
  for (int i = next_.fetch_add(1, std::memory_order_relaxed); i < count_;
       i = next_.fetch_add(1, std::memory_order_relaxed))
    task_(context_, i, worker);
}

void ThreadPool::share_out(int count) {
  auto begin_of = [&](int worker) { return uint32_t(int64_t(count) * worker / threads_); };
  for (int worker = 0; worker < threads_; worker++)
    shares_[worker].range.store(packed({begin_of(worker), begin_of(worker + 1)}), std::memory_order_relaxed);
}

// Only indices pass between threads here, so no ordering of memory is needed; `run` orders before and after. A range
// never
// comes back once its first index is taken: comparing it is safe.
int ThreadPool::next_in_run(int worker) {
  std::atomic<uint64_t>& own = shares_[worker].range;
  uint64_t bits = own.load(std::memory_order_relaxed);
  for (Range left = unpacked(bits); left.first < left.end; left = unpacked(bits))
    if (own.compare_exchange_weak(bits, packed({left.first + 1, left.end}), std::memory_order_relaxed))
      return int(left.first);
  return half_of_another(own);
}

int ThreadPool::half_of_another(std::atomic<uint64_t>& own) {
  for (;;) {
    std::atomic<uint64_t>* longest = nullptr;
    Range range{0, 0};
    for (int other = 0; other < threads_; other++) {
      const Range left = unpacked(shares_[other].range.load(std::memory_order_relaxed));
      if (left.first < left.end && left.end - left.first > range.end - range.first) {
        longest = &shares_[other].range;
        range = left;
      }
    }
    if (!longest) return -1;
    const uint32_t middle = range.first + (range.end - range.first) / 2;
    uint64_t bits = packed(range);
    if (!longest->compare_exchange_strong(bits, packed({range.first, middle}), std::memory_order_relaxed)) continue;
    own.store(packed({middle + 1, range.end}), std::memory_order_relaxed);
    return int(middle);
  }
}

void ThreadPool::serve(int worker) {
  uint32_t seen = 0;
  for (;;) {
    wait_while_equal(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (closing_) return;
    work(worker);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace splat
