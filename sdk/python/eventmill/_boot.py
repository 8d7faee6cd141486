"""Serve a package of Event Mill tools: python3 -I -S -X pycache_prefix=DIR .../eventmill/_boot.py PACKAGE

A script is compiled at every start, so there is little here; see _shim. What
multiprocessing spawns runs it again and needs none of it; see _spawned.
"""

import os
import sys

if __name__ == "__main__":
    _kit = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.dirname(_kit))

    if sys.flags.no_site:
        from mortise._sites import add

        add()

    from eventmill._shim.server import start

    start(sys.argv[1:], _kit)
