"""Fills a directory with the bytecode of what a Python plugin imports first.

Arguments: the directory to fill, then directories of modules of the SDK. Nothing
is imported, which would take longer than the rest. Bytecode that the interpreter
itself has and would use is copied; what it lacks is compiled.
"""

import sys

sys.dont_write_bytecode = True

import importlib.util
import os
import py_compile

filled, *directories = sys.argv[1:]

# Modules of the standard library, and packages of it with their own modules, that the SDK and most plugins import. What one
# version of Python lacks, another has.
STANDARD = """__future__ _collections_abc _colorize _compat_pickle _compression _markupbase _pydatetime _pydecimal _sitebuiltins
_strptime _threading_local _weakrefset abc annotationlib argparse ast asyncio base64 bisect bz2 calendar codecs collections
concurrent concurrent/futures contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis email
encodings/__init__ encodings/aliases encodings/ascii encodings/idna encodings/latin_1 encodings/utf_8 enum fnmatch fractions
functools genericpath gettext glob gzip hashlib heapq html http/__init__ http/client importlib inspect io ipaddress json
keyword linecache locale logging/__init__ lzma numbers opcode operator os pathlib pkgutil platform posixpath pprint py_compile
queue quopri random re reprlib selectors shutil signal site socket sqlite3 sre_compile sre_constants sre_parse ssl stat
statistics string struct subprocess tempfile textwrap threading token tokenize traceback types typing unittest/__init__
unittest/case unittest/loader unittest/main unittest/mock unittest/result unittest/runner unittest/signals unittest/suite
unittest/util urllib uuid warnings weakref xml xml/etree xml/parsers zipfile zoneinfo"""


def sources(path):
    """Yields the files of a module, or of a package without the packages in it."""
    if os.path.isfile(path + ".py"):
        yield path + ".py"
    elif os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            if name.endswith(".py") and "windows" not in name:
                yield os.path.join(path, name)


def valid(cached, source):
    """Reports whether the interpreter would take this bytecode for that source: by its magic number, time and size."""
    try:
        with open(cached, "rb") as f:
            head = f.read(16)
        stat = os.stat(source)
    except OSError:
        return False
    said = [int.from_bytes(head[i : i + 4], "little") for i in (4, 8, 12)]
    return head[:4] == importlib.util.MAGIC_NUMBER and said == [0, int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF]


def keep(source):
    sys.pycache_prefix = None
    cached = importlib.util.cache_from_source(source)
    sys.pycache_prefix = filled
    target = importlib.util.cache_from_source(source)
    if valid(target, source):
        return
    if not valid(cached, source):
        py_compile.compile(source, cfile=target, quiet=2)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(cached, "rb") as f:
        code = f.read()
    unfinished = "%s.%d" % (target, os.getpid())
    with open(unfinished, "wb") as f:
        f.write(code)
    os.replace(unfinished, target)


library = os.path.dirname(os.__file__)
found = [source for name in STANDARD.split() for source in sources(os.path.join(library, name))]
for directory in directories:
    for parent, _, _ in os.walk(directory):
        found.extend(sources(parent))
for source in found:
    try:
        keep(source)
    except (OSError, ValueError):
        pass  # a plugin compiles this one itself
