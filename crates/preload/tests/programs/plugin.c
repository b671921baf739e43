/* A library that has the program that loads it take a lock: when it is loaded, and when it is unloaded. */
void plugin_takes(void);

__attribute__((constructor)) static void loaded(void) { plugin_takes(); }
__attribute__((destructor)) static void unloaded(void) { plugin_takes(); }
