"""A hostile plugin in Python: what goes wrong in this language in a way of its own.

It uses no SDK. The session's name says what it does: "dies|11" is the behaviour
dies with the parameter 11. Started with "list" it prints their names.
"""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

out = sys.stdout.buffer


def hear():
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def say(text):
    out.write(text.encode("utf-8", "surrogatepass") + b"\n")
    out.flush()


def answer(value="1"):
    say('{"jsonrpc":"2.0","id":%s,"result":{"status":"succeeded","data":%s}}' % (call["id"], value))


def await_call():
    while True:
        message = hear()
        if message.get("method") == "execute":
            return message
        if message.get("method") == "describe":
            say('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}' % message["id"])
        if message.get("method") == "shutdown":
            say('{"jsonrpc":"2.0","id":%s,"result":{}}' % message["id"])


def rest(value="1"):
    global call
    answer(value)
    while True:
        call = await_call()
        answer()


def forever():
    time.sleep(3600)


def dies(n):
    signal.signal(n, signal.SIG_DFL) if n not in (9, 19) else None
    os.kill(os.getpid(), n)
    time.sleep(0.3)
    forever()


def segfault(_):
    import ctypes

    ctypes.string_at(0)


def recursion(_):
    def down(n):
        return down(n + 1) + 1

    down(0)


def deep_recursion(_):
    sys.setrecursionlimit(10**8)
    threading.stack_size(16 << 20)

    def down(n):
        return repr([down(n + 1)])

    thread = threading.Thread(target=down, args=(0,))
    thread.start()
    thread.join()
    forever()


def not_a_number(n):
    rest(json.dumps([float("nan"), float("inf"), float("-inf")][n]))


def surrogate(n):
    rest(json.dumps(["\ud800", "\udfff", "a\ud83d"][n], ensure_ascii=n != 1))


def prints(n):
    print(["debug", "{'a': 1}", "", "\u2028", "Traceback (most recent call last):"][n], flush=True)
    rest()


def raises(n):
    raise [ValueError, KeyError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit][n]("on purpose")


def exits_in_a_thread(_):
    threading.Thread(target=lambda: sys.exit(3)).start()
    rest()


def thread_lives_on(_):
    threading.Thread(target=forever).start()
    sys.exit(0)


def exits_at_last(_):
    import atexit

    atexit.register(forever)
    sys.exit(0)


def buffered(_):
    out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"status":"succeeded","data":1}}\n' % call["id"])
    forever()  # and never flushes


def buffered_exits(_):
    out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"status":"succeeded","data":1}}\n' % call["id"])
    os._exit(0)


def regex(_):
    re.match(r"(a+)+$", "a" * 64 + "b")
    rest()


def large_integer(_):
    10 ** (10**9)
    rest()


def busy(_):
    while True:
        pass


def busy_threads(n):
    for _ in range(n):
        threading.Thread(target=busy, args=(0,), daemon=True).start()
    busy(0)


def forks(n):
    pid = os.fork()
    if pid == 0:
        os.setsid() if n else None
        if os.fork() == 0:
            forever()
        os._exit(0)
    rest()


def fork_answers(_):
    if os.fork() == 0:
        answer()
        os._exit(0)
    forever()


def fork_both_answer(_):
    os.fork()
    rest()


def becomes(_):
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)"])


def closes(n):
    os.close(n)
    time.sleep(0.1)
    forever()


def dup(_):
    os.dup2(2, 1)
    rest()


def asks_for_input(_):
    threading.Thread(target=sys.stdin.buffer.read, daemon=True).start()
    forever()


def subprocess_speaks(_):
    subprocess.run([sys.executable, "-c", "print('hello from below')"], check=False)
    rest()


def nested_json(n):
    rest("[" * n + "]" * n)


def garbage(_):
    while True:
        cycle = [[]]
        cycle[0].append(cycle)
        gc.collect()


def memory(n):
    held = []
    while True:
        held.append(bytearray(n << 10) if n else "x" * 1000000)


def lists(_):
    held = []
    while True:
        held.append([0] * 100000)


def threads(_):
    threading.stack_size(64 << 10)
    started = 0
    try:
        while started < 20000:
            threading.Thread(target=forever, daemon=True).start()
            started += 1
    except (RuntimeError, MemoryError):
        pass
    forever()


def sockets(n):
    import socket

    try:
        socket.socket([socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_PACKET][n]).connect(
            [("127.0.0.1", 22), ("::1", 22), "/run/docker.sock", ("lo", 0)][n]
        )
    except OSError as refused:
        rest(json.dumps(str(refused)))
    os._exit(98)


def compiled(_):
    try:
        with open(__file__, "a") as own:
            own.write("# changed\n")
    except OSError as refused:
        rest(json.dumps(str(refused)))
    os._exit(98)


behaviours = {
    "good": lambda _: rest(),
    "dies": dies,
    "segfault": segfault,
    "recursion": recursion,
    "deep recursion": deep_recursion,
    "not a number": not_a_number,
    "surrogate": surrogate,
    "prints": prints,
    "raises": raises,
    "exits in a thread": exits_in_a_thread,
    "thread lives on": thread_lives_on,
    "exits at last": exits_at_last,
    "buffered": buffered,
    "buffered, exits": buffered_exits,
    "regex": regex,
    "large integer": large_integer,
    "busy": busy,
    "busy threads": busy_threads,
    "forks": forks,
    "fork answers": fork_answers,
    "fork, both answer": fork_both_answer,
    "becomes another": becomes,
    "closes": closes,
    "stdout to stderr": dup,
    "another reader": asks_for_input,
    "a child speaks": subprocess_speaks,
    "nested": nested_json,
    "garbage": garbage,
    "memory bomb": memory,
    "list bomb": lists,
    "thread bomb": threads,
    "sockets": sockets,
    "changes its file": compiled,
}

if sys.argv[1:] == ["list"]:
    print("\n".join(sorted(behaviours)))
    sys.exit(0)

first = hear()
name, _, parameter = first["params"]["scope"]["id"].partition("~")[2].partition("|")
say('{"jsonrpc":"2.0","id":%s,"result":{"protocol":"2","plugins":[{"name":"hostile.python","version":"1.0.0"}],"concurrency":4}}' % first["id"])
call = await_call()
if name not in behaviours:
    print("there is no behaviour %r" % name, file=sys.stderr)
    sys.exit(99)
behaviours[name](int(parameter or 0))
