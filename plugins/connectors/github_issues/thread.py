"""An issue with its comments, as the text of one thread."""

MAX_COMMENTS = 1000
MAX_TEXT = 1_000_000  # characters


def thread_id(repository, number):
    """Return what the knowledge base knows an issue by: the same in every run."""
    return f"github:{repository.lower()}#{number}"


def title_of(issue):
    """Return the title of an issue with its number."""
    return f"#{issue['number']} {' '.join((issue.get('title') or '').split())}"[:500]


def text_of(issue, comments):
    """Return who said what and when, the issue first."""
    about = [issue.get("state") or "open", *labels_of(issue)]
    parts = [f"{_who(issue)} opened this on {_day(issue)} ({', '.join(about)})", _said(issue)]
    for comment in comments[:MAX_COMMENTS]:
        parts += [f"{_who(comment)} on {_day(comment)}:", _said(comment)]
    if len(comments) > MAX_COMMENTS:
        parts.append(f"(More than {MAX_COMMENTS} comments; the rest is left out.)")
    return "\n\n".join(filter(None, parts))


def attributes_of(repository, issue):
    """Return what is kept beside the text."""
    told = {
        "repository": repository,
        "number": issue["number"],
        "state": issue.get("state"),
        "labels": labels_of(issue),
        "author": _who(issue),
        "modified_at": issue["updated_at"],
    }
    return {name: value for name, value in told.items() if value}


def labels_of(issue):
    """Return the names of an issue's labels."""
    named = [label.get("name") if isinstance(label, dict) else label for label in issue.get("labels") or ()]
    return [str(name)[:100] for name in named if name][:100]


def _who(post):
    return (post.get("user") or {}).get("login") or "ghost"  # as GitHub calls who is no more


def _day(post):
    return (post.get("created_at") or "")[:10] or "an unknown day"


def _said(post):
    return (post.get("body") or "").replace("\r\n", "\n").strip()
