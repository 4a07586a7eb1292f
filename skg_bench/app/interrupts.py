"""Ctrl-C and SIGTERM: the first one ends the command cleanly, a second one at once."""

import os
import select
import signal
import sys
from threading import Timer, main_thread
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

CODE = 130  # as shells have it for Ctrl-C
_SOON = 0.01  # seconds


def install_handlers() -> None:
    """Both signals raise KeyboardInterrupt; from then on they end the process. An ignored signal stays ignored."""
    for signum, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(signum) == default:
            signal.signal(signum, _first)
            sys.unraisablehook = _unraisable


def _unraisable(lost: "UnraisableHookArgs") -> None:
    """Send a signal again whose KeyboardInterrupt was raised while Python destroyed an object, which ignores it."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
    elif not sys.is_finalizing():
        for signum in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(signum) is _again:
                signal.signal(signum, _first)
        Timer(_SOON, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()


def _first(_number: int, _frame: FrameType | None) -> NoReturn:
    for signum in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) is _first:
            signal.signal(signum, _again)
    raise KeyboardInterrupt


def _again(_number: int, _frame: FrameType | None) -> NoReturn:
    """Kill all child processes and leave, without waiting for anything. The next run removes what is half done."""
    try:
        if processes := sys.modules.get("multiprocessing.process"):
            for child in processes.active_children():
                child.kill()
        if sys.stdout.isatty() and select.select([], [1], [], 0)[1]:
            os.write(1, b"\x1b[?25h\n")  # a progress bar hides the cursor
    finally:
        os._exit(CODE)
