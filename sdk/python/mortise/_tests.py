"""Run a plugin's own tests: python3 -I -X pycache_prefix=DIR .../mortise/_tests.py KIND SDK PACKAGE ABOUT JUNIT FILE...

KIND is mortise, shu or eventmill; ABOUT is what the host knows of a Shu plugin, or the directory of an Event Mill tool;
JUNIT is a file for the results or empty. pytest runs them where it is installed, unittest where not. Tests that only
pytest can run end with status NEEDS_PYTEST and the line that says what to install.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import time
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from _pytest.config import Config

NEEDS_PYTEST = 69  # the program then fails with dependency_missing
NO_TESTS = 5  # as pytest has it


class Tree:
    """Where a plugin's modules stand: the dotted name that a directory has, if it has one."""

    def __init__(self, root: str = "", name: str = "") -> None:
        self.root = os.path.realpath(root) if root else ""
        self.name = name

    def module(self, file: str) -> str | None:
        """Return the name under which a file below the root is imported, None for one that has none."""
        real = os.path.realpath(file)
        if not self.name or not real.startswith(self.root + os.sep) or not real.endswith(".py"):
            return None
        steps = real[len(self.root) + 1 : -len(".py")].split(os.sep)
        if steps[-1] == "__init__":
            steps.pop()
        return ".".join([self.name, *steps]) if steps and all(step.isidentifier() for step in steps) else None


def main(argv: list[str]) -> int:
    """Run the tests and return the exit status."""
    kind, sdk, package, about, junit, *files = argv
    sys.path += filter(None, [str(sys._xoptions.get("user_site") or "")])
    sys.argv[:] = ["mortise test"]
    tree = _ready(kind, sdk, package, about)
    try:
        import pytest
    except ImportError:
        pytest = None  # type: ignore[assignment]
    if pytest is None:
        return _unittest(tree, junit, files)
    return int(_pytest(tree, junit, about if kind == "eventmill" else package, files))


def _ready(kind: str, sdk: str, package: str, about: str) -> Tree:
    """Put on the path what a plugin of this kind may import."""
    if kind == "shu":
        sys.path[:0] = [os.path.join(sdk, "shu"), sdk]
        about_of = importlib.import_module("_shim.about")
        load = importlib.import_module("_shim.load")
        own = load.Package(package, about_of.About(about))
        own.open()
        if own.parents:
            return Tree(package, own.parents[-1])
        return Tree()
    if kind == "eventmill":
        sys.path[:0] = [about, os.path.join(sdk, "eventmill"), sdk]
        if os.path.basename(package) == "plugins":
            sys.path.insert(1, os.path.dirname(package))
            return Tree(package, "plugins")
        return Tree()
    sys.path[:0] = [package, sdk]
    return Tree()


def _pytest(tree: Tree, junit: str, root: str, files: list[str]) -> int:
    """Run pytest, with test modules and conftest.py under the names that the plugin's own modules have."""
    import pytest

    class Names:
        """Imports the plugin's files under one name each, so that relative imports and patches mean the same module."""

        def pytest_configure(self, config: Config) -> None:
            config.addinivalue_line("markers", "asyncio: an async test")
            self.asyncio_mode(config)

        def asyncio_mode(self, config: Config) -> None:
            """Every async test is one for pytest-asyncio, unless its author's settings say otherwise."""
            known = config.pluginmanager.hasplugin("asyncio") and hasattr(config.option, "asyncio_mode")
            if known and config.option.asyncio_mode is None and "asyncio_mode" not in config.inicfg:
                config.option.asyncio_mode = "auto"

    names = Names()
    Names.pytest_configure = pytest.hookimpl(tryfirst=True)(Names.pytest_configure)  # type: ignore[method-assign]
    plugins: list[object] = [names]
    args = ["-q", "-p", "no:cacheprovider", "--rootdir", root, *files]
    if junit:
        args[:0] = ["--junitxml", junit]
    if importlib.util.find_spec("pytest_asyncio") is None:
        args[:0] = ["-p", "mortise._pytest_async"]
    _name_modules(tree)
    return pytest.main(args, plugins=plugins)


def _name_modules(tree: Tree) -> None:
    """Let pytest import what is below the tree's root by its dotted name; elsewhere it imports as it always does."""
    if not tree.name:
        return
    for place in ("_pytest.config", "_pytest.python"):
        module = importlib.import_module(place)
        original = getattr(module, "import_path", None)
        if original is None:
            continue

        def by_name(path: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            name = tree.module(str(path))
            if name is None:
                return original(path, *args, **kwargs)
            folder = os.path.dirname(str(path))
            if folder not in sys.path and not os.path.exists(os.path.join(folder, "__init__.py")):
                sys.path.insert(0, folder)  # for helpers beside the tests, as pytest does it
            return importlib.import_module(name)

        module.import_path = by_name  # type: ignore[attr-defined]


def _unittest(tree: Tree, junit: str, files: list[str]) -> int:
    """Run what unittest can: its own cases and plain functions, async ones too."""
    folders = list(dict.fromkeys(map(os.path.dirname, files)))
    around = [os.path.join(folder, "conftest.py") for folder in folders]
    needing = [file for file in [*filter(os.path.exists, around), *files] if _needs_pytest(file)]
    if needing:
        print(f"{', '.join(os.path.basename(file) for file in needing)}: written for pytest, which this Python has not", file=sys.stderr)
        print(f"install it with: {sys.executable} -m pip install pytest pytest-asyncio", file=sys.stderr)
        print("or, for the Python of Debian and Ubuntu: apt-get install python3-pytest python3-pytest-asyncio", file=sys.stderr)
        return NEEDS_PYTEST
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    for folder in folders:
        if folder not in sys.path:
            sys.path.insert(0, folder)
    for file in files:
        name = tree.module(file) or os.path.basename(file)[: -len(".py")]
        suite.addTests(loader.loadTestsFromName(name))
        suite.addTests(_functions(sys.modules.get(name)))
    if not suite.countTestCases():
        print("not one test was run", file=sys.stderr)
        return NO_TESTS
    result = unittest.TextTestRunner(resultclass=_Timed).run(suite)
    if junit:
        _write_junit(junit, result)
    return 0 if result.wasSuccessful() else 1


def _functions(module: Any) -> Iterator[unittest.TestCase]:
    """Yield a case for each test that is a function of a module."""
    for name, test in sorted(vars(module).items() if module else ()):
        if name.startswith("test") and inspect.isfunction(test) and test.__module__ == module.__name__:
            run = functools.partial(_to_end, test) if inspect.iscoroutinefunction(test) else test
            yield unittest.FunctionTestCase(functools.update_wrapper(functools.partial(run), test), description=f"{module.__name__}.{name}")


def _to_end(test: Any) -> None:
    asyncio.run(test())


def _needs_pytest(file: str) -> bool:
    """Report whether a file imports pytest, takes fixtures, or has test classes that are no TestCase."""
    try:
        with open(file, encoding="utf-8") as source:
            body = ast.parse(source.read(), file).body
    except (SyntaxError, ValueError):
        return False  # importing it says what is wrong
    for node in body:
        if isinstance(node, ast.Import) and any(name.name.split(".")[0].startswith("pytest") for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0].startswith("pytest"):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test") and _parameters(node):
            return True
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not node.bases:
            return True
    return False


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > len(node.args.defaults)


class _Timed(unittest.TextTestResult):
    """Keeps how each test ended and how long it took."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.took: list[tuple[str, float]] = []
        self._begun = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        self._begun = time.monotonic()
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        self.took.append((_title(test), time.monotonic() - self._begun))
        super().stopTest(test)


def _title(test: Any) -> str:
    return str(test._description) if isinstance(test, unittest.FunctionTestCase) else str(test.id())


def _write_junit(file: str, result: Any) -> None:
    """Write results as JUnit XML, in the form that pytest has."""
    from xml.etree import ElementTree as xml

    failed = {_title(test): ("failure", text) for test, text in result.failures}
    failed.update({_title(test): ("error", text) for test, text in result.errors})
    failed.update({_title(test): ("failure", "it was expected to fail, and passed") for test in result.unexpectedSuccesses})
    skipped = {_title(test): reason for test, reason in result.skipped}
    took = dict(result.took)
    took.update({title: 0.0 for title in failed if title not in took})  # a module that cannot be imported
    suite = xml.Element("testsuite", name="unittest", tests=str(len(took)), skipped=str(len(skipped)))
    suite.set("failures", str(sum(kind == "failure" for kind, _ in failed.values())))
    suite.set("errors", str(sum(kind == "error" for kind, _ in failed.values())))
    for title, seconds in took.items():
        where, _, name = title.rpartition(".")
        case = xml.SubElement(suite, "testcase", classname=where, name=name, time=f"{seconds:.3f}")
        if title in failed:
            kind, text = failed[title]
            xml.SubElement(case, kind, message=_printable(text.strip().splitlines()[-1:])).text = _printable([text])
        elif title in skipped:
            xml.SubElement(case, "skipped", message=_printable([skipped[title]]))
    root = xml.Element("testsuites")
    root.append(suite)
    xml.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def _printable(lines: list[str]) -> str:
    """Return text as XML can hold it."""
    return "".join(c if c in "\t\n" or c.isprintable() else "�" for c in "\n".join(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
