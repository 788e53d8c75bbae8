/* A disk that a test can look into and break, preloaded into the broker.
 *
 * FAULTY_FOLDER is a folder on it. Once there is a file FAULTY_FOLDER.fails, every write and sync of what lies in that
 * folder fails with an I/O error; with FAULTY_FOLDER.fails-to-sync every sync does, and writes go on. In
 * FAULTY_FOLDER.dies stands a number: so many writes to files in the folder are done from then on, and the process is killed
 * as it is about to do the next.
 *
 * After each fsync or fdatasync that succeeds it appends to the file named by SYNC_JOURNAL what has really been synced,
 * so that a test can take away the rest as a power cut would:
 *     F <size> <path>      a file is durable up to <size>, its size when the sync began
 *     D <path>             a directory: N lines follow with the names that were in it when the sync began
 *     N <name>
 * Entries are written whole, by one write each. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

static int journal(void) {
    static int descriptor = -1;
    if (descriptor < 0) {
        const char *path = getenv("SYNC_JOURNAL");
        descriptor = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    }
    return descriptor;
}

/* Whether the descriptor is of a file on the faulty disk, and the test has made that fail in this way; then `flag` is the
 * path of the file that says so. */
static int flagged(int fd, const char *how, char *flag, size_t size) {
    const char *folder = getenv("FAULTY_FOLDER");
    char link[64], path[4096];
    if (!folder) return 0;
    snprintf(flag, size, "%s.%s", folder, how);
    if (access(flag, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int fails(int fd, const char *how) {
    char flag[4200];
    return flagged(fd, how, flag, sizeof flag);
}

/* Appends are made by one thread, so they are counted one by one. */
static void maybe_die(int fd) {
    static long left = -1;
    char flag[4200];
    if (!flagged(fd, "dies", flag, sizeof flag)) return;
    if (left < 0) {
        FILE *file = fopen(flag, "r");
        if (!file || fscanf(file, "%ld", &left) != 1) abort();
        fclose(file);
    }
    if (left-- == 0) kill(getpid(), SIGKILL);
}

/* What to say about the descriptor once its sync has succeeded; NULL for what is neither file nor directory. */
static char *note(int fd) {
    char link[64], path[4096];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || fstat(fd, &status) != 0) return NULL;
    path[length] = 0;
    char *text = malloc(MOST_BYTES);
    if (!text) return NULL;
    if (S_ISREG(status.st_mode)) {
        snprintf(text, MOST_BYTES, "F %lld %s\n", (long long)status.st_size, path);
        return text;
    }
    DIR *directory = S_ISDIR(status.st_mode) ? opendir(path) : NULL;
    if (!directory) {
        free(text);
        return NULL;
    }
    size_t used = (size_t)snprintf(text, MOST_BYTES, "D %s\n", path);
    for (struct dirent *entry; (entry = readdir(directory)) && used < MOST_BYTES - 300;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            used += (size_t)snprintf(text + used, MOST_BYTES - used, "N %s\n", entry->d_name);
    closedir(directory);
    return text;
}

static int noted_sync(const char *function, int fd) {
    if (fails(fd, "fails") || fails(fd, "fails-to-sync")) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, function);
    char *text = journal() >= 0 ? note(fd) : NULL;
    int result = real(fd);
    if (text && result == 0 && write(journal(), text, strlen(text)) < 0) abort();
    free(text);
    return result;
}

int fsync(int fd) { return noted_sync("fsync", fd); }
int fdatasync(int fd) { return noted_sync("fdatasync", fd); }

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t position) {
    maybe_die(fd);
    if (fails(fd, "fails")) {
        errno = EIO;
        return -1;
    }
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return real(fd, data, size, position);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t position) { return pwrite64(fd, data, size, position); }
