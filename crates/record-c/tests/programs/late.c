/* Loads plugin.so when threads are already there. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t loaded;
static void (*plugin_thread)(void);

static void *
early_thread(void *arg)
{
	sem_wait(&loaded);
	plugin_thread();
	return arg;
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	sem_init(&loaded, 0, 0);
	pthread_create(&thread, NULL, early_thread, NULL);
	void *plugin = dlopen(argc > 1 ? argv[1] : "", RTLD_LAZY | RTLD_GLOBAL);
	if (plugin == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	((void (*)(void)) dlsym(plugin, "plugin_start"))();
	plugin_thread = (void (*)(void)) dlsym(plugin, "plugin_thread");
	plugin_thread();
	sem_post(&loaded);
	pthread_join(thread, NULL);
	return 0;
}
