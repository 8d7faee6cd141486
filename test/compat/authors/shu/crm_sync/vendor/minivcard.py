"""minivcard: writes vCard 4.0, one module, public domain."""


def esc(v):
    return str(v).replace("\\", "\\\\").replace("\n", "\\n").replace(",", "\\,").replace(";", "\\;")


def fold(line, width=75):
    out = []
    raw = line
    while len(raw.encode("utf-8")) > width:
        cut = width
        while len(raw[:cut].encode("utf-8")) > width:
            cut -= 1
        out.append(raw[:cut])
        raw = " " + raw[cut:]
    out.append(raw)
    return "\r\n".join(out)


def dump(name, emails=(), phones=(), org=None, note=None):
    lines = ["BEGIN:VCARD", "VERSION:4.0", "FN:" + esc(name)]
    lines += ["EMAIL:" + esc(e) for e in emails]
    lines += ["TEL;VALUE=uri:tel:" + p for p in phones]
    if org:
        lines.append("ORG:" + esc(org))
    if note:
        lines.append("NOTE:" + esc(note))
    lines.append("END:VCARD")
    return "\r\n".join(fold(l) for l in lines) + "\r\n"
