"""From the first instruction to the plugin's own code, and out again.

Standard output belongs to the protocol, so the descriptors move before any
code of the plugin's loads: whatever is printed afterwards, by Python, by C or
by a child process, goes to standard error.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_claimed: tuple[int, int] | None = None
served = False  # whether a plugin's run was called
_joined = False
_PYCACHE = "MORTISE_PYCACHE"  # multiprocessing hands neither options nor what was set here on to the processes it spawns


def claimed() -> bool:
    """Report whether the descriptors have moved already."""
    return _claimed is not None


def claim() -> tuple[int, int]:
    """Move the protocol to private descriptors, once; return (read, write)."""
    global _claimed
    if _claimed is None:
        read, write = os.dup(0), os.dup(1)  # not inherited by children
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        if sys.stdout is not None:
            sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[attr-defined]
        _ignore_interrupts()
        _claimed = read, write
        if sys.pycache_prefix:
            os.environ[_PYCACHE] = sys.pycache_prefix
        _add_exit()
    return _claimed


def _add_exit() -> None:
    """Add `exit` and `quit`, which are of module site and not of the language."""
    import builtins

    for name in ("exit", "quit"):
        if not hasattr(builtins, name):
            setattr(builtins, name, sys.exit)


def _ignore_interrupts() -> None:
    """Leave SIGINT to the host; by a handler rather than SIG_IGN, which children would inherit."""
    import _signal  # type: ignore[import]  # the module `signal` without its enums, which cost a millisecond

    try:
        _signal.signal(_signal.SIGINT, lambda *_: None)
    except ValueError:  # not in the main thread
        pass


def spawned() -> bool:
    """Report whether multiprocessing is about to run a plugin's file again, in a process that it spawned."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and hasattr(process.current_process(), "_inheriting")


def join() -> None:
    """Be to a plugin's code in a spawned process what its parent is; of the protocol there is nothing here."""
    global _joined
    if _joined:
        return
    _joined = True
    prefix = os.environ.get(_PYCACHE)
    if prefix:
        from ._sites import directories, read_bytecode

        sys.pycache_prefix = prefix
        read_bytecode(directories())
    _add_exit()


def prefer_fork() -> None:
    """Make multiprocessing fork if it is loaded and no method is set: its default since 3.14, forkserver, needs a socket."""
    default = getattr(sys.modules.get("multiprocessing.context"), "_default_context", None)
    try:
        if default._actual_context is None and default._default_context.get_start_method() == "forkserver":
            default._default_context = default.get_context("fork")
    except AttributeError:  # not loaded, or another one
        pass


def leave(status: int, message: str = "") -> NoReturn:
    """End the process at once, whatever threads still run; exit handlers have their turn."""
    import atexit

    try:
        if message:
            print(message, file=sys.stderr)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        os._exit(status)


def start(argv: list[str], sdk: str) -> None:
    """Run the plugin file argv[0] as __main__ and leave when it ends."""
    if not argv:
        leave(2, "usage: python3 -I _boot.py PLUGIN.py")
    entry = os.path.abspath(argv[0])
    claim()
    import mortise  # noqa: F401  loaded before the plugin's folder is on the path

    sys.path.remove(sdk)
    sys.path[:0] = [os.path.dirname(entry), sdk]
    sys.argv[:] = [entry, *argv[1:]]

    # As runpy has it, without its imports and with the bytecode kept for the next start.
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", entry)
    main = vars(sys.modules["__main__"])
    main.clear()
    main.update(
        __name__="__main__",
        __file__=entry,
        __builtins__=sys.modules["builtins"],
        __loader__=loader,
        __spec__=None,
        __package__=None,
        __doc__=None,
    )
    try:
        exec(loader.get_code("__main__"), main)
    except SystemExit as exc:
        if exc.code is None or isinstance(exc.code, int):
            leave(exc.code or 0)
        leave(1, str(exc.code))
    except BaseException as exc:
        trace = exc.__traceback__
        sys.excepthook(type(exc), exc, trace and (trace.tb_next or trace))  # without the frame of start
        leave(1)
    if not served:
        leave(1, f"{entry} ended without serving: make plugin.run() its last line")
    leave(0)


if spawned():
    join()
