"""Drawings as text, Markdown, Mermaid, DOT and SVG. In none of them can a name be markup."""

from __future__ import annotations

from typing import Callable, Dict, List
from xml.sax.saxutils import escape

from .drawing import Drawing, Step, percent

_FILLS = {"low": "#e8f1e4", "medium": "#eef0f4", "high": "#fbe8cf", "critical": "#f7d4d0"}
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _EDGE = 170, 46, 250, 84, 24


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _what(step: Step) -> str:
    return ", ".join(step.techniques[:3]) + (" ..." if len(step.techniques) > 3 else "")


def text(drawing: Drawing) -> str:
    """A list that a terminal shows."""
    lines: List[str] = []
    steps = {(s.edge, s.source, s.target): s for s in drawing.steps}
    for path in drawing.paths:
        lines.append("path %d, %s" % (path.rank, percent(path.probability)))
        lines.append("  " + _clean(drawing.nodes[path.steps[0][1]].name))
        for key in path.steps:
            step = steps[key]
            lines.append("    -> %s  (%s%s)" % (_clean(drawing.nodes[step.target].name), percent(step.probability), ", " + _clean(_what(step)) if step.techniques else ""))
        lines.append("")
    return "\n".join(lines)


def markdown(drawing: Drawing) -> str:
    """A report: the diagram, a table of each path, and the controls that are missing."""
    out = ["# Attack paths: %s" % _plain(drawing.title), "", "| rank | probability | way |", "|---|---|---|"]
    steps = {(s.edge, s.source, s.target): s for s in drawing.steps}
    for path in drawing.paths:
        way = " → ".join(_plain(drawing.nodes[id].name) for id in [path.steps[0][1]] + [key[2] for key in path.steps])
        out.append("| %d | %s | %s |" % (path.rank, percent(path.probability), way))
    out += ["", "```mermaid", mermaid(drawing).rstrip("\n"), "```", ""]
    for path in drawing.paths:
        out += ["## Path %d" % path.rank, "", "| step | from | to | probability | techniques | controls missing |", "|---|---|---|---|---|---|"]
        for i, key in enumerate(path.steps, 1):
            s = steps[key]
            cells = (_plain(drawing.nodes[s.source].name), _plain(drawing.nodes[s.target].name), percent(s.probability), _plain(", ".join(s.techniques)), _plain(", ".join(s.controls)))
            out.append("| %d | %s |" % (i, " | ".join(cells)))
        out.append("")
    return "\n".join(out)


def _plain(text: str) -> str:
    """Text in which nothing is Markdown or HTML."""
    text = escape(_clean(text), {'"': "&quot;"})
    return "".join("\\" + c if c in "\\`*_{}[]()#+!|~" else c for c in text).replace("://", ":\u200b//")


def mermaid(drawing: Drawing) -> str:
    """A flowchart in Mermaid."""
    number = {id: "n%d" % i for i, id in enumerate(drawing.nodes)}
    lines = ["flowchart LR"]
    for id, node in drawing.nodes.items():
        left, right = ("([", "])") if node.entry else ("[[", "]]") if node.target else ("[", "]")
        lines.append('  %s%s"%s"%s' % (number[id], left, _entity(node.name), right))
    for step in drawing.steps:
        label = percent(step.probability) + (" " + _what(step) if step.techniques else "")
        lines.append('  %s -- "%s" --> %s' % (number[step.source], _entity(label), number[step.target]))
    first = [i for i, step in enumerate(drawing.steps) if 1 in step.ranks]
    if first:
        lines.append("  linkStyle %s stroke:#b3261e,stroke-width:3px" % ",".join(map(str, first)))
    for level in ("critical", "high"):
        of = [number[id] for id, node in drawing.nodes.items() if node.criticality == level]
        if of:
            lines += ["  classDef %s fill:%s,stroke:#555" % (level, _FILLS[level]), "  class %s %s" % (",".join(of), level)]
    return "\n".join(lines) + "\n"


def _entity(text: str) -> str:
    return "".join("#%d;" % ord(c) if c in "\"#&<>`|[](){}\\;" else c for c in _clean(text))


def dot(drawing: Drawing) -> str:
    """A graph in the language of Graphviz."""
    number = {id: "n%d" % i for i, id in enumerate(drawing.nodes)}
    lines = ["digraph attack_paths {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for id, node in drawing.nodes.items():
        more = ", peripheries=2" if node.target else ", shape=ellipse" if node.entry else ""
        lines.append('  %s [label="%s", fillcolor="%s"%s];' % (number[id], _quoted(node.name), _FILLS.get(node.criticality, _FILLS["medium"]), more))
    for step in drawing.steps:
        more = ', color="#b3261e", penwidth=2.5' if 1 in step.ranks else ""
        lines.append('  %s -> %s [label="%s"%s];' % (number[step.source], number[step.target], _quoted("%s %s" % (percent(step.probability), _what(step))).strip(), more))
    return "\n".join(lines + ["}"]) + "\n"


def _quoted(text: str) -> str:
    return _clean(text).replace("\\", "\\\\").replace('"', '\\"')


def svg(drawing: Drawing) -> str:
    """A picture by itself: no script, no style from elsewhere, no links."""
    place: Dict[str, "tuple[int, int]"] = {}
    tallest = max(len(layer) for layer in drawing.layers)
    for i, layer in enumerate(drawing.layers):
        top = _EDGE + (tallest - len(layer)) * _DOWN // 2
        for j, id in enumerate(layer):
            place[id] = (_EDGE + i * _ACROSS, top + j * _DOWN)
    width, height = 2 * _EDGE + (len(drawing.layers) - 1) * _ACROSS + _WIDTH, 2 * _EDGE + (tallest - 1) * _DOWN + _HEIGHT + 20
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img">' % (width, height, width, height),
        "<title>Attack paths</title>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        '<rect width="%d" height="%d" fill="#fff"/>' % (width, height),
    ]
    between: Dict["tuple[str, str]", int] = {}
    for step in drawing.steps:
        n = between[step.source, step.target] = between.get((step.source, step.target), 0) + 1
        (x1, y1), (x2, y2) = place[step.source], place[step.target]
        forward = x2 > x1
        x1, x2 = (x1 + _WIDTH, x2) if forward else (x1, x2 + _WIDTH)
        y1, y2 = y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
        bend = max(40, abs(x2 - x1) // 2) * (1 if forward else -1)
        lift = 14 * (n - 1)
        style = 'stroke="#b3261e" stroke-width="2.5"' if 1 in step.ranks else 'stroke="#777" stroke-width="1.3"'
        out.append('<path d="M%d %dC%d %d %d %d %d %d" fill="none" %s marker-end="url(#a)"/>' % (x1, y1, x1 + bend, y1 - lift * 2, x2 - bend, y2 - lift * 2, x2, y2, style))
        label = percent(step.probability) + (" " + step.techniques[0] if step.techniques else "")
        out.append('<text x="%d" y="%d" text-anchor="middle" font-size="10" fill="#333">%s</text>' % ((x1 + x2) // 2, (y1 + y2) // 2 - 5 - lift, _xml(label, 22)))
    for id, node in drawing.nodes.items():
        x, y = place[id]
        edge = 'stroke="#b3261e" stroke-width="2"' if node.target else 'stroke="#1f5f8b" stroke-width="2"' if node.entry else 'stroke="#555"'
        out.append('<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" %s/>' % (x, y, _WIDTH, _HEIGHT, 23 if node.entry else 6, _FILLS.get(node.criticality, _FILLS["medium"]), edge))
        out.append('<text x="%d" y="%d" text-anchor="middle">%s<title>%s</title></text>' % (x + _WIDTH // 2, y + _HEIGHT // 2 + 4, _xml(node.name, 24), _xml(node.name, 200)))
    return "\n".join(out + ["</svg>"]) + "\n"


def _xml(text: str, most: int) -> str:
    text = _clean(text)
    return escape(text if len(text) <= most else text[: most - 1] + "…", {'"': "&quot;", "'": "&#39;"})


def html(drawing: Drawing) -> str:
    """A page with the picture and the steps, that loads nothing."""
    rows = []
    for step in drawing.steps:
        cells = [drawing.nodes[step.source].name, drawing.nodes[step.target].name, percent(step.probability), ", ".join(step.techniques), ", ".join(step.controls), ", ".join(map(str, step.ranks))]
        rows.append("<tr>%s</tr>" % "".join("<td>%s</td>" % _xml(cell, 400) for cell in cells))
    head = "".join("<th>%s</th>" % h for h in ("from", "to", "probability", "techniques", "controls missing", "paths"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
        "<title>Attack paths</title><style>body{font:14px sans-serif;margin:2em}td,th{border:1px solid #ccc;padding:4px 8px;text-align:left}table{border-collapse:collapse}</style></head>\n"
        "<body><h1>Attack paths</h1>\n%s<table><tr>%s</tr>\n%s\n</table></body></html>\n" % (svg(drawing), head, "\n".join(rows))
    )


FORMATS: Dict[str, Callable[[Drawing], str]] = {"mermaid": mermaid, "markdown": markdown, "text": text, "dot": dot, "svg": svg, "html": html}
FILES = {"mermaid": ("mmd", "text"), "markdown": ("md", "text"), "text": ("txt", "text"), "dot": ("dot", "text"), "svg": ("svg", "text"), "html": ("html", "html_report")}
