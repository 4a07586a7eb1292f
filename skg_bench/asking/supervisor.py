"""Runs a command until it ends or standard input is closed: python supervisor.py FOLDER INPUT COMMAND...

Standard input is a pipe from the run. It closes when the run ends, however that ends, also by `kill -9`. The command
and all that it has started are then killed, and the folder is removed. The command reads from the inherited descriptor
INPUT; `-`: from nothing. Only the standard library is imported, to start fast.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading


def main() -> int:
    """Exit code of the command."""
    folder, source, *command = sys.argv[1:]
    given = subprocess.DEVNULL if source == "-" else int(source)
    try:
        child = subprocess.Popen(command, stdin=given, start_new_session=True)  # noqa: S603
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 127
    os.dup2(2, 1)  # the command alone holds its output, so that a reader sees where it ends
    if given >= 0:
        os.close(given)

    def end() -> None:
        sys.stdin.buffer.read()
        _kill(child.pid)

    threading.Thread(target=end, daemon=True).start()
    code = child.wait()
    _kill(child.pid)  # what it has left behind
    with open(os.path.join(folder, "ended"), "w", encoding="ascii") as file:  # noqa: PTH118, PTH123
        file.write(str(code))
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    return code


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main())
