// Parallel loops over independent tasks with scratch memory for each thread, and a mutex.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "drivers.hpp"

namespace kitchenette {

// Uninitialized memory aligned to cache lines; nothing is allocated for a size of zero.
template <class T> class AlignedBuffer {
  public:
    explicit AlignedBuffer(Size count)
        : data_(count > 0 ? static_cast<T*>(::operator new(
                                sizeof(T) * static_cast<std::size_t>(count), std::align_val_t{64}))
                          : nullptr) {}
    ~AlignedBuffer() { ::operator delete(data_, std::align_val_t{64}); }
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;
    T* data() const { return data_; }

  private:
    T* data_;
};

// A mutex that knows in which process it was locked, for objects that change for a long time.
//
// A forked child has the memory of its parent, but none of its other threads: a mutex that one of
// these held is never released in the child, and what it protects may be half changed. Locking it
// there throws an exception instead of waiting for ever.
class ProcessMutex {
  public:
    void lock();
    bool try_lock();
    void unlock() { process_.store(0, std::memory_order_release); }

  private:
    std::atomic<int> process_{0};  // the number of the process that holds it; 0 for none
};

// The CPU quota of this process's control groups in processors; 0 if there is no quota.
// `membership` is a file like /proc/self/cgroup, `mount` a directory like /sys/fs/cgroup. Both
// versions of Linux's control groups are supported, and limits of parents apply to children.
double cpu_quota(const std::string& membership, const std::string& mount);

// The number of threads for a loop, fewer if there is little work. The unit of work is the
// computation of one number, about half a nanosecond.
int threads_for(Size tasks, Size work);

// A parallel loop: run(context, begin, end, thread) runs the tasks [begin, end) with the scratch
// memory of a thread, whose number is below n_threads.
struct Loop {
    void (*run)(const void* context, Size begin, Size end, int thread);
    const void* context;
    Size tasks, work;
    int n_threads;
    bool one_by_one;  // threads take one task at a time instead of several adjacent ones
};

// Runs all tasks on this thread, and on helper threads as they wake. The caller does not wait for
// helpers that have not begun a task.
void run_loop(const Loop& loop);

// Scratch memory for several threads, in pieces that share no cache line.
template <class T> class ThreadScratch {
  public:
    ThreadScratch(int n_threads, Size size)
        : n_threads_(n_threads), padded_((size + 63) / 64 * 64), memory_(padded_ * n_threads) {}
    int n_threads() const { return n_threads_; }
    T* of_thread(int thread) const { return memory_.data() + padded_ * thread; }

  private:
    int n_threads_;
    Size padded_;
    AlignedBuffer<T> memory_;
};

// Calls body(task, scratch) for every task. Scheduling is dynamic, so the result of a task must not
// depend on the thread. Unless tasks are large, threads take several adjacent ones at a time, to
// avoid false sharing of cache lines. The number of threads is limited by the scratch memory.
// Nothing is allocated and nothing throws.
template <class T, class Body> void parallel(Size tasks, Size work, const ThreadScratch<T>& scratch,
                                             const Body& body, bool large = false) {
    const auto run = [&](Size begin, Size end, int thread) {
        T* mine = scratch.of_thread(thread);
        for (Size task = begin; task < end; ++task) body(task, mine);
    };
    if (scratch.n_threads() == 1) return run(0, tasks, 0);
    const auto call = [](const void* context, Size begin, Size end, int thread) {
        (*static_cast<decltype(&run)>(context))(begin, end, thread);
    };
    run_loop({call, &run, tasks, work, scratch.n_threads(), large});
}

// The same with scratch memory that is allocated before the work starts.
template <class T, class Body>
void parallel(Size tasks, Size work, Size scratch_size, const Body& body, bool large = false) {
    parallel(tasks, work, ThreadScratch<T>(threads_for(tasks, work), scratch_size), body, large);
}

}  // namespace kitchenette
