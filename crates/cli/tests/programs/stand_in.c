/* Stands in for the command at an installation: prints a version, or makes the files of `generate DIRECTORY`. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    char command[2000];
    if (count < 3) return puts("taskscope 7.8.9") < 0;
    sprintf(command, "cd %s && touch taskscope.bash _taskscope taskscope.fish taskscope.1", words[2]);
    return system(command);
}
