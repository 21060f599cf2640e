#include "threads.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define RELAX() _mm_pause()
#else
#define RELAX() std::this_thread::yield()
#endif

namespace splat {
namespace {

// Passes follow each other within microseconds, calls from Python within some tens of them, and waking a thread costs as
// much: spin for a while, then sleep. Spinning for good would halve the speed as soon as any other process
// wants the core.
constexpr int kSpins = 8000;

template <class T>
void wait_while_equal(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; i++) {
    if (value.load(std::memory_order_acquire) != old) return;
    RELAX();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {
  workers_ = std::make_unique<std::thread[]>(threads_ - 1);
  for (int i = 1; i < threads_; i++) workers_[i - 1] = std::thread([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  closing_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (int i = 1; i < threads_; i++) workers_[i - 1].join();
}

void ThreadPool::run(int count, Task task, void* context) {
  if (count <= 0) return;
  if (threads_ == 1 || count == 1) {
    for (int i = 0; i < count; i++) task(context, i, 0);
    return;
  }
  task_ = task, context_ = context, count_ = count;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(0);
  for (int left = busy_.load(std::memory_order_acquire); left; left = busy_.load(std::memory_order_acquire))
    wait_while_equal(busy_, left);
}

void ThreadPool::work(int worker) {
  for (int i = next_.fetch_add(1, std::memory_order_relaxed); i < count_; i = next_.fetch_add(1, std::memory_order_relaxed))
    task_(context_, i, worker);
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
