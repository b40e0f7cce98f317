// A flow graph of oneTBB with two named nodes.
#include <cstdio>
#include <tbb/flow_graph.h>

int main() {
    long total = 0;
    tbb::flow::graph graph;
    tbb::flow::function_node<int, long> squares(graph, tbb::flow::unlimited, [](int value) { return long(value) * value; });
    tbb::flow::function_node<long> sum(graph, 1, [&](long value) { total += value; return tbb::flow::continue_msg(); });
    tbb::flow::make_edge(squares, sum);
    tbb::profiling::set_name(squares, "squares");
    tbb::profiling::set_name(sum, "sum");
    for (int value = 0; value < 100; value++)
        squares.try_put(value);
    graph.wait_for_all();
    std::printf("%ld\n", total);
}
