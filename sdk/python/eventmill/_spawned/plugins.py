"""The package `plugins` where no server has made it: in a process that multiprocessing spawned for a tool, with its parent's path."""

import os
import sys

sys.pycache_prefix = sys.pycache_prefix or os.environ.get("MORTISE_PYCACHE")
_sdk = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_path = sys.path[:]
sys.path.insert(0, _sdk)
try:
    from eventmill._shim.tree import join  # noqa: E402
finally:
    sys.path[:] = _path

join()
