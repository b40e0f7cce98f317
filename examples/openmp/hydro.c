/* A small hydrodynamics code of the kind of LULESH, written for this project: two gases in a box with
   rigid walls, on a grid of quadrilaterals that moves with them (staggered Lagrangian, von Neumann
   and Richtmyer's viscosity, forces and energy compatible in the sense of Caramana et al. 1998).

   Usage: hydro [N [STEPS [SHARE]]]       (default 120 200 0.3)

   N x N cells. The cells of the lower SHARE of the rows hold a radiating gas, whose temperature must
   be found by Newton's method in every step; the others an ideal gas, which costs one line.

   Known by construction: five parallel loops, in equation_of_state, corner_forces, move_nodes,
   do_work and time_step, each entered STEPS times below advance. equation_of_state is imbalanced: its
   static schedule gives the radiating rows to the first threads, so the others wait at its end; the
   other four are balanced. Checked at the end: energy and mass are what they were, no cell has turned
   over. */

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int n;               /* cells along a side */
static int radiating_rows;  /* rows of the gas that costs more */
static double *x, *y, *u, *v, *node_mass;             /* of nodes */
static double *mass, *energy, *volume, *pressure, *q; /* of cells */
static double *sound, *length;
static double (*force)[4][2]; /* of a cell on its corners */

#define PHASE static __attribute__((noinline)) /* a frame of its own in every call path */

/* Counted after each loop: were the runtime's call the last thing a function does, a compiler would
   jump instead, and the function's frame would be gone from every call path. */
static volatile long loops;

static const double gamma_less_1 = 0.4, radiation = 0.05;

static int node(int i, int j) { return j * (n + 1) + i; }

static void corners(int cell, int at[4])
{
    int i = cell % n, j = cell / n;
    at[0] = node(i, j);
    at[1] = node(i + 1, j);
    at[2] = node(i + 1, j + 1);
    at[3] = node(i, j + 1);
}

static double area(const int at[4])
{
    double dx1 = x[at[2]] - x[at[0]], dy1 = y[at[2]] - y[at[0]];
    double dx2 = x[at[3]] - x[at[1]], dy2 = y[at[3]] - y[at[1]];
    return (dx1 * dy2 - dx2 * dy1) / 2;
}

/* Temperature from energy: e = T + radiation T^4 / density. From far above, as a table-less code must. */
static double temperature(double e, double density)
{
    double t = 1000 * (1 + e);
    for (int i = 0; i < 200; i++) {
        double f = t + radiation * t * t * t * t / density - e;
        double step = f / (1 + 4 * radiation * t * t * t / density);
        t -= step;
        if (fabs(step) <= 1e-14 * t)
            break;
    }
    return t;
}

PHASE void equation_of_state(void)
{
#pragma omp parallel for schedule(static) /* the imbalanced loop */
    for (int cell = 0; cell < n * n; cell++) {
        double density = mass[cell] / volume[cell], e = energy[cell];
        if (cell / n < radiating_rows) {
            double t = temperature(e, density);
            pressure[cell] = gamma_less_1 * density * t + radiation * t * t * t * t / 3;
        } else {
            pressure[cell] = gamma_less_1 * density * e;
        }
        sound[cell] = sqrt((1 + gamma_less_1) * pressure[cell] / density) + 1e-12;
    }
    loops++;
}

PHASE void corner_forces(void)
{
#pragma omp parallel for schedule(static)
    for (int cell = 0; cell < n * n; cell++) {
        int at[4];
        corners(cell, at);
        double divergence = 0;
        for (int c = 0; c < 4; c++) {
            int next = at[(c + 1) % 4], before = at[(c + 3) % 4];
            divergence += u[at[c]] * (y[next] - y[before]) / 2 - v[at[c]] * (x[next] - x[before]) / 2;
        }
        double density = mass[cell] / volume[cell], dv = length[cell] * divergence / volume[cell];
        q[cell] = divergence < 0 ? density * (2 * dv * dv - 0.5 * sound[cell] * dv) : 0;
        double push = pressure[cell] + q[cell];
        /* Against the pattern + - + - of velocities, which no pressure sees (hourglass). */
        double hu = (u[at[0]] - u[at[1]] + u[at[2]] - u[at[3]]) / 4;
        double hv = (v[at[0]] - v[at[1]] + v[at[2]] - v[at[3]]) / 4;
        double damp = 0.3 * density * sound[cell] * length[cell];
        for (int c = 0; c < 4; c++) {
            int next = at[(c + 1) % 4], before = at[(c + 3) % 4];
            double sign = c % 2 ? -damp : damp;
            force[cell][c][0] = push * (y[next] - y[before]) / 2 - sign * hu;
            force[cell][c][1] = -push * (x[next] - x[before]) / 2 - sign * hv;
        }
    }
    loops++;
}

static double *old_u, *old_v;

PHASE void move_nodes(double dt)
{
#pragma omp parallel for schedule(static)
    for (int j = 0; j <= n; j++)
        for (int i = 0; i <= n; i++) {
            int p = node(i, j);
            double fx = 0, fy = 0;
            for (int c = 0; c < 4; c++) {
                /* The cell of which this node is corner c. */
                int ci = i - (c == 1 || c == 2), cj = j - (c >= 2);
                if (ci < 0 || cj < 0 || ci >= n || cj >= n)
                    continue;
                fx += force[cj * n + ci][c][0];
                fy += force[cj * n + ci][c][1];
            }
            old_u[p] = u[p];
            old_v[p] = v[p];
            u[p] = i == 0 || i == n ? 0 : u[p] + dt * fx / node_mass[p];
            v[p] = j == 0 || j == n ? 0 : v[p] + dt * fy / node_mass[p];
            x[p] += dt * (old_u[p] + u[p]) / 2;
            y[p] += dt * (old_v[p] + v[p]) / 2;
        }
    loops++;
}

PHASE void do_work(double dt)
{
#pragma omp parallel for schedule(static)
    for (int cell = 0; cell < n * n; cell++) {
        int at[4];
        corners(cell, at);
        double work = 0;
        for (int c = 0; c < 4; c++)
            work += force[cell][c][0] * (old_u[at[c]] + u[at[c]]) / 2 +
                    force[cell][c][1] * (old_v[at[c]] + v[at[c]]) / 2;
        energy[cell] -= dt * work / mass[cell];
        volume[cell] = area(at);
        length[cell] = sqrt(volume[cell]);
    }
    loops++;
}

PHASE double time_step(void)
{
    double least = 1;
#pragma omp parallel for schedule(static) reduction(min : least)
    for (int cell = 0; cell < n * n; cell++) {
        double dt = 0.2 * length[cell] / sound[cell];
        if (dt < least)
            least = dt;
    }
    return least;
}

PHASE void advance(int steps)
{
    for (int step = 0; step < steps; step++) {
        equation_of_state();
        double dt = time_step();
        corner_forces();
        move_nodes(dt);
        do_work(dt);
    }
}

static double total_energy(void)
{
    double sum = 0;
    for (int cell = 0; cell < n * n; cell++)
        sum += mass[cell] * energy[cell];
    for (int p = 0; p < (n + 1) * (n + 1); p++)
        sum += node_mass[p] * (u[p] * u[p] + v[p] * v[p]) / 2;
    return sum;
}

static double *zeros(size_t count)
{
    double *all = calloc(count, sizeof *all);
    if (!all)
        exit(3);
    return all;
}

static void set_up(void)
{
    size_t nodes = (size_t)(n + 1) * (n + 1), cells = (size_t)n * n;
    x = zeros(nodes), y = zeros(nodes), u = zeros(nodes), v = zeros(nodes), node_mass = zeros(nodes);
    old_u = zeros(nodes), old_v = zeros(nodes);
    mass = zeros(cells), energy = zeros(cells), volume = zeros(cells), pressure = zeros(cells);
    q = zeros(cells), sound = zeros(cells), length = zeros(cells);
    force = calloc(cells, sizeof *force);
    if (!force)
        exit(3);
    for (int j = 0; j <= n; j++)
        for (int i = 0; i <= n; i++) {
            x[node(i, j)] = (double)i / n;
            y[node(i, j)] = (double)j / n;
        }
    for (int cell = 0; cell < n * n; cell++) {
        int at[4];
        corners(cell, at);
        volume[cell] = area(at);
        length[cell] = sqrt(volume[cell]);
        double density = cell / n < radiating_rows ? 1.5 : 1;
        mass[cell] = density * volume[cell];
        /* A warmer patch in the middle drives the flow. */
        int i = cell % n, j = cell / n;
        energy[cell] = abs(2 * i - n) < n / 3 && abs(2 * j - n) < n / 3 ? 2 : 1;
        for (int c = 0; c < 4; c++)
            node_mass[at[c]] += mass[cell] / 4;
    }
}

int main(int argc, char **argv)
{
    n = argc > 1 ? atoi(argv[1]) : 120;
    int steps = argc > 2 ? atoi(argv[2]) : 200;
    double share = argc > 3 ? atof(argv[3]) : 0.3;
    if (n < 4 || n > 10000 || steps < 0 || !(share >= 0 && share <= 1)) {
        fprintf(stderr, "usage: hydro [N [STEPS [SHARE]]]\n");
        return 2;
    }
    radiating_rows = (int)(share * n);
    set_up();
    double before = total_energy();
    advance(steps);
    double drift = fabs(total_energy() / before - 1), box = 0;
    int sound_cells = 1;
    for (int cell = 0; cell < n * n; cell++) {
        sound_cells &= volume[cell] > 0;
        box += volume[cell];
    }
    int right = drift < 1e-9 && fabs(box - 1) < 1e-9 && sound_cells;
    printf("hydro %d %d: energy drift %.1e, volume %.12f, %s\n", n, steps, drift, box,
           right ? "as expected" : "WRONG");
    return right ? 0 : 1;
}
