"""The plans of the Switchboard: for each intent that it knows, its steps.

There is no model in here: the same intent in the same context is the same
proposal. What an agent says is a proposal and no more; nothing here does
anything, and whether a step may happen is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re

GENERATE = "Funding.Outreach.Email.Generate"
SEND = "Funding.Outreach.Email.Send"
START = "Funding.Outreach.Start"  # from a document, whose student and professor the steps find out

# The steps in their order: id, operation, gate. Writing and sending wait for a person.
_DRAFTING = [("s1", "Email.GenerateDraft", "none"), ("s2", "Text.Score", "none")]
_SENDING = [("s3", "Apply.EmailDraft", "human_apply"), ("s4", "Gmail.Send", "human_apply")]
_FINDING_OUT = [("d1", "Document.Process", "none"), ("d2", "Professor.Summarize", "none"), ("d3", "Similarity.Match", "none")]
_WRITING = [("d4", "Email.GenerateDraft", "none"), ("d5", "Email.ReviewDraft", "none"), ("d6", "Email.OptimizeDraft", "none")]
_FINISHING = [("d7", "Apply.EmailDraft", "human_apply"), ("d8", "Gmail.Send", "human_apply")]
STEPS = {GENERATE: _DRAFTING, SEND: _DRAFTING + _SENDING, START: _FINDING_OUT + _WRITING + _FINISHING}

# What only the caller knows, by intent.
ASKED = {
    GENERATE: ("professor_id",),
    SEND: ("professor_id", "to", "from"),
    START: ("document", "professor_id", "to", "from"),
}

_TAGS = {
    "Email.GenerateDraft": ["draft_only"],
    "Text.Score": ["read_only"],
    "Document.Process": ["read_only"],
    "Professor.Summarize": ["read_only"],
    "Similarity.Match": ["read_only"],
    "Email.ReviewDraft": ["draft_only"],
    "Email.OptimizeDraft": ["draft_only"],
    "Apply.EmailDraft": ["writes_final"],
    "Gmail.Send": ["external_send"],
}


class Missing(Exception):
    """Facts that no plan can be made without; `fields` names them as dotted paths."""

    def __init__(self, fields: list) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


class Request:
    """What is asked for, and what is known."""

    def __init__(self, intent: dict, context: dict, constraints: dict) -> None:
        self.type = intent["type"]
        self.payload = intent.get("payload") or {}
        self.context = context
        self.tone = self.payload.get("tone") or constraints.get("tone") or "formal"
        known = self.type != START
        self.student = self._entity("student.profile", {"name": str, "degree": str}, "interests", known)
        self.professor = self._entity("professor.entity", {"name": str, "field": str}, "papers", known)
        scope = self._find("request.scope")
        self.scope = str(scope.get("id") or "request") if isinstance(scope, dict) else str(scope or "request")

    @property
    def email_id(self) -> str:
        """Which email of the backend this is: one for each request and professor."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{self.scope}-{self.payload.get('professor_id')}").lstrip("._-")[:128] or "email"

    def signals(self) -> list:
        """The facts that the plan rests on, each of them in the request."""
        found = [f"intent_type:{self.type}"]
        found += [f"has_{name}" for name in ("document", "professor_id", "to", "from") if name in self.payload]
        for path in ("student.profile", "professor.entity", "request.scope"):
            if _at(self.context, path) is not None:
                found.append(f"context:{path}")
        return found

    def _find(self, path: str) -> object:
        inside = _at(self.context, path)
        return _at(self.payload, path) if inside is None else inside

    def _entity(self, path: str, texts: dict, listed: str, needed: bool) -> dict:
        """The members that a draft is made of, and nothing else of what is known; all of them where they are needed."""
        entity = self._find(path)
        entity = entity if isinstance(entity, dict) else {}
        missing = [f"{path}.{name}" for name, kind in texts.items() if not isinstance(entity.get(name), kind) or not entity[name].strip()]
        if missing and needed:
            raise Missing(missing)
        texts = {name: kind for name, kind in texts.items() if f"{path}.{name}" not in missing}
        some = entity.get(listed) if isinstance(entity.get(listed), list) else []
        names = [item.get("title") if isinstance(item, dict) else item for item in some]
        return dict({name: entity[name][:200] for name in texts}, **{listed: [n[:200] for n in names if isinstance(n, str) and n.strip()][:20]})


def payloads(request: Request) -> dict:
    """Return what each operation is to be given, by its name."""
    if request.type == START:
        return _from_document(request)
    asked = request.payload
    draft = {"professor": request.professor, "student": request.student, "tone": request.tone}
    draft.update({name: asked[name] for name in ("to", "from", "subject") if name in asked})
    names = [request.professor["name"].split()[-1], *request.professor["papers"][:1]]
    of_draft = {"$from": "s1", "pointer": "/draft"}
    apply = {"id": request.email_id, "draft": of_draft}
    send = {
        "from": asked.get("from"),
        "to": asked.get("to"),
        "subject": {"$from": "s1", "pointer": "/draft/subject"},
        "body": {"$from": "s1", "pointer": "/draft/body"},
    }
    if "backend" in asked:
        apply["backend"] = asked["backend"]
    if "gmail" in asked:
        send["base"] = asked["gmail"]
    return {
        "Email.GenerateDraft": draft,
        "Text.Score": {"text": {"$from": "s1", "pointer": "/draft/body"}, "names": names},
        "Apply.EmailDraft": apply,
        "Gmail.Send": send,
    }


def _from_document(request: Request) -> dict:
    """What each step is given where student and professor come from what the first steps find out.

    What is known of the student already, name and degree, counts for more than
    what the document says.
    """
    asked = request.payload
    student = {name: request.student.get(name) or _of("d1", f"/profile/{name}") for name in ("name", "degree")}
    professor = {"name": _of("d2", "/professor/name"), "field": _of("d2", "/professor/field"), "papers": _of("d3", "/ranked/offered")}
    names = [_of("d2", "/professor/field")]
    draft = _of("d6", "/draft")
    generate = {"professor": professor, "student": dict(student, interests=_of("d3", "/ranked/wanted")), "tone": request.tone}
    generate.update({name: asked[name] for name in ("to", "from", "subject") if name in asked})
    look = {"professor_id": asked.get("professor_id")}
    apply = {"id": request.email_id, "draft": draft}
    send = {"from": asked.get("from"), "to": asked.get("to"), "subject": _of("d6", "/draft/subject"), "body": _of("d6", "/draft/body")}
    if "source" in asked:
        look["source"] = asked["source"]
    if "backend" in asked:
        look["backend"] = apply["backend"] = asked["backend"]
    if "gmail" in asked:
        send["base"] = asked["gmail"]
    return {
        "Document.Process": {"document": asked.get("document")},
        "Professor.Summarize": look,
        "Similarity.Match": {"wanted": _of("d1", "/profile/interests"), "offered": _of("d2", "/professor/papers")},
        "Email.GenerateDraft": generate,
        "Email.ReviewDraft": {"draft": _of("d4", "/draft"), "names": names},
        "Email.OptimizeDraft": {"draft": _of("d4", "/draft"), "issues": _of("d5", "/issues"), "names": names},
        "Apply.EmailDraft": apply,
        "Gmail.Send": send,
    }


def _of(step: str, pointer: str) -> dict:
    """A part of what an earlier step returned."""
    return {"$from": step, "pointer": pointer}


def actions(request: Request) -> list:
    """Return the required actions of a plan, in the order of its steps."""
    given = payloads(request)
    return [
        {
            "operator": operation,
            "payload": given[operation],
            "policy_tags": _TAGS[operation],
            "idempotency_hint": f"{operation}:{request.email_id}:{_digest(given)}",
        }
        for _, operation, _ in STEPS[request.type]
    ]


def steps(request: Request) -> list:
    """Return the proposed plan's steps."""
    return [{"step_id": id, "action": operation, "gate": gate} for id, operation, gate in STEPS[request.type]]


def confidence(request: Request) -> float:
    """How sure a plan is: less, the less a draft has to go on."""
    if request.type == START:
        return 0.8
    return 0.9 - (0 if request.professor["papers"] else 0.2) - (0 if request.student["interests"] else 0.1)


def _digest(payloads: dict) -> str:
    return hashlib.sha256(json.dumps(payloads, sort_keys=True).encode()).hexdigest()[:16]


def _at(tree: object, path: str) -> object:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree
