"""A plugin of pytest that runs async tests and fixtures where pytest-asyncio is not installed.

`mortise test` loads it with `-p mortise._pytest_async`. Every async test is run, marked or not, and every async fixture,
whichever decorator made it; one event loop serves them all, and what a test leaves running is cancelled after it.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import types

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Coroutine, Iterator

_loop: asyncio.AbstractEventLoop | None = None

# Test modules import pytest_asyncio for its decorator alone.
_stand_in = types.ModuleType("pytest_asyncio")
_stand_in.fixture = pytest.fixture  # type: ignore[attr-defined]
sys.modules.setdefault("pytest_asyncio", _stand_in)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return _current().run_until_complete(work)


def _current() -> asyncio.AbstractEventLoop:
    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop


def pytest_addoption(parser: Any) -> None:
    """Take the setting of pytest-asyncio, so that an author's file with it is no error."""
    parser.addini("asyncio_mode", "as pytest-asyncio has it; every async test is run", default="auto")


def pytest_unconfigure() -> None:
    """Close the loop."""
    global _loop
    if _loop is not None:
        _loop.run_until_complete(_loop.shutdown_asyncgens())
        _loop.close()
        _loop = None


@pytest.fixture
def event_loop() -> asyncio.AbstractEventLoop:
    """The loop that tests run in."""
    return _current()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run an async test to its end; None leaves any other to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    try:
        _run(pyfuncitem.obj(**given))
    finally:
        left = asyncio.all_tasks(_current())
        for task in left:
            task.cancel()
        if left:
            _run(_settled(left))
    return True


async def _settled(tasks: set[Any]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    """Let pytest see an async fixture as a plain one."""
    original = fixturedef.func
    if inspect.isasyncgenfunction(original):
        fixturedef.func = _generator(_bound(original, request))
    elif inspect.iscoroutinefunction(original):
        fixturedef.func = _function(_bound(original, request))
    yield
    fixturedef.func = original


def _bound(function: Any, request: Any) -> Any:
    """Return a fixture's method for the instance whose test runs."""
    plain = getattr(function, "__func__", function)
    instance = getattr(request, "instance", None)
    owner = getattr(function, "__self__", None)
    return plain.__get__(instance) if owner is not None and isinstance(instance, type(owner)) else function


def _function(work: Any) -> Any:
    def fixture(**given: Any) -> Any:
        return _run(work(**given))

    return fixture


def _generator(work: Any) -> Any:
    def fixture(**given: Any) -> Iterator[Any]:
        values = work(**given)
        yield _run(values.__anext__())
        try:
            _run(values.__anext__())
        except StopAsyncIteration:
            return
        raise RuntimeError("an async fixture yields once")

    return fixture
