/*
 * Records what a program writes to one folder, and lets one of its writes or syncs fail.
 *
 * `disk.rs` compiles this, loads it into a relay with LD_PRELOAD, and reads the journal. Environment:
 *
 *   CROSSTALK_DISK_FOLDER   the folder; files elsewhere are left alone
 *   CROSSTALK_DISK_JOURNAL  where the journal is appended to
 *   CROSSTALK_DISK_FAULT    `KIND NUMBER`: which write, change of length, sync, new file or rename fails, counted from 1, and how
 *   CROSSTALK_DISK_ROOM     a full disk has room again when this file exists
 *
 * A write is recorded when it is done and before the program goes on; a sync is recorded when it begins and when it is done.
 * So a sync in the journal covers only writes that the kernel had before. The index of SQLite in shared memory (`-shm`) is
 * made anew after every crash, and is left alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, MAKE_FOLDER, FAULT };
enum { NO_FAULT, BROKEN, FULL, SHORT };
/* Which call failed: the `place` of a fault. Only a write can be short; other calls pass then. */
enum { PASSED, WRITING, TRUNCATING, SYNCING, CREATING, RENAMING };

struct record {
    uint32_t size; /* of everything that follows */
    uint32_t kind;
    uint64_t file; /* inode; of a sync that ends, the number of its beginning is in `place` */
    uint64_t place;
    uint32_t path;
    uint32_t target;
};

static char folder[PATH_MAX];
static size_t folder_length;
static int journal = -1;
static int fault_kind = NO_FAULT;
static long fault_number;
static const char *room;
static atomic_long operations;
static atomic_long syncs;
/* A file whose sync has failed: every descriptor that was open then gets the error once, as on Linux. */
static atomic_ulong broken_file;
static atomic_int is_full;
static unsigned char was_told[4096];

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("CROSSTALK_DISK_FOLDER"), *file = getenv("CROSSTALK_DISK_JOURNAL");
    if (!place || !file || !realpath(place, folder))
        return;
    int opened = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (opened < 0)
        abort();
    folder_length = strlen(folder);
    room = getenv("CROSSTALK_DISK_ROOM");
    const char *fault = getenv("CROSSTALK_DISK_FAULT");
    if (fault) {
        const char *number = strchr(fault, ' ');
        if (!number)
            abort();
        fault_number = atol(number);
        fault_kind = fault[0] == 'b' ? BROKEN : fault[0] == 'f' ? FULL : SHORT;
    }
    journal = opened;
}

static int is_inside(const char *path) {
    size_t length = strlen(path);
    return journal >= 0 && length >= folder_length && !memcmp(path, folder, folder_length) &&
           (path[folder_length] == '/' || !path[folder_length]) &&
           !(length > 4 && !strcmp(path + length - 4, "-shm"));
}

/* The path of a descriptor, if it is a file or folder inside. */
static int path_of(int descriptor, char *path, uint64_t *file) {
    if (journal < 0)
        return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    struct stat about;
    if (!is_inside(path) || fstat(descriptor, &about))
        return 0;
    *file = about.st_ino;
    return 1;
}

/* An absolute path for one that is relative to a folder. */
static int absolute(int at, const char *path, char *whole) {
    if (journal < 0 || !path)
        return 0;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char link[64], base[PATH_MAX];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length <= 0)
            return 0;
        base[length] = 0;
        if (snprintf(whole, PATH_MAX, "%s/%s", base, path) >= PATH_MAX)
            return 0;
    }
    return is_inside(whole);
}

static void note(uint32_t kind, uint64_t file, uint64_t place, const char *path, const char *target, const void *data,
                 size_t length) {
    int before = errno;
    struct record record = {.kind = kind, .file = file, .place = place};
    record.path = path ? (uint32_t)strlen(path) : 0;
    record.target = target ? (uint32_t)strlen(target) : 0;
    record.size = (uint32_t)(sizeof record - 4 + record.path + record.target + length);
    struct iovec parts[] = {{&record, sizeof record},
                            {(void *)path, record.path},
                            {(void *)target, record.target},
                            {(void *)data, length}};
    ssize_t all = (ssize_t)record.size + 4;
    if (syscall(SYS_writev, journal, parts, 4) != all)
        abort();
    errno = before;
}

/* What happens to the next operation. */
static int next_fault(int call, uint64_t file, const char *path) {
    long number = atomic_fetch_add(&operations, 1) + 1;
    if (fault_kind == FULL && atomic_load(&is_full)) {
        struct stat about;
        if (!room || stat(room, &about))
            return FULL;
        atomic_store(&is_full, 0);
    }
    if (fault_kind == NO_FAULT || number != fault_number)
        return NO_FAULT;
    if (fault_kind == SHORT && call != WRITING)
        call = PASSED;
    note(FAULT, file, (uint64_t)call, path, NULL, NULL, 0);
    if (fault_kind == FULL)
        atomic_store(&is_full, 1);
    return fault_kind;
}

/* Whether a change of names fails; the reason is in `errno` then. */
static int has_failed(int call, const char *path) {
    int fault = next_fault(call, 0, path);
    if (fault == BROKEN || fault == FULL)
        errno = fault == FULL ? ENOSPC : EIO;
    return fault == BROKEN || fault == FULL;
}

/* Writes some bytes, or fails. A disk that is full takes the first half. */
static ssize_t write_at(int descriptor, const void *data, size_t length, off_t place, int has_place) {
    char path[PATH_MAX];
    uint64_t file;
    int before = errno, is_ours = path_of(descriptor, path, &file);
    errno = before;
    int fault = is_ours ? next_fault(WRITING, file, path) : NO_FAULT;
    if (fault == BROKEN) {
        errno = EIO;
        return -1;
    }
    if (fault != NO_FAULT && length > 1)
        length /= 2;
    ssize_t done = has_place ? syscall(SYS_pwrite64, descriptor, data, length, place)
                             : syscall(SYS_write, descriptor, data, length);
    if (is_ours && done > 0) {
        if (!has_place)
            place = lseek(descriptor, 0, SEEK_CUR) - done;
        note(WRITE, file, (uint64_t)place, path, NULL, data, (size_t)done);
    }
    if (fault == FULL) {
        errno = ENOSPC;
        return -1;
    }
    return done;
}

ssize_t write(int descriptor, const void *data, size_t length) { return write_at(descriptor, data, length, 0, 0); }

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t place) {
    return write_at(descriptor, data, length, place, 1);
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t place) {
    return write_at(descriptor, data, length, place, 1);
}

/* A short write is allowed, so only the first part of a list is written to a file inside. */
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    uint64_t file;
    int before = errno, is_ours = path_of(descriptor, path, &file);
    errno = before;
    if (!is_ours)
        return syscall(SYS_writev, descriptor, parts, count);
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len)
            return write_at(descriptor, parts[i].iov_base, parts[i].iov_len, 0, 0);
    return 0;
}

static int truncate_to(int descriptor, off_t length) {
    char path[PATH_MAX];
    uint64_t file;
    int before = errno, is_ours = path_of(descriptor, path, &file);
    errno = before;
    if (is_ours && next_fault(TRUNCATING, file, path) == BROKEN) {
        errno = EIO;
        return -1;
    }
    int done = (int)syscall(SYS_ftruncate, descriptor, length);
    if (is_ours && !done)
        note(TRUNCATE, file, (uint64_t)length, path, NULL, NULL, 0);
    return done;
}

int ftruncate(int descriptor, off_t length) { return truncate_to(descriptor, length); }

int ftruncate64(int descriptor, off64_t length) { return truncate_to(descriptor, length); }

static int sync_file(int descriptor, long call) {
    char path[PATH_MAX];
    uint64_t file;
    int before = errno, is_ours = path_of(descriptor, path, &file);
    errno = before;
    if (!is_ours)
        return (int)syscall(call, descriptor);
    int fault = next_fault(SYNCING, file, path);
    int is_told = descriptor < (int)sizeof was_told && was_told[descriptor];
    if (fault == BROKEN || fault == FULL)
        atomic_store(&broken_file, file);
    if (fault == BROKEN || fault == FULL || (atomic_load(&broken_file) == file && !is_told)) {
        if (descriptor < (int)sizeof was_told)
            was_told[descriptor] = 1;
        errno = fault == FULL ? ENOSPC : EIO;
        return -1;
    }
    uint64_t number = (uint64_t)atomic_fetch_add(&syncs, 1) + 1;
    note(SYNC_BEGIN, file, number, path, NULL, NULL, 0);
    int done = (int)syscall(call, descriptor);
    if (!done)
        note(SYNC_END, file, number, path, NULL, NULL, 0);
    return done;
}

int fsync(int descriptor) { return sync_file(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return sync_file(descriptor, SYS_fdatasync); }

static int open_file(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat about;
    int before = errno;
    int was_there = !(flags & O_CREAT) || !absolute(at, name, path) || !stat(path, &about);
    if (!was_there && has_failed(CREATING, path))
        return -1;
    errno = before;
    int descriptor = (int)syscall(SYS_openat, at, name, flags, mode);
    uint64_t file;
    /* An error is for the descriptors that were open when it came up. */
    if (descriptor >= 0 && descriptor < (int)sizeof was_told)
        was_told[descriptor] = atomic_load(&broken_file) != 0;
    if (descriptor < 0 || !(flags & (O_CREAT | O_TRUNC)))
        return descriptor;
    before = errno;
    if (path_of(descriptor, path, &file)) {
        if (!was_there)
            note(CREATE, file, 0, path, NULL, NULL, 0);
        else if (flags & O_TRUNC)
            note(TRUNCATE, file, 0, path, NULL, NULL, 0);
    }
    errno = before;
    return descriptor;
}

#define MODE(flags)                                                                                                    \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = va_arg(more, mode_t);                                                                                   \
        va_end(more);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return open_file(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return open_file(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    return open_file(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags)
    return open_file(at, path, flags | O_LARGEFILE, mode);
}

/* A descriptor that is used again is another one. */
int close(int descriptor) {
    if (descriptor >= 0 && descriptor < (int)sizeof was_told)
        was_told[descriptor] = 0;
    return (int)syscall(SYS_close, descriptor);
}

int rename(const char *from, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    int is_ours = absolute(AT_FDCWD, from, old), is_target = absolute(AT_FDCWD, to, new);
    if (is_ours && is_target && has_failed(RENAMING, old))
        return -1;
    int done = (int)syscall(SYS_rename, from, to);
    if (!done && is_ours && is_target)
        note(RENAME, 0, 0, old, new, NULL, 0);
    return done;
}

static int remove_name(int at, const char *name, int flags) {
    char path[PATH_MAX];
    int is_ours = absolute(at, name, path);
    int done = (int)syscall(SYS_unlinkat, at, name, flags);
    if (!done && is_ours)
        note(UNLINK, 0, 0, path, NULL, NULL, 0);
    return done;
}

int unlink(const char *path) { return remove_name(AT_FDCWD, path, 0); }

int unlinkat(int at, const char *path, int flags) { return remove_name(at, path, flags); }

int rmdir(const char *path) { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char *name, mode_t mode) {
    char path[PATH_MAX];
    int is_ours = absolute(AT_FDCWD, name, path);
    int done = (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (!done && is_ours)
        note(MAKE_FOLDER, 0, 0, path, NULL, NULL, 0);
    return done;
}
