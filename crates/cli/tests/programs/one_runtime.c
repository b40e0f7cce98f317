/* 7 if the offload runtime (asking_offload.c) finds the program's own OpenMP runtime (counting_runtime.c), 8 otherwise. */
int next(void), answer(void);

int main(void) { return next() == 1 && answer() == 2 ? 7 : 8; }
