"""Fills a directory with the bytecode of what every Python plugin imports.

Arguments: the directory of the SDK, the directory to fill. Bytecode that the
interpreter itself has and would use is copied; the rest is compiled.
"""

import sys

sys.dont_write_bytecode = True

import importlib
import importlib.util
import os
import pkgutil
import py_compile

sdk, filled = sys.argv[1:]

STANDARD = """abc argparse asyncio base64 collections contextlib csv dataclasses datetime decimal email enum functools
glob gzip hashlib heapq html html.parser inspect io itertools json logging math operator os pathlib random re shutil
sqlite3 statistics string subprocess tempfile textwrap threading time traceback types typing unicodedata urllib.parse
urllib.request uuid xml.etree.ElementTree zipfile zlib"""


def load(name):
    """Imports a module. What one interpreter lacks, others have."""
    try:
        return importlib.import_module(name)
    except BaseException:
        return None


def load_package(name):
    package = load(name)
    for module in pkgutil.walk_packages(package.__path__, name + ".") if package else ():
        if module.name not in ("mortise._boot", "mortise.__main__"):
            load(module.name)


def valid(cached, source):
    """Reports whether the interpreter would take this bytecode for that source: by its magic number, time and size."""
    try:
        with open(cached, "rb") as f:
            head = f.read(16)
        stat = os.stat(source)
    except OSError:
        return None
    said = [int.from_bytes(head[i : i + 4], "little") for i in (4, 8, 12)]
    return head[:4] == importlib.util.MAGIC_NUMBER and said == [0, int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF]


def keep(source, cached):
    sys.pycache_prefix = filled
    target = importlib.util.cache_from_source(source)
    sys.pycache_prefix = None
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


for part, packages in (("", "mortise"), ("eventmill", "framework eventmill._shim"), ("shu", "_shim shu_plugin_sdk")):
    sys.path.insert(0, os.path.join(sdk, part))
    for package in packages.split():
        load_package(package)
for name in STANDARD.split():
    load(name)
for module in list(sys.modules.values()):
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.has_location and str(spec.origin).endswith(".py"):
        try:
            keep(spec.origin, spec.cached)
        except OSError:
            pass  # a plugin compiles this one itself
