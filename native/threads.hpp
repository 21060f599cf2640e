// A pool of our own: torch brings its OpenMP into the same process, and two OpenMP runtimes do not mix.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace splat {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return threads_; }
  // How many parts to cut so many things into: one a thread, or several where they are many, so that none waits long.
  int parts_of(int count, int per_thread) const;

  using Task = void (*)(void* context, int index, int worker);
  // Calls task(context, index, worker) once for each index in [0, count); workers take the next free index.
  void run(int count, Task task, void* context);

  template <class F>
  __attribute__((always_inline)) inline void each(int count, F&& body) {
    using Body = std::remove_reference_t<F>;
    run(
        count, [](void* context, int index, int worker) { (*static_cast<Body*>(context))(index, worker); }, &body);
  }

  // For work that is cheaper in order: body(next, worker) runs in each worker, and next() tells it an index in [0,
  // count)
  // that is its own, mostly the one after the last, or -1 at the end. A worker that has finished its share takes the
  // latter half of the longest one left.
  template <class F>
  __attribute__((always_inline)) inline void each_in_runs(int count, F&& body) {
    share_out(count);
    each(threads_, [&](int, int worker) { body([&] { return next_in_run(worker); }, worker); });
  }

 private:
  void serve(int worker);
  void work(int worker);
  void share_out(int count);
  int next_in_run(int worker);
  int half_of_another(std::atomic<uint64_t>& own);

  struct alignas(64) Share {
    std::atomic<uint64_t> range{0};
  };  // what is left of it: first and end

  int threads_;
  std::unique_ptr<std::thread[]> workers_;
  std::unique_ptr<Share[]> shares_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  int count_ = 0;
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> next_{0}, busy_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace splat
