/* A library in the place of an OpenMP runtime: counts its calls. */
int next(void) {
    static int last;
    return ++last;
}
