/* Prints the environment; the exit status is 10 plus the number of words of the command. */
#include <stdio.h>

extern char **environ;

int main(int count, char **words) {
    for (char **entry = environ; *entry; entry++) puts(*entry);
    return count + 10;
}
