// Optimised, gcc assigns the call that creates the second task to an inlined function of a library's header.
#include <algorithm>
#include <vector>
struct Sorter {
    std::vector<double> &values;
    void sort(size_t from, size_t to) {
        if (to - from < 2000) {
            std::sort(values.begin() + from, values.begin() + to);
            return;
        }
        size_t middle = (from + to) / 2;
#pragma omp task
        sort(from, middle);
#pragma omp task
        sort(middle, to);
#pragma omp taskwait
        std::inplace_merge(values.begin() + from, values.begin() + middle, values.begin() + to);
    }
};
int main() {
    std::vector<double> values(100000);
    Sorter sorter{values};
    sorter.sort(0, values.size());
}
