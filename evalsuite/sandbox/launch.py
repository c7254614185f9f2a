"""A separate program, which enters a new user namespace and then replaces itself by bubblewrap.

Without `launch.py`, bubblewrap would make a namespace that has only one user. If root starts bubblewrap, the
namespace's only user is root. The kernel does not count root's processes, so it would not limit them. `launch.py`
therefore maps a second, unprivileged user for programs if root starts it; otherwise it maps only the current user.
"""

import ctypes
import os
import sys

NEW_USERS = 0x10000000
NOBODY = 65534


def main(command: list[str]) -> None:
    """Replace this process by `command` in a new user namespace; raise OSError if the namespace cannot be made."""
    user, group = os.geteuid(), os.getegid()
    ready, entered = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(entered)
        os._exit(_map_users(os.getppid(), user, group) if os.read(ready, 1) else 1)
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USERS):
        raise OSError(ctypes.get_errno(), "a new user namespace: " + os.strerror(ctypes.get_errno()))
    os.write(entered, b"!")
    if os.waitpid(helper, 0)[1]:
        raise OSError("the users of a new user namespace could not be set")
    os.close(ready)
    os.close(entered)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


def _map_users(process: int, user: int, group: int) -> int:
    """Map the user and group of a process into its namespace; return 1 if the kernel refuses, otherwise 0."""
    with_nobody = {"uid_map": f"0 0 1\n1 {NOBODY} 1", "gid_map": f"0 0 1\n1 {NOBODY} 1"}
    alone = {"setgroups": "deny", "uid_map": f"0 {user} 1", "gid_map": f"0 {group} 1"}
    for texts in (with_nobody, alone) if user == 0 else (alone,):
        try:
            for name, text in texts.items():
                _write_process_file(process, name, text)
        except OSError as error:
            if texts is alone:
                os.write(2, f"{error}\n".encode())
        else:
            return 0
    return 1


def _write_process_file(process: int, name: str, text: str) -> None:
    with open(f"/proc/{process}/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib loads slowly
        file.write(text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error}")
