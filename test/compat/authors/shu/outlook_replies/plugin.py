import secrets as _random
import textwrap
from html import escape

GRAPH = "https://graph.microsoft.com/v1.0"


def quote_original(text, width=72):
    out = []
    for para in (text or "").splitlines():
        out += ["> " + l for l in (textwrap.wrap(para, width) or [""])]
    return "\n".join(out)


def reply_subject(subject):
    return subject if subject.lower().startswith("re:") else "Re: " + subject


class Plugin:
    name = "outlook_replies"
    version = "0.4.0"

    def get_schema(self):
        return None

    def get_schema_for_op(self, op):
        base = {"op": {"type": "string"}, "graph_url": {"type": ["string", "null"], "x-ui": {"hidden": True}}}
        if op == "unread":
            return {"type": "object", "title": "Unread mail", "description": "Lists unread messages.",
                    "properties": {**base, "top": {"type": "integer", "minimum": 1, "maximum": 50}}}
        if op == "draft":
            return {"type": "object", "title": "Draft a reply", "description": "Prepares a reply, sends nothing.",
                    "properties": {**base, "message_id": {"type": "string"}, "text": {"type": "string", "minLength": 1}},
                    "required": ["message_id", "text"]}
        return None

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host):
        token, who = await host.auth.resolve_token_and_target("microsoft")
        if token is None:
            return {"status": "error", "error": {"code": "not_connected", "message": "Microsoft account missing"}}
        head = {"Authorization": "Bearer %s" % token}
        base = params.get("graph_url") or GRAPH
        if params["op"] == "unread":
            got = await host.http.fetch("GET", "%s/%s/messages" % (base, who), headers=head,
                                        params={"filter": "isRead eq false", "top": params.get("top") or 10})
            mails = [{"id": m["id"], "from": m["from"]["emailAddress"]["address"], "subject": m.get("subject") or ""}
                     for m in got["body"]["value"]]
            return {"status": "success", "data": {"unread": mails}, "cost": {"api_calls": 1}}
        got = await host.http.fetch_or_none("GET", "%s/%s/messages/%s" % (base, who, params["message_id"]), headers=head)
        if not got:
            return {"status": "error", "error": {"code": "message_gone", "message": params["message_id"]}}
        m = got["body"]
        body = params["text"].strip() + "\n\n" + quote_original(m.get("bodyPreview"))
        draft_id = _random.token_urlsafe(12)
        draft = {"to": m["from"]["emailAddress"]["address"], "subject": reply_subject(m.get("subject") or ""), "body": body,
                 "html": "<pre>%s</pre>" % escape(body)}
        await host.storage.put(draft_id, draft, namespace="drafts")
        return {"status": "success", "data": dict(draft, draft_id=draft_id)}

    async def list_actions(self):
        return [{"name": "send_draft", "description": "Sends a prepared reply", "requires_approval": True,
                 "required_scopes": ["https://graph.microsoft.com/Mail.Send"],
                 "params_schema": {"type": "object", "properties": {"draft_id": {"type": "string"}, "graph_url": {"type": "string"}}, "required": ["draft_id"]}},
                {"name": "drop_draft", "description": "Forgets a prepared reply", "requires_approval": False, "required_scopes": [],
                 "params_schema": {"type": "object", "properties": {"draft_id": {"type": "string"}}, "required": ["draft_id"]}}]

    async def perform_action(self, name, args, context, host):
        draft = await host.storage.get(args["draft_id"], namespace="drafts")
        if draft is None:
            return {"status": "error", "error": {"code": "no_such_draft", "message": args["draft_id"]}}
        if name == "drop_draft":
            await host.storage.delete(args["draft_id"], namespace="drafts")
            return {"status": "ok", "action_id": args["draft_id"], "result": {"dropped": True}}
        if not context.get("approved"):
            return {"status": "pending_approval", "action_id": args["draft_id"], "preview": {"to": draft["to"], "subject": draft["subject"]}}
        token, who = await host.auth.resolve_token_and_target("microsoft", scopes=["https://graph.microsoft.com/Mail.Send"])
        await host.http.fetch("POST", "%s/%s/sendMail" % (args.get("graph_url") or GRAPH, who), headers={"Authorization": "Bearer %s" % token},
                              json={"message": {"subject": draft["subject"], "toRecipients": [{"emailAddress": {"address": draft["to"]}}],
                                                "body": {"contentType": "text", "content": draft["body"]}}})
        await host.storage.delete(args["draft_id"], namespace="drafts")
        return {"status": "ok", "action_id": args["draft_id"], "result": {"sent_to": draft["to"]}}
