from dataclasses import dataclass, field
from typing import List

TONES = {"formal": ("Dear Professor {last},", "Yours sincerely,"), "friendly": ("Hello Professor {last},", "Best wishes,")}


@dataclass
class Draft:
    subject: str
    body: str
    signals: List[str] = field(default_factory=list)

    @property
    def words(self) -> int:
        return len(self.body.split())


def build(profile: dict, professor: dict, constraints: dict) -> Draft:
    hello, bye = TONES.get(constraints.get("tone", "formal"), TONES["formal"])
    shared = [t for t in profile.get("interests", []) if t.lower() in {x.lower() for x in professor.get("topics", [])}]
    sig = [f"student.profile.interests:{len(profile.get('interests', []))}", f"shared_topics:{len(shared)}"]
    parts = [hello.format(last=professor["name"].split()[-1]), ""]
    parts.append(f"I am {profile['name']}, and I am looking for a supervised position.")
    if shared:
        parts.append("Your work on " + " and ".join(shared) + " is close to mine.")
    if constraints.get("length") != "short" and profile.get("highlights"):
        parts += ["Some points of my record:"] + [f"- {h}" for h in profile["highlights"][:3]]
    parts += ["", bye, profile["name"]]
    return Draft(subject=f"Prospective student{': ' + shared[0] if shared else ''}", body="\n".join(parts), signals=sig)
