from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterable, List, Tuple

EARTH = 6371008.8
GEOMETRIES = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}


class Problem(Exception):
    def __init__(self, path, text):
        super().__init__("%s: %s" % (path, text))
        self.path, self.text = path, text


def check_position(p, path):
    if not isinstance(p, list) or len(p) < 2 or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in p):
        raise Problem(path, "a position is two or three numbers")
    if not (-180 <= p[0] <= 180 and -90 <= p[1] <= 90):
        raise Problem(path, "longitude/latitude out of range")


def check_coords(c, depth, path):
    if depth == 0:
        return check_position(c, path)
    if not isinstance(c, list):
        raise Problem(path, "expected an array")
    for i, x in enumerate(c):
        check_coords(x, depth - 1, "%s/%d" % (path, i))


def check_geometry(g, path):
    if not isinstance(g, dict) or g.get("type") not in GEOMETRIES:
        raise Problem(path, "unknown geometry")
    check_coords(g.get("coordinates"), GEOMETRIES[g["type"]], path + "/coordinates")
    rings = {"Polygon": [g.get("coordinates")], "MultiPolygon": g.get("coordinates")}.get(g["type"], [])
    for poly in rings:
        for n, ring in enumerate(poly):
            if len(ring) < 4 or ring[0] != ring[-1]:
                raise Problem("%s/coordinates/%d" % (path, n), "a ring has four positions or more and is closed")


def geometries(doc) -> Iterable[Tuple[str, Dict[str, Any]]]:
    t = doc.get("type")
    if t == "FeatureCollection":
        for i, f in enumerate(doc.get("features") or []):
            yield "/features/%d/geometry" % i, f.get("geometry")
    elif t == "Feature":
        yield "/geometry", doc.get("geometry")
    else:
        yield "", doc


def haversine(a, b):
    p1, p2 = math.radians(a[1]), math.radians(b[1])
    h = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(math.radians(b[0] - a[0]) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(h))


def length(line):
    return sum(haversine(a, b) for a, b in zip(line, line[1:]))


def douglas(points: List[List[float]], eps: float) -> List[List[float]]:
    if len(points) < 3:
        return points
    (x1, y1), (x2, y2) = points[0][:2], points[-1][:2]
    norm = math.hypot(x2 - x1, y2 - y1)
    best, at = -1.0, 0
    for i, p in enumerate(points[1:-1], 1):
        d = abs((y2 - y1) * p[0] - (x2 - x1) * p[1] + x2 * y1 - y2 * x1) / norm if norm else math.hypot(p[0] - x1, p[1] - y1)
        if d > best:
            best, at = d, i
    if best <= eps:
        return [points[0], points[-1]]
    return douglas(points[:at + 1], eps)[:-1] + douglas(points[at:], eps)


class GeoJsonTools:
    name = "geojson_tools"
    version = "1.3"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["validate", "measure", "simplify"]},
            "geojson": {"anyOf": [{"type": "object"}, {"type": "string"}], "x-ui": {"help": "Document, as JSON or as text"}},
            "tolerance": {"type": "number", "exclusiveMinimum": 0, "x-ui": {"show_when": {"op": "simplify"}, "help": "In degrees"}}},
            "required": ["op", "geojson"], "if": {"properties": {"op": {"const": "simplify"}}}, "then": {"required": ["tolerance"]}}

    def get_output_schema(self):
        return {"type": "object", "properties": {"valid": {"type": "boolean"}, "metres": {"type": "number", "minimum": 0},
                "points_before": {"type": "integer"}, "points_after": {"type": "integer"}}, "minProperties": 1}

    async def execute(self, params, context, host):
        doc = params["geojson"]
        try:
            if isinstance(doc, str):
                doc = json.loads(doc)
            found = list(geometries(doc))
        except (ValueError, AttributeError):
            return {"status": "error", "data": {}, "error": {"code": "not_json", "message": "the document cannot be read"}}
        problems = []
        for path, g in found:
            try:
                check_geometry(g, path)
            except Problem as p:
                problems.append({"path": p.path, "problem": p.text})
        if params["op"] == "validate":
            return {"status": "success", "data": {"valid": not problems, "problems": problems, "geometries": len(found)}, "error": None}
        if problems:
            return {"status": "error", "data": {"problems": problems}, "error": {"code": "invalid_geojson", "message": problems[0]["problem"]}}
        lines = [g["coordinates"] for _p, g in found if g["type"] == "LineString"]
        if params["op"] == "measure":
            return {"status": "success", "data": {"metres": round(sum(map(length, lines)), 1), "lines": len(lines)}, "error": None}
        thin = [douglas(l, params["tolerance"]) for l in lines]
        return {"status": "success", "error": None, "data": {"points_before": sum(map(len, lines)), "points_after": sum(map(len, thin)),
                "geojson": {"type": "MultiLineString", "coordinates": thin}}}
