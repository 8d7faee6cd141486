from .blocks import blocks


def size(text):
    # a crude token estimate, stable across platforms
    return max(1, (len(text) + 3) // 4)


def pack(md, limit, overlap=0):
    chunks, cur = [], None
    for b in blocks(md):
        n = size(b.text)
        if cur and (cur["path"] != list(b.path) or cur["tokens"] + n > limit):
            chunks.append(cur)
            tail = cur["text"].split("\n\n")[-overlap:] if overlap and cur["path"] == list(b.path) else []
            cur = {"path": list(b.path), "text": "\n\n".join(tail), "tokens": sum(size(t) for t in tail), "line": b.line} if tail else None
        if cur is None:
            cur = {"path": list(b.path), "text": b.text, "tokens": n, "line": b.line}
        else:
            cur["text"] += "\n\n" + b.text
            cur["tokens"] += n
    if cur:
        chunks.append(cur)
    return chunks
