"""The floor of table E: a tool's class in a plain interpreter, without a host.

python3 mill.py KIT TOOL LOG COUNT  answers each line on standard input, a
payload in JSON, with how long validate_inputs, execute and summarize_for_llm
took, in nanoseconds, and the number that stands at COUNT in the result, names
of members with dots between them.
"""

import functools
import importlib
import json
import logging
import os
import sys
import time

kit, directory, log, count = sys.argv[1:]
sys.path[:0] = [kit, directory]

from framework.plugins.protocol import ArtifactRef, ExecutionContext  # noqa: E402

with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
    manifest = json.load(file)

context = ExecutionContext(
    session_id="sess_000000000000",
    selected_pillar="log_analysis",
    artifacts=[ArtifactRef("art_00000000", "log_stream", log)],
    config={},
    logger=logging.getLogger("eventmill.plugin." + manifest["tool_name"]),
    reference_data={},
    llm_enabled=False,
    llm_query=None,
    register_artifact=None,
    limits={},
)
instance = getattr(importlib.import_module("tool"), manifest["class_name"])()
for line in sys.stdin:
    payload = json.loads(line)
    begin = time.perf_counter_ns()
    if not instance.validate_inputs(payload).ok:
        sys.exit("the payload was refused")
    result = instance.execute(payload, context)
    if not result.ok or not instance.summarize_for_llm(result):
        sys.exit(result.message)
    took = time.perf_counter_ns() - begin
    print(took, functools.reduce(dict.__getitem__, count.split("."), result.result), flush=True)
