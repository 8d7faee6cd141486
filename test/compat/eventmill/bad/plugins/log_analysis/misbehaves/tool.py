"""Everything that a tool should not do, one thing a call."""

import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from framework.plugins.protocol import ToolResult, ValidationResult


@dataclass
class OwnResult:
    ok: bool
    result: Any = None


class Misbehaves:
    def metadata(self):
        return {"tool_name": "misbehaves", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=hasattr(self, "do_" + payload.get("do", "")), errors=["do what?"])

    def execute(self, payload, context):
        return getattr(self, "do_" + payload["do"])(payload, context)

    def summarize_for_llm(self, result):
        how = (result.result or {}).get("summary")
        if how == "raises":
            raise RuntimeError("no summary today")
        if how == "exits":
            sys.exit(1)
        if how == "large":
            return "s" * (1 << 20)
        if how == "number":
            return 7
        return "done"

    def fine(self, **more):
        return ToolResult(ok=True, result=more or {"done": True})

    def do_prints(self, payload, context):
        for _ in range(20):
            print("p" * (1 << 20))
            sys.stdout.buffer.write(b"\x00\xff" * 1000)
            sys.__stdout__.write("also here\n")
            os.write(1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        os.system("echo a child prints too")
        return self.fine()

    def do_logs(self, payload, context):
        for n in range(3000):
            context.logger.warning("record %d %s", n, "x" * 2000)
        return self.fine()

    def do_none(self, payload, context):
        return None

    def do_a_set(self, payload, context):
        return {"ok", "result"}

    def do_set_within(self, payload, context):
        return self.fine(addresses={"10.0.0.2", "10.0.0.1"})

    def do_class_itself(self, payload, context):
        return ToolResult

    def do_generator(self, payload, context):
        yield self.fine()

    def do_lock_within(self, payload, context):
        return self.fine(lock=threading.Lock())

    def do_itself_within(self, payload, context):
        found = {}
        found["again"] = found
        return self.fine(**found)

    def do_list_result(self, payload, context):
        return OwnResult(True, [1, 2, 3])

    def do_summary(self, payload, context):
        return self.fine(summary=payload["how"])

    def do_result_large(self, payload, context):
        return self.fine(lines=["x" * 1000] * 20_000)

    def do_sys_exit(self, payload, context):
        sys.exit(3)

    def do_os_exit(self, payload, context):
        os._exit(0)

    def do_kill(self, payload, context):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_segfault(self, payload, context):
        ctypes.string_at(0)

    def do_closes_descriptors(self, payload, context):
        os.closerange(0, 256)
        return self.fine()

    def do_recursion(self, payload, context):
        return self.do_recursion(payload, context)

    def do_raises_strange(self, payload, context):
        class Strange(BaseException):
            def __str__(self):
                raise ValueError("not even a text")

        raise Strange

    def do_memory(self, payload, context):
        kept = []
        while True:
            kept.append(bytearray(64 << 20))

    def do_sleep(self, payload, context):
        print("it sleeps", flush=True)
        time.sleep(float(payload.get("seconds", 60)))
        return self.fine()

    def do_sleeps_through(self, payload, context):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                time.sleep(60)
            except BaseException:
                pass
        return self.fine()

    def do_spins(self, payload, context):
        while True:
            pass

    def do_thread(self, payload, context):
        def work():
            while True:
                time.sleep(0.01)
                context.logger.info("still here")

        threading.Thread(target=work).start()
        return self.fine()

    def do_fork(self, payload, context):
        if os.fork() == 0:
            return self.fine(child=True)
        return self.fine(child=False)

    def do_fork_bomb(self, payload, context):
        try:
            for _ in range(100_000):
                if os.fork() == 0:
                    time.sleep(60)
        except OSError as exc:
            return self.fine(refused=type(exc).__name__)
        return self.fine()

    def do_signals(self, payload, context):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.chdir("/")
        sys.path.clear()
        os.environ.clear()
        return self.fine()

    def do_fills(self, payload, context):
        try:
            with open("filler", "wb") as file:
                while True:
                    file.write(b"f" * (1 << 20))
        except OSError as exc:
            return ToolResult(ok=False, error_code="EXECUTION_ERROR", message=f"{type(exc).__name__}: {exc.strerror}")
        finally:
            if payload.get("tidy"):
                os.unlink("filler")

    def do_writes_artifact(self, payload, context):
        path = context.artifacts[0].file_path
        try:
            with open(path, "ab") as file:
                file.write(b"forged")
        except OSError as exc:
            return ToolResult(ok=False, error_code="PERMISSION_DENIED", message=type(exc).__name__)
        return self.fine()

    def do_removes_artifact(self, payload, context):
        try:
            os.chmod(os.path.dirname(context.artifacts[0].file_path), 0o700)
            os.unlink(context.artifacts[0].file_path)
        except OSError as exc:
            return ToolResult(ok=False, error_code="PERMISSION_DENIED", message=type(exc).__name__)
        return self.fine()

    def do_register(self, payload, context):
        kind = payload.get("kind")
        path = "made.txt"
        if kind in ("directory", "link_to_directory"):
            path = "made"
            os.makedirs(path, exist_ok=True)
        elif kind == "fifo":
            os.mkfifo("pipe")
            path = "pipe"
        elif kind == "outside":
            path = "../../../../../../../../../etc/passwd"
        elif kind == "absolute":
            path = "/etc/passwd"
        elif kind == "at":
            path = payload["path"]
        elif kind == "link":
            os.symlink("/etc/passwd", "passwd.txt")
            path = "passwd.txt"
        elif kind == "loop":
            os.symlink("round.txt", "round.txt")
            path = "round.txt"
        elif kind == "device":
            path = "/dev/zero"
        elif kind == "proc":
            path = "/proc/self/environ"
        elif kind == "empty_name":
            path = ""
        elif kind == "nothing":
            path = None
        elif kind == "deleted":
            open(path, "w").close()
            os.unlink(path)
        elif kind == "named":
            path = os.fsdecode(payload["name"].encode("latin-1"))
            with open(os.fsencode(path), "w") as file:
                file.write("named")
        else:
            with open(path, "w") as file:
                file.write("made")
        metadata = {"note": "m" * int(payload.get("metadata", 0))} if payload.get("metadata") else {}
        ref = context.register_artifact(artifact_type="text", file_path=path, source_tool="misbehaves", metadata=metadata)
        return self.fine(type=ref.artifact_type, name=os.path.basename(ref.file_path))

    def do_registers_many(self, payload, context):
        for n in range(int(payload["count"])):
            name = f"many-{payload.get('batch', 0)}-{n}.txt"
            with open(name, "w") as file:
                file.write(name)
            context.register_artifact(artifact_type="text", file_path=name, source_tool="misbehaves", metadata={"n": n})
        return self.fine(registered=int(payload["count"]))
