/* What a Fortran program calls to print where it was called from. */
#include <stdio.h>

void here(const char *name)
{
    printf("%s %p\n", name, __builtin_return_address(0));
}
