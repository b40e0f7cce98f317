/* Pauses recording between regions and inside of one; prints the initial thread's nanoseconds in regions, in the pause, and
   in the region in which it was paused. */
#include <omp.h>
#include <stdio.h>

#include "work.h"

static double spin(double seconds) {
    double begin = omp_get_wtime();
    WORK_NS(seconds * 1e9);
    return omp_get_wtime() - begin;
}
static volatile long calls;
static double in_regions, paused, after_pause;
static void region(void) {
#pragma omp parallel
    {
        double spun = spin(0.02);
#pragma omp masked
        in_regions += spun;
    }
    calls++;
}
int main(void) {
    region();
    omp_control_tool(omp_control_tool_pause, 0, 0);
    double before = in_regions, begin = omp_get_wtime();
    spin(0.1);
    region();
    in_regions = before;
    paused = omp_get_wtime() - begin;
    omp_control_tool(omp_control_tool_start, 0, 0);
    region();
    // Sections open in the pause are not shown after it either.
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            omp_control_tool(omp_control_tool_pause, 0, 0);
            omp_control_tool(omp_control_tool_start, 0, 0);
            after_pause = spin(0.1);
        }
        calls++;
    }
    region();
    printf("%.0f %.0f %.0f\n", in_regions * 1e9, paused * 1e9, after_pause * 1e9);
    return 0;
}
