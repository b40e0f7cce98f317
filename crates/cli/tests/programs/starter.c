/* Executes its arguments with repeated variables and an entry that is not a variable. */
#include <unistd.h>

int main(int count, char **words) {
    char *entries[] = {"Z=1", "PATH=/usr/bin:/bin", "A=2", "Z=3", "none", "A=2", "LAST=", 0};
    execve(words[1], words + 1, entries);
    return 99;
}
