// Preloaded under qemu-user: a program that starts itself is started under qemu-user as well. The
// kernel cannot run the file, and to qemu-user before 8.0 /proc/self/exe is qemu-user itself.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Other programs of this machine could not load this library.
__attribute__((constructor)) static void hide_from_other_programs(void) { unsetenv("LD_PRELOAD"); }

// Returns the command line of qemu-user, or NULL if `file` is another program.
static char **qemu_command(const char *file, char *const arguments[]) {
    static char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) return NULL;
    own[length] = 0;
    if (strcmp(file, "/proc/self/exe") != 0 && strcmp(file, own) != 0) return NULL;

    size_t count = 0;
    while (arguments[count]) count++;
    char *start[] = {"qemu-aarch64", "-L", getenv("QEMU_LD_PREFIX"), own};
    size_t added = sizeof start / sizeof *start - 1;
    char **command = calloc(count + added + 1, sizeof *command);
    if (!command) return NULL;
    memcpy(command, start, sizeof start);
    memcpy(command + added + 1, arguments + 1, (count - 1) * sizeof *command);
    return command;
}

int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
    int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                char *const[], char *const[]) = dlsym(RTLD_NEXT, "posix_spawnp");
    char **command = qemu_command(file, arguments);
    if (!command) return next(process, file, actions, attributes, arguments, variables);
    return next(process, command[0], actions, attributes, command, variables);
}

int execvp(const char *file, char *const arguments[]) {
    int (*next)(const char *, char *const[]) = dlsym(RTLD_NEXT, "execvp");
    char **command = qemu_command(file, arguments);
    return command ? next(command[0], command) : next(file, arguments);
}
