"""Mines the line templates of text logs and lists the rare ones first.

The templates are found by the Drain algorithm (P. He, J. Zhu, Z. Zheng and
M. R. Lyu, "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS
2017); drain.py has it, reader.py has the lines. This file is the operation.
"""

from __future__ import annotations

from time import perf_counter

from drain import Miner, render
from mortise import Context, Plugin, PluginError, Result
from reader import Reader, Unreadable

TEMPLATE_CHARS = 1000  # of a template's text in the answer, so that an answer fits a frame

plugin = Plugin("pattern_extractor", version="1.0.0")


@plugin.tool
def pattern_extractor(
    artifacts: list,
    ctx: Context,
    depth: int = 4,
    similarity: float = 0.5,
    max_templates: int = 5000,
    limit: int = 50,
    min_count: int = 1,
    order: str = "rare",
    max_line_bytes: int = 8192,
) -> dict:
    """Mine line templates from text logs, rare ones first."""
    started = perf_counter()
    miner = Miner(depth, similarity, max_templates)
    names = _names(artifacts)
    readers = []
    try:
        for artifact in artifacts:  # a file that cannot be read is found before long work on the others
            readers.append(Reader(artifact["path"], max_line_bytes))
        total = sum(reader.size for reader in readers)
        done = 0
        for name, reader in zip(names, readers):
            miner.start_file(name)
            for text in reader:
                miner.add(text)
                ctx.check()
                ctx.progress("reading " + name, done=done + reader.position, total=total, unit="bytes")
            done += reader.size
    except Unreadable as err:
        raise PluginError(str(err), code=err.code, details={"path": err.path}) from None
    finally:
        for reader in readers:
            reader.close()

    found = miner.templates()
    elapsed = perf_counter() - started
    data = _answer(miner, names, readers, found, limit, min_count, order)
    text_bytes = data["totals"]["bytes"]
    speed = {
        "elapsed_ms": round(elapsed * 1000),
        "lines_per_second": round(miner.lines / elapsed),
        "mb_per_second": round(text_bytes / 1e6 / elapsed, 1),
    }
    return Result(data, metrics=dict(speed, lines=miner.lines, bytes=text_bytes), summary=_summary(data))


def _names(artifacts: list) -> list[str]:
    """What each artifact is called in the answer: its name, or its path where names repeat or are missing."""
    names = [artifact.get("name") or artifact["path"] for artifact in artifacts]
    return [name if names.count(name) == 1 else artifact["path"] for name, artifact in zip(names, artifacts)]


def _answer(miner: Miner, names: list, readers: list, found: list, limit: int, min_count: int, order: str) -> dict:
    sign = -1 if order == "common" else 1
    listed = [(text, t) for text, t in found if t.count >= min_count]
    listed.sort(key=lambda item: (sign * item[1].count, item[1].first))
    notes = []
    if miner.other_templates:
        notes.append(
            "more than max_templates templates: %d of the least frequent, with %d lines, are counted only in other"
            % (miner.other_templates, miner.other_lines)
        )
    files = []
    for name, reader in zip(names, readers):
        files.append(
            {
                "file": name,
                "bytes": reader.bytes,
                "lines": reader.lines,
                "truncated_lines": reader.truncated,
                "encoding": reader.encoding,
                "bad_bytes": reader.bad_bytes,
                "compressed": reader.compressed,
                "damage": reader.damage,
            }
        )
        if reader.damage:
            notes.append("%s could not be decompressed to its end: %s" % (name, reader.damage))
    encodings = sorted({reader.encoding for reader in readers})
    return {
        "templates": [
            {
                "template": text if len(text) <= TEMPLATE_CHARS else text[: TEMPLATE_CHARS - 1] + "\u2026",
                "count": t.count,
                "share": round(t.count / miner.lines, 6),
                "first": miner.place_of(t.first),
                "last": miner.place_of(t.last),
                "examples": [dict(miner.place_of(at), text=render(line)) for at, line in t.examples],
            }
            for text, t in listed[:limit]
        ],
        "totals": {
            "files": len(readers),
            "bytes": sum(reader.bytes for reader in readers),
            "lines": miner.lines,
            "blank_lines": miner.blank,
            "truncated_lines": sum(reader.truncated for reader in readers),
            "templates": len(found),
            "templates_listed": min(len(listed), limit),
            "templates_of_one_line": sum(t.count == 1 for _, t in found),
            "encoding": encodings[0] if len(encodings) == 1 else "mixed",
        },
        "other": {"lines": miner.other_lines, "templates": miner.other_templates},
        "files": files,
        "notes": notes,
    }


def _summary(data: dict) -> str:
    totals = data["totals"]
    if not totals["templates"]:
        return "No text: %d lines in %d files, none with words." % (totals["lines"], totals["files"])
    text = "%d lines fall into %d templates, %d of them seen once." % (
        totals["lines"],
        totals["templates"],
        totals["templates_of_one_line"],
    )
    if data["templates"]:
        top = data["templates"][0]
        shown = top["template"] if len(top["template"]) <= 160 else top["template"][:159] + "\u2026"
        text += " First listed (%d of %d lines, %s line %d): %s" % (
            top["count"],
            totals["lines"],
            top["first"]["file"],
            top["first"]["line"],
            shown,
        )
    if data["notes"]:
        text += " Note: " + "; ".join(data["notes"]) + "."
    return text


plugin.run()
