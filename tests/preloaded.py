"""File systems that refuse: libraries in C that fail in place of the system, for LD_PRELOAD.

They fail in all libraries of a process alike, HDF5's among them, and need no special disk.
"""

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

int flock(int fd, int operation) { errno = FAILURE; return -1; }

#define CONTROL(name)                                                        \\
    int name(int fd, int command, ...) {                                     \\
        va_list list; va_start(list, command);                               \\
        void *argument = va_arg(list, void *); va_end(list);                 \\
        if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) \\
            { errno = FAILURE; return -1; }                                  \\
        int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name);                \\
        return real(fd, command, argument);                                  \\
    }
CONTROL(fcntl)
CONTROL(fcntl64)
"""
"""No locks."""
ROOM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int full(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, FOLDER) != NULL;
}
#define WRITE(name, arguments, names)                   \\
    ssize_t name arguments {                            \\
        if (full(fd)) { errno = FAILURE; return -1; }   \\
        ssize_t (*real) arguments = dlsym(RTLD_NEXT, #name); \\
        return real names;                              \\
    }
WRITE(write, (int fd, const void *data, size_t size), (fd, data, size))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRITE(pwrite64, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))

#define OPEN(name)                                                       \\
    int name(const char *path, int flags, ...) {                         \\
        va_list list; va_start(list, flags);                             \\
        mode_t mode = va_arg(list, int); va_end(list);                   \\
        if (AT_CREATION && (flags & O_CREAT) && strstr(path, FOLDER))    \\
            { errno = FAILURE; return -1; }                              \\
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);   \\
        return real(path, flags, mode);                                  \\
    }
OPEN(open)
OPEN(open64)
"""
"""A folder without room, at the creation of a file or only for its content."""


KILL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

int rename(const char *from, const char *to) {
    if (strstr(to, FILE_NAME)) kill(WHOLE_GROUP ? 0 : getpid(), SIGKILL);
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}
"""
"""A process, or all of its group, is killed before a file gets its name."""


def no_locks(folder: Path, error: int = errno.ENOLCK) -> dict[str, str]:
    """Environment variables of a process in which every lock fails with an error."""
    return _preload(folder / "locks.so", LOCKS, FAILURE=error)


def no_room(folder: Path, part: str, error: int, at_creation: bool = False) -> dict[str, str]:
    """Environment variables of a process that cannot write where a path contains a text."""
    macros = {"FAILURE": error, "FOLDER": f'"{part}"', "AT_CREATION": int(at_creation)}
    return _preload(folder / "room.so", ROOM, **macros)


def killed_at_rename(folder: Path, part: str, whole_group: bool = False) -> dict[str, str]:
    """Environment variables of a process that dies where it renames a file to such a path."""
    macros = {"FILE_NAME": f'"{part}"', "WHOLE_GROUP": int(whole_group)}
    return _preload(folder / "kill.so", KILL, **macros)


def _preload(library: Path, source: str, **macros: object) -> dict[str, str]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C here")
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    order = [compiler, "-x", "c", "-shared", "-fPIC", *defined, "-o", str(library), "-", "-ldl"]
    subprocess.run(order, input=source, text=True, check=True)
    return {"LD_PRELOAD": str(library)}
