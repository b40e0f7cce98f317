/* A library without OpenMP, which is known by its name. */
int tbb(void) { return 0; }
