#include "losses.hpp"

#include <vector>

#include "threads.hpp"

namespace kitchenette {

template <class T> void add_losses(const Loss& loss, const Targets& targets, const double* outputs,
                                   Size n_rows, Size n_targets, T* factors, double* sums,
                                   double& total) {
    constexpr Size group = 16;  // rows of a task
    const Size n_groups = ceil_divide(n_rows, group);
    // The loss and the sums of every group.
    std::vector<double> totals(static_cast<std::size_t>(n_groups * (n_targets + 1)), 0.0);
    parallel<double>(n_groups, 20 * n_rows * n_targets, n_targets,
                     [&](Size task, double* derivatives) {
                         double* part = totals.data() + task * (n_targets + 1);
                         const Size end = std::min(n_rows, (task + 1) * group);
                         for (Size row = task * group; row < end; ++row) {
                             T* mine = factors + row * n_targets;
                             const double weight = targets.weights ? targets.weights[row] : 1;
                             if (weight == 0) {
                                 std::fill(mine, mine + n_targets, T{0});
                                 continue;
                             }
                             part[n_targets] +=
                                 weight * loss_of_row(loss, targets, row, outputs + row * n_targets,
                                                      n_targets, derivatives);
                             for (Size c = 0; c < n_targets; ++c) {
                                 part[c] += weight * derivatives[c];
                                 mine[c] = static_cast<T>(weight * derivatives[c]);
                             }
                         }
                     });
    for (Size g = 0; g < n_groups; ++g) {
        const double* part = totals.data() + g * (n_targets + 1);
        for (Size c = 0; c < n_targets; ++c) sums[c] += part[c];
        total += part[n_targets];
    }
}

template void add_losses<float>(const Loss&, const Targets&, const double*, Size, Size, float*,
                                double*, double&);
template void add_losses<double>(const Loss&, const Targets&, const double*, Size, Size, double*,
                                 double*, double&);

}  // namespace kitchenette
