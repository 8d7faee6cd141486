import email
import email.policy
import re
from email.utils import getaddresses, parsedate_to_datetime

FROM_LINE = re.compile(r"^From \S+.*$", re.M)


def split_mbox(text):
    text = text.replace("\r\n", "\n")
    starts = [m for m in FROM_LINE.finditer(text) if m.start() == 0 or text[m.start() - 1] == "\n"]
    if not starts:
        return []
    out = []
    for i, m in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        out.append(re.sub(r"^>(>*From )", r"\1", text[m.end() + 1:end], flags=re.M))
    return out


def addresses(msg, field):
    return [addr for _n, addr in getaddresses(msg.get_all(field, [])) if addr]


def bodies(msg):
    plain, html = None, None
    for part in msg.walk():
        if part.is_multipart() or part.get_filename():
            continue
        ctype = part.get_content_type()
        if ctype == "text/plain" and plain is None:
            plain = part.get_content()
        elif ctype == "text/html" and html is None:
            html = part.get_content()
    return plain, html


def to_record(raw):
    msg = email.message_from_string(raw, policy=email.policy.default)
    plain, html = bodies(msg)
    date = None
    if msg["Date"]:
        try:
            date = parsedate_to_datetime(str(msg["Date"])).isoformat()
        except (TypeError, ValueError):
            date = None
    refs = (str(msg.get("References") or "")).split()
    return {
        "subject": str(msg.get("Subject") or "(no subject)"),
        "sender": str(msg.get("From") or ""),
        "recipients": {"to": addresses(msg, "To"), "cc": addresses(msg, "Cc"), "bcc": addresses(msg, "Bcc")},
        "date": date,
        "message_id": str(msg.get("Message-ID") or "").strip("<> "),
        "thread_id": (refs[0].strip("<>") if refs else None) or str(msg.get("In-Reply-To") or "").strip("<> ") or None,
        "body_text": plain,
        "body_html": html,
    }
