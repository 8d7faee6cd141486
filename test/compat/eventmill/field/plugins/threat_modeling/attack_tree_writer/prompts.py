"""Prompts, apart from the code so that they can be tuned."""

SYSTEM = """You are a threat modelling assistant. You answer with short lines only.
Never invent host names. Prefer techniques that the analyst has named."""

TREE = """Goal of the attacker: {goal}
Known assets: {assets}
Known techniques: {techniques}

Write one attack path per line, steps separated by ' > '. At most {depth} steps."""


def grounding(techniques):
    return [f"{t['id']}: {t['name']}" for t in techniques]
