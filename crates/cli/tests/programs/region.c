/* A region of two threads. */
int main(void) {
    int n = 0;
#pragma omp parallel reduction(+ : n)
    n++;
    return n != 2;
}
