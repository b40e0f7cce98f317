/* Particles in cells: particles move in the field of a potential on a 3-D mesh, which is cut into fragments.
 * MPI between ranks, OpenMP tasks with `depend` inside.
 *
 *   pic NX NY NZ NP NT FX FY FZ [--sweeps K] [--ball] [--sleep PUSH_NS CELL_NS] [--link-us L] [--link-ns-per-byte B]
 *
 * NX NY NZ cells, NP particles, NT time steps, FX FY FZ fragments. Fragments are dealt to ranks in blocks.
 * Tasks of a fragment in a step: push its particles; collect those that came and count the density; K sweeps of the
 * Poisson equation, each after the neighbours' faces of the sweep before; the residual. The largest residual of all
 * ranks gates the next step.
 *
 * What comes from a fragment of another rank is a task with `detach`, which ends when the message has come. One
 * thread of each rank looks for messages; it sleeps in between, and is no worker.
 *
 * --sleep: instead of computing, a task sleeps PUSH_NS for each particle or CELL_NS for each cell, so that
 * more workers than cores behave like as many cores. --link-us, --link-ns-per-byte: a message counts as arrived
 * only so long after it was sent: a slow network on any machine (clocks of one host, so on one host only).
 * --ball: particles start in a ball in the middle instead of everywhere: imbalance.
 *
 * The program prints the number of particles and the residual; both are the same on any number of ranks. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { FACES = 6, PARTICLES, HALO, KINDS };

typedef struct { double x[3], v[3]; } Particle;

/* A face's data on its way: when it was sent, how many values, the values. */
typedef struct { double sent_ns, count, values[]; } Packet;

typedef struct {
    int index, rank, at[3], first[3], cells[3];
    int neighbour[FACES];           /* fragments, -1 at the walls */
    double *phi, *next, *rho;       /* with a layer around */
    Particle *particles;
    long count, room;
    Packet *out[KINDS][FACES], *in[KINDS][FACES];
    double residual;
    char state, ready[KINDS][FACES], come[KINDS][FACES]; /* what tasks depend on */
} Fragment;

static int n[3], fragments[3], steps, sweeps = 4, ball, rank, ranks, count, own_count;
static long particle_count;
static int sleeps;
static double push_ns, cell_ns, link_ns, link_ns_per_byte, worst;
static Fragment *all;
static char gate, wall;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void rest(double ns)
{
    struct timespec t = { ns / 1e9, fmod(ns, 1e9) };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Sleeps in the place of work. A thread's first sleep asks for timers without slack; what sleeps of a rank take too
 * long its next ones are shorter, so that the work of all does not depend on what else the machine does. */
static int slept(double ns)
{
    static __thread int prompt;
    static atomic_long debt;
    if (!sleeps)
        return 0;
    if (!prompt)
        prompt = 1 + prctl(PR_SET_TIMERSLACK, 1);
    double begin = now(), owed = atomic_exchange(&debt, 0), paid = fmin(owed, ns);
    if (ns > paid)
        rest(ns - paid);
    atomic_fetch_add(&debt, owed + (now() - begin) - ns);
    return 1;
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

typedef struct Pending {
    MPI_Request request;
    omp_event_handle_t event;
    const double *sent_ns;          /* of what comes, filled when it has */
    double bytes;
    struct Pending *next;
} Pending;

static Pending *posted;
static pthread_mutex_t posted_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

static void post(Pending pending)
{
    Pending *copy = malloc(sizeof *copy);
    *copy = pending;
    pthread_mutex_lock(&posted_lock);
    copy->next = posted;
    posted = copy;
    pthread_mutex_unlock(&posted_lock);
}

/* Whether a request is done; a message on a slow link is left where it is until its time has come. */
static int is_done(Pending *pending)
{
    int done;
    MPI_Request_get_status(pending->request, &done, MPI_STATUS_IGNORE);
    if (!done || (pending->sent_ns && now() < *pending->sent_ns + link_ns + pending->bytes * link_ns_per_byte))
        return 0;
    MPI_Wait(&pending->request, MPI_STATUS_IGNORE);
    return 1;
}

static void *look_for_messages(void *unused)
{
    Pending *waiting = NULL;
    prctl(PR_SET_TIMERSLACK, 1);
    while (!over || waiting) {
        pthread_mutex_lock(&posted_lock);
        Pending *fresh = posted;
        posted = NULL;
        pthread_mutex_unlock(&posted_lock);
        while (fresh) {
            Pending *next = fresh->next;
            fresh->next = waiting;
            waiting = fresh;
            fresh = next;
        }
        for (Pending **at = &waiting; *at;) {
            Pending *pending = *at;
            if (!is_done(pending)) {
                at = &pending->next;
                continue;
            }
            omp_fulfill_event(pending->event);
            *at = pending->next;
            free(pending);
        }
        rest(30e3);
    }
    return unused;
}

static int tag_of(int fragment, int kind, int face)
{
    return (fragment * KINDS + kind) * FACES + face;
}

static size_t packet_bytes(const Fragment *f, int kind, int face)
{
    int a = f->cells[(face / 2 + 1) % 3], b = f->cells[(face / 2 + 2) % 3];
    /* At most a quarter of the particles of a full fragment leave it through one face in a step. */
    size_t values = kind == HALO ? (size_t)a * b : 6 * (size_t)(16 + particle_count / count / (sleeps ? 64 : 1));
    return sizeof(Packet) + values * sizeof(double);
}

/* Ends when a fragment's face for a neighbour on another rank may be overwritten. */
static void send_task(Fragment *f, int kind, int face)
{
    char *ready = &f->ready[kind][face];
    omp_event_handle_t event = 0;
    #pragma omp task depend(in : *ready) firstprivate(f, kind, face) detach(event)
    {
        Packet *packet = f->out[kind][face];
        Fragment *to = &all[f->neighbour[face]];
        Pending pending = { .event = event };
        packet->sent_ns = now();
        MPI_Isend(packet, packet_bytes(f, kind, face), MPI_BYTE, to->rank, tag_of(to->index, kind, face ^ 1),
                  MPI_COMM_WORLD, &pending.request);
        post(pending);
    }
}

/* Ends when the face of a neighbour on another rank has come. */
static void receive_task(Fragment *f, int kind, int face)
{
    char *come = &f->come[kind][face];
    omp_event_handle_t event = 0;
    #pragma omp task depend(out : *come) firstprivate(f, kind, face) detach(event)
    {
        Packet *packet = f->in[kind][face];
        size_t bytes = packet_bytes(f, kind, face);
        Pending pending = { .event = event, .sent_ns = &packet->sent_ns, .bytes = bytes };
        MPI_Irecv(packet, bytes, MPI_BYTE, all[f->neighbour[face]].rank, tag_of(f->index, kind, face),
                  MPI_COMM_WORLD, &pending.request);
        post(pending);
    }
}

/* ---- work -------------------------------------------------------------------------------------------------- */

static double *cell(const Fragment *f, double *field, int i, int j, int k)
{
    return &field[((size_t)(i + 1) * (f->cells[1] + 2) + j + 1) * (f->cells[2] + 2) + k + 1];
}

static int owner_of(const double *x)
{
    int at[3];
    for (int d = 0; d < 3; d++) {
        at[d] = (int)((floor(x[d]) + 1) * fragments[d] - 1) / n[d];
        at[d] = at[d] < 0 ? 0 : at[d] >= fragments[d] ? fragments[d] - 1 : at[d];
    }
    return (at[0] * fragments[1] + at[1]) * fragments[2] + at[2];
}

static int is_inside(const Fragment *f, const double *x, int d)
{
    return x[d] >= f->first[d] && x[d] < f->first[d] + f->cells[d];
}

static void add_particle(Fragment *f, const Particle *p)
{
    if (f->count == f->room)
        f->particles = realloc(f->particles, (f->room = 2 * f->room + 64) * sizeof *p);
    f->particles[f->count++] = *p;
}

static void push(Fragment *f)
{
    long kept = 0;
    for (int face = 0; face < FACES; face++)
        f->out[PARTICLES][face]->count = 0;
    for (long i = 0; i < f->count; i++) {
        Particle p = f->particles[i];
        int c[3], face = -1;
        for (int d = 0; d < 3; d++) {
            c[d] = (int)floor(p.x[d]) - f->first[d];
            c[d] = c[d] < 0 ? 0 : c[d] >= f->cells[d] ? f->cells[d] - 1 : c[d];
        }
        for (int d = 0; d < 3; d++) {
            double low = *cell(f, f->phi, c[0] - (d == 0), c[1] - (d == 1), c[2] - (d == 2));
            double high = *cell(f, f->phi, c[0] + (d == 0), c[1] + (d == 1), c[2] + (d == 2));
            p.v[d] -= 1e-3 * (high - low);
            p.x[d] += fmax(-0.5, fmin(0.5, p.v[d]));
            if (p.x[d] < 0 || p.x[d] >= n[d]) { /* walls reflect */
                p.x[d] = p.x[d] < 0 ? -p.x[d] : fmin(2.0 * n[d] - p.x[d], nextafter(n[d], 0));
                p.v[d] = -p.v[d];
            }
            if (face < 0 && !is_inside(f, p.x, d))
                face = 2 * d + (p.x[d] >= f->first[d] + f->cells[d]);
        }
        Packet *out = face < 0 ? NULL : f->out[PARTICLES][face];
        size_t room = face < 0 ? 0 : (packet_bytes(f, PARTICLES, face) - sizeof(Packet)) / sizeof p;
        if (out && out->count < room)
            memcpy(out->values + 6 * (long)out->count++, &p, sizeof p);
        else
            f->particles[kept++] = p;
    }
    f->count = kept;
}

static void collect(Fragment *f, Packet *const *came)
{
    for (int face = 0; face < FACES; face++)
        for (long i = 0; came[face] && i < (long)came[face]->count; i++)
            add_particle(f, (Particle *)(came[face]->values + 6 * i));
    size_t cells = (size_t)(f->cells[0] + 2) * (f->cells[1] + 2) * (f->cells[2] + 2);
    memset(f->rho, 0, cells * sizeof *f->rho);
    for (long i = 0; i < f->count; i++) {
        const double *x = f->particles[i].x;
        int c[3];
        for (int d = 0; d < 3; d++) { /* one that is still under way to a diagonal neighbour counts at the rim */
            c[d] = (int)floor(x[d]) - f->first[d];
            c[d] = c[d] < 0 ? 0 : c[d] >= f->cells[d] ? f->cells[d] - 1 : c[d];
        }
        *cell(f, f->rho, c[0], c[1], c[2]) += (double)n[0] * n[1] * n[2] / particle_count;
    }
}

/* The cell of a face at (a, b); in the layer around with `outside`. */
static double *face_cell(const Fragment *f, double *field, int face, int a, int b, int outside)
{
    int d = face / 2, c[3];
    c[d] = face % 2 ? f->cells[d] - 1 + outside : -outside;
    c[(d + 1) % 3] = a;
    c[(d + 2) % 3] = b;
    return cell(f, field, c[0], c[1], c[2]);
}

static void sweep(Fragment *f, Packet *const *came)
{
    for (int face = 0; face < FACES; face++)
        for (int a = 0; a < f->cells[(face / 2 + 1) % 3]; a++)
            for (int b = 0; b < f->cells[(face / 2 + 2) % 3]; b++)
                *face_cell(f, f->phi, face, a, b, 1) =
                    came[face] ? came[face]->values[(size_t)a * f->cells[(face / 2 + 2) % 3] + b] : 0;
    f->residual = 0;
    for (int i = 0; i < f->cells[0]; i++)
        for (int j = 0; j < f->cells[1]; j++)
            for (int k = 0; k < f->cells[2]; k++) {
                double *p = cell(f, f->phi, i, j, k);
                long dx = (long)(f->cells[1] + 2) * (f->cells[2] + 2), dy = f->cells[2] + 2;
                double value = (p[-dx] + p[dx] + p[-dy] + p[dy] + p[-1] + p[1] + *cell(f, f->rho, i, j, k)) / 6;
                f->residual = fmax(f->residual, fabs(value - *p));
                *cell(f, f->next, i, j, k) = value;
            }
    double *swap = f->phi;
    f->phi = f->next;
    f->next = swap;
}

static void fill_faces(Fragment *f)
{
    for (int face = 0; face < FACES; face++)
        for (int a = 0; a < f->cells[(face / 2 + 1) % 3]; a++)
            for (int b = 0; b < f->cells[(face / 2 + 2) % 3]; b++)
                f->out[HALO][face]->values[(size_t)a * f->cells[(face / 2 + 2) % 3] + b] =
                    *face_cell(f, f->phi, face, a, b, 0);
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

/* What a task that needs all neighbours' faces depends on: their packets here, messages from elsewhere. */
static void needs(Fragment *f, int kind, char **tags, Packet **came)
{
    for (int face = 0; face < FACES; face++) {
        int other = f->neighbour[face];
        int is_here = other >= 0 && all[other].rank == rank;
        tags[face] = other < 0 ? &wall : is_here ? &all[other].ready[kind][face ^ 1] : &f->come[kind][face];
        came[face] = other < 0 ? NULL : is_here ? all[other].out[kind][face ^ 1] : f->in[kind][face];
    }
}

static void exchange(Fragment *f, int kind)
{
    for (int face = 0; face < FACES; face++)
        if (f->neighbour[face] >= 0 && all[f->neighbour[face]].rank != rank) {
            receive_task(f, kind, face);
            send_task(f, kind, face);
        }
}

static void push_task(Fragment *f)
{
    char *r = f->ready[PARTICLES];
    #pragma omp task depend(in : gate) depend(inout : f->state) depend(out : r[0], r[1], r[2], r[3], r[4], r[5])
    if (!slept(push_ns * f->count))
        push(f);
}

static void collect_task(Fragment *f)
{
    char *tags[FACES], *r = f->ready[HALO];
    Packet *c[FACES];
    needs(f, PARTICLES, tags, c);
    Packet *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3], *c4 = c[4], *c5 = c[5];
    #pragma omp task depend(in : *tags[0], *tags[1], *tags[2], *tags[3], *tags[4], *tags[5]) \
        depend(inout : f->state) depend(out : r[0], r[1], r[2], r[3], r[4], r[5])
    if (!slept(push_ns * f->count / 4)) {
        Packet *came[FACES] = { c0, c1, c2, c3, c4, c5 };
        collect(f, came);
        fill_faces(f);
    }
}

static void sweep_task(Fragment *f)
{
    char *tags[FACES];
    Packet *c[FACES];
    needs(f, HALO, tags, c);
    Packet *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3], *c4 = c[4], *c5 = c[5];
    #pragma omp task depend(in : *tags[0], *tags[1], *tags[2], *tags[3], *tags[4], *tags[5]) \
        depend(inout : f->state)
    if (!slept(cell_ns * f->cells[0] * f->cells[1] * f->cells[2])) {
        Packet *came[FACES] = { c0, c1, c2, c3, c4, c5 };
        sweep(f, came);
    }
}

/* After all sweeps of a round have been created: a sweep sees no neighbour's faces of its own round. */
static void face_task(Fragment *f)
{
    char *r = f->ready[HALO];
    #pragma omp task depend(inout : f->state) depend(out : r[0], r[1], r[2], r[3], r[4], r[5])
    if (!sleeps)
        fill_faces(f);
}

/* The largest residual of all fragments of all ranks opens the gate to the next step. */
static void gate_task(void)
{
    static double mine[2], largest[2];
    static char arrived;
    omp_event_handle_t event = 0;
    #pragma omp task depend(iterator(i = 0 : count), in : all[i].state) depend(out : arrived)
    {
        mine[1] = 0;
        for (int i = 0; i < count; i++)
            mine[1] = fmax(mine[1], all[i].residual);
    }
    if (ranks > 1) {
        #pragma omp task depend(inout : arrived) detach(event)
        {
            Pending pending = { .event = event, .sent_ns = &largest[0], .bytes = sizeof mine };
            mine[0] = now();
            MPI_Iallreduce(mine, largest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &pending.request);
            post(pending);
        }
    }
    #pragma omp task depend(in : arrived) depend(out : gate)
    worst = ranks > 1 ? largest[1] : mine[1];
}

/* ---- start and end ----------------------------------------------------------------------------------------- */

static void place(Fragment *f, int index)
{
    memset(f, 0, sizeof *f);
    f->index = index;
    f->rank = (long)index * ranks / count;
    f->at[0] = index / (fragments[1] * fragments[2]);
    f->at[1] = index / fragments[2] % fragments[1];
    f->at[2] = index % fragments[2];
    for (int d = 0; d < 3; d++) {
        f->first[d] = f->at[d] * n[d] / fragments[d];
        f->cells[d] = (f->at[d] + 1) * n[d] / fragments[d] - f->first[d];
        for (int side = 0; side < 2; side++) {
            int stride = d == 0 ? fragments[1] * fragments[2] : d == 1 ? fragments[2] : 1, to = f->at[d] + 2 * side - 1;
            f->neighbour[2 * d + side] = to < 0 || to >= fragments[d] ? -1 : index + (2 * side - 1) * stride;
        }
    }
}

static void allocate(Fragment *f)
{
    size_t cells = (size_t)(f->cells[0] + 2) * (f->cells[1] + 2) * (f->cells[2] + 2);
    if (!sleeps) {
        f->phi = calloc(cells, sizeof(double));
        f->next = calloc(cells, sizeof(double));
        f->rho = calloc(cells, sizeof(double));
    }
    for (int kind = PARTICLES; kind < KINDS; kind++)
        for (int face = 0; face < FACES; face++) {
            f->out[kind][face] = calloc(1, packet_bytes(f, kind, face));
            f->in[kind][face] = calloc(1, packet_bytes(f, kind, face));
        }
}

static void scatter_particles(void)
{
    unsigned short seed[3] = { 1, 2, 3 };
    for (long i = 0; i < particle_count; i++) {
        Particle p = { { 0 } };
        double r2;
        do {
            r2 = 0;
            for (int d = 0; d < 3; d++) {
                double u = erand48(seed);
                p.x[d] = u * n[d];
                r2 += (u - 0.5) * (u - 0.5);
            }
        } while (ball && r2 > 0.09);
        Fragment *f = &all[owner_of(p.x)];
        if (f->rank == rank && sleeps)
            f->count++;
        else if (f->rank == rank)
            add_particle(f, &p);
    }
}

static double number(char **text)
{
    if (!*text) {
        fprintf(stderr, "usage: pic NX NY NZ NP NT FX FY FZ [--sweeps K] [--ball] [--sleep PUSH_NS CELL_NS] "
                        "[--link-us L] [--link-ns-per-byte B]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return atof(*text);
}

static void read_arguments(char **argument)
{
    for (int d = 0; d < 3; d++)
        n[d] = number(argument++);
    particle_count = number(argument++);
    steps = number(argument++);
    for (int d = 0; d < 3; d++)
        fragments[d] = number(argument++);
    for (; *argument; argument++) {
        if (!strcmp(*argument, "--sweeps"))
            sweeps = number(++argument);
        else if (!strcmp(*argument, "--ball"))
            ball = 1;
        else if (!strcmp(*argument, "--sleep"))
            sleeps = 1, push_ns = number(++argument), cell_ns = number(++argument);
        else if (!strcmp(*argument, "--link-us"))
            link_ns = 1e3 * number(++argument);
        else if (!strcmp(*argument, "--link-ns-per-byte"))
            link_ns_per_byte = number(++argument);
        else
            argument = (char *[]){ NULL }, number(argument);
    }
    count = fragments[0] * fragments[1] * fragments[2];
    for (int d = 0; d < 3; d++)
        if (fragments[d] < 1 || n[d] < fragments[d] || steps < 1 || particle_count < 1 || count < ranks)
            number((char *[]){ NULL });
}

int main(int argc, char **argv)
{
    int level;
    pthread_t looker;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* A team of one thread runs tasks at once, without waiting for messages. */
    if (ranks > 1 && (level < MPI_THREAD_MULTIPLE || omp_get_max_threads() < 2)) {
        fputs("pic: several ranks need two threads each at least, and MPI_THREAD_MULTIPLE\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    read_arguments(argv + 1);
    all = calloc(count, sizeof *all);
    for (int i = 0; i < count; i++)
        place(&all[i], i);
    for (int i = 0; i < count; i++)
        if (all[i].rank == rank)
            own_count++, allocate(&all[i]);
    scatter_particles();
    if (ranks > 1)
        pthread_create(&looker, NULL, look_for_messages, NULL);

    #pragma omp parallel
    #pragma omp single
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < count; i++)
            if (all[i].rank == rank)
                push_task(&all[i]), exchange(&all[i], PARTICLES);
        for (int i = 0; i < count; i++)
            if (all[i].rank == rank)
                collect_task(&all[i]), exchange(&all[i], HALO);
        for (int s = 0; s < sweeps; s++) {
            for (int i = 0; i < count; i++)
                if (all[i].rank == rank)
                    sweep_task(&all[i]);
            for (int i = 0; i < count && s + 1 < sweeps; i++)
                if (all[i].rank == rank)
                    face_task(&all[i]), exchange(&all[i], HALO);
        }
        gate_task();
    }

    over = 1;
    if (ranks > 1)
        pthread_join(looker, NULL);
    long held = 0, sum;
    for (int i = 0; i < count; i++)
        held += all[i].count;
    MPI_Reduce(&held, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld particles, residual %.9g\n", sum, worst);
    MPI_Finalize();
    return rank == 0 && sum != particle_count;
}
