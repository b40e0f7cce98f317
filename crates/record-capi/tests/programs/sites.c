/* A call site whose name is off: `program COUNT` passes it COUNT times while it records; with a second argument, a
 * shared object that has a site of its own, is loaded, used, closed, and its place in memory taken by others. With
 * -DPLUGIN it is that shared object. */
#include <stdint.h>
#include <stdlib.h>
#include <taskscope.h>

#ifdef PLUGIN

int
pass(void)
{
	TASKSCOPE_NAMED(key, taskscope_key("of a plugin", "", TASKSCOPE_USER));
	return taskscope_burst_open(key, 1);
}

#else
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

/* Inlined: what is counted is the site alone. */
static inline __attribute__((always_inline)) int
is_on(void)
{
	TASKSCOPE_NAMED(off, taskscope_key("off", "is off", TASKSCOPE_DISABLED));
	return off != 0;
}

static int
use_plugin(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW);
	int (*pass_there)(void) = plugin ? (int (*)(void)) dlsym(plugin, "pass") : NULL;
	if (pass_there == NULL || !pass_there())
		return 2;
	dlclose(plugin);
	char *others[64];
	for (int i = 0; i < 64; i++) {
		others[i] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(others[i], 0x55, 8192);
	}
	taskscope_set_enabled("off", 0);
	for (int i = 0; i < 64; i++)
		for (int at = 0; at < 8192; at++)
			if (others[i][at] != 0x55)
				return 3;
	return 0;
}

int
main(int argc, char **argv)
{
	if (taskscope_start(NULL) != 0)
		return 1;
	int stored = 0;
	for (long left = atol(argv[1]); left > 0; left--)
		stored += is_on();
	if (stored != 0)
		return 4;
	if (argc > 2) {
		int problem = use_plugin(argv[2]);
		if (problem != 0)
			return problem;
	}
	taskscope_set_enabled("off", 1);
	return is_on() ? 0 : 5;
}
#endif
