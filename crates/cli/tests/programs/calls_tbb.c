int tbb(void);

int main(void) { return tbb(); }
