"""RFC 5424 line parser. A small hand-written scanner: regexes fail on escaped brackets."""

FACILITIES = ["kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
              "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]
SEVERITIES = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"]


class SyntaxProblem(ValueError):
    pass


def parse_sd(text, i):
    out = {}
    if text[i:i + 1] == "-":
        return out, i + 1
    while i < len(text) and text[i] == "[":
        i += 1
        start = i
        while text[i] not in " ]":
            i += 1
        sid = text[start:i]
        params = {}
        while text[i] == " ":
            i += 1
            eq = text.index("=", i)
            name = text[i:eq]
            i = eq + 1
            if text[i] != '"':
                raise SyntaxProblem("unquoted SD value")
            i += 1
            buf = []
            while text[i] != '"':
                if text[i] == "\\" and text[i + 1] in '"\\]':
                    i += 1
                buf.append(text[i])
                i += 1
            i += 1
            params[name] = "".join(buf)
        if text[i] != "]":
            raise SyntaxProblem("SD element not closed")
        i += 1
        out[sid] = params
    return out, i


def parse_line(line):
    if not line.startswith("<"):
        raise SyntaxProblem("no PRI")
    try:
        end = line.index(">")
        pri = int(line[1:end])
        version, ts, host, app, pid, mid, rest = line[end + 1:].split(" ", 6)
        if version != "1" or pri > 191:
            raise SyntaxProblem("bad version or PRI")
        sd, i = parse_sd(rest, 0)
    except SyntaxProblem:
        raise
    except (ValueError, IndexError) as exc:
        raise SyntaxProblem(str(exc)) from exc
    nil = lambda x: None if x == "-" else x
    return {"facility": FACILITIES[pri // 8], "severity": SEVERITIES[pri % 8], "timestamp": nil(ts), "host": nil(host),
            "app": nil(app), "pid": nil(pid), "msgid": nil(mid), "structured": sd, "message": rest[i + 1:].lstrip("\ufeff") or None}
