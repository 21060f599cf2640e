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

  using Task = void (*)(void* context, int index, int worker);
  // Calls task(context, index, worker) once for each index in [0, count); workers take the next free index.
  void run(int count, Task task, void* context);

  template <class F>
  __attribute__((always_inline)) inline void each(int count, F&& body) {
    using Body = std::remove_reference_t<F>;
    run(count, [](void* context, int index, int worker) { (*static_cast<Body*>(context))(index, worker); }, &body);
  }

 private:
  void serve(int worker);
  void work(int worker);

  int threads_;
  std::unique_ptr<std::thread[]> workers_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  int count_ = 0;
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> next_{0}, busy_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace splat
