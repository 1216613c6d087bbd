// A parallel loop over independent tasks with scratch memory for each thread.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#include "drivers.hpp"

namespace kitchenette {

// Uninitialised memory on a cache-line boundary.
template <class T> class AlignedBuffer {
  public:
    explicit AlignedBuffer(Size count)
        : data_(static_cast<T*>(::operator new(
              sizeof(T) * static_cast<std::size_t>(count ? count : 1), std::align_val_t{64}))) {}
    ~AlignedBuffer() { ::operator delete(data_, std::align_val_t{64}); }
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;
    T* data() const { return data_; }

  private:
    T* data_;
};

// Fewer threads than allowed where the work would not pay for waking them.
int threads_for(Size tasks, Size work);

// body(task, scratch) for every task; the threads take them as they come, so a task's result
// must not depend on who runs it. They take several adjacent ones at a time, because threads
// that work on neighbouring memory disturb each other's caches, unless tasks are large. All memory
// is allocated before the threads start: nothing throws inside.
template <class T, class Body>
void parallel(Size tasks, Size work, Size scratch_size, const Body& body, bool large = false) {
    const int n_threads = threads_for(tasks, work);
    const Size padded = (scratch_size + 63) / 64 * 64;
    const AlignedBuffer<T> scratch(padded * n_threads);
    const Size grain = large ? 1 : tasks / (Size{16} * n_threads) + 1;
    std::atomic<Size> next{0};
    const auto run = [&](int thread) {
        T* mine = scratch.data() + padded * thread;
        for (Size begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < tasks;) {
            const Size end = tasks - begin < grain ? tasks : begin + grain;
            for (Size task = begin; task < end; ++task) body(task, mine);
        }
    };
#if defined(_OPENMP)
    if (n_threads > 1) {
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
        for (int thread = 0; thread < n_threads; ++thread) run(thread);
        return;
    }
#endif
    run(0);
}

}  // namespace kitchenette
