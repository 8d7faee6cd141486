"""host.utils: go on with the rest where one item fails."""

from __future__ import annotations

import inspect

from .host import Fixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generator, Iterable


class Pair(tuple):  # type: ignore[type-arg]
    """(results, [(item, exception)]), which may be awaited as well."""

    def __await__(self) -> Generator[Any, Any, Pair]:
        return self
        yield  # makes it a generator


class Utils(Fixed):
    """Works through items in their order, one at a time.

    A function that is a coroutine makes the whole one that has to be awaited;
    with any other the pair is there at once. After max_errors failures the
    remaining items are left alone.
    """

    __slots__ = ()

    def map_safe(self, items: Iterable[Any], fn: Callable[[Any], Any], max_errors: int | None = None) -> Any:
        """Return what fn made of the items, and (item, exception) for each that it failed on."""
        return _work(items, fn, _checked(max_errors), lambda item, value: [value])

    def filter_safe(self, items: Iterable[Any], predicate: Callable[[Any], Any], max_errors: int | None = None) -> Any:
        """Return the items that the predicate holds for, and (item, exception) for each that it failed on."""
        return _work(items, predicate, _checked(max_errors), lambda item, value: [item] if value else [])


def _checked(max_errors: int | None) -> int | None:
    if max_errors is not None and max_errors < 1:
        raise ValueError(f"max_errors must be at least 1, not {max_errors}")
    return max_errors


def _work(items: Iterable[Any], fn: Callable[[Any], Any], max_errors: int | None, kept: Callable[[Any, Any], list[Any]]) -> Any:
    work = iter(items)
    results: list[Any] = []
    errors: list[tuple[Any, Exception]] = []

    def full() -> bool:
        return max_errors is not None and len(errors) >= max_errors

    async def rest(item: Any, value: Any) -> Pair:
        """Go on from an item whose value has to be awaited."""
        while True:
            try:
                results.extend(kept(item, await value if inspect.isawaitable(value) else value))
            except Exception as exc:
                errors.append((item, exc))
            while True:
                if full():
                    return Pair((results, errors))
                try:
                    item = next(work)
                except StopIteration:
                    return Pair((results, errors))
                try:
                    value = fn(item)
                except Exception as exc:
                    errors.append((item, exc))
                else:
                    break

    for item in work:
        try:
            value = fn(item)
            if inspect.isawaitable(value):
                return rest(item, value)
            results.extend(kept(item, value))
        except Exception as exc:
            errors.append((item, exc))
            if full():
                break
    return Pair((results, errors))
