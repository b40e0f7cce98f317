int add_one(int n);

int main(void) { return add_one(26); }
