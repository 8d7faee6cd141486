RULES = []


def rule(code, severity):
    def deco(fn):
        RULES.append((code, severity, fn))
        return fn
    return deco


def aslist(x):
    return x if isinstance(x, list) else [x] if x is not None else []


@rule("IAM001", "critical")
def star_star(st):
    return st.get("Effect") == "Allow" and "*" in aslist(st.get("Action")) and "*" in aslist(st.get("Resource"))


@rule("IAM002", "high")
def service_star(st):
    return st.get("Effect") == "Allow" and any(a != "*" and a.endswith(":*") for a in aslist(st.get("Action")))


@rule("IAM003", "high")
def passrole(st):
    return st.get("Effect") == "Allow" and "iam:PassRole" in aslist(st.get("Action")) and "*" in aslist(st.get("Resource"))


@rule("IAM004", "medium")
def not_action(st):
    return st.get("Effect") == "Allow" and "NotAction" in st


@rule("IAM005", "critical")
def public(st):
    p = st.get("Principal")
    return st.get("Effect") == "Allow" and not st.get("Condition") and (p == "*" or (isinstance(p, dict) and "*" in aslist(p.get("AWS"))))
