/* Calls the library's region (scope_library.c). */
void inner(void);

int main(void) {
    inner();
    return 5;
}
