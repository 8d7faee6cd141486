"""What agents and adapters take and answer, as the kernel contracts have it (5.2.2, 5.5.1)."""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict


class _Intent(TypedDict):
    type: str  # such as Funding.Outreach.Email.Generate


class Intent(_Intent, total=False):
    """What a user wants."""

    payload: Dict[str, Any]


class PolicySnapshot(TypedDict):
    """What policy said of what the agent may propose."""

    version: str
    operations: Dict[str, str]  # by plugin/operation: allow, allow_with_approval or deny


class Proposable(TypedDict):
    """An operation that the agent may propose."""

    name: str  # as it is proposed
    operation: str
    version: str
    kind: str
    description: str
    effects: List[str]
    policy_tags: List[str]
    input_schema: Any
    gate: str  # human_apply where a person will be asked


class Runtime(TypedDict):
    """What the agent may use up."""

    deadline_ms: int
    max_actions: int
    max_input_bytes: int


class AgentInput(TypedDict):
    """All that an agent learns. Its function takes these as parameters, as many as it wants."""

    intent: Intent
    context: Dict[str, Any]
    policy_snapshot: PolicySnapshot
    tool_registry: List[Proposable]
    constraints: Dict[str, Any]
    runtime: Runtime


class Rationale(TypedDict):
    """Why. Signals are facts of the input: intent_type:X, has_y, context:student.profile."""

    short: str
    signals: List[str]


class _RequiredAction(TypedDict):
    operator: str


class RequiredAction(_RequiredAction, total=False):
    """An operation with its input."""

    payload: Dict[str, Any]
    policy_tags: List[str]
    idempotency_hint: str


class _ProposedStep(TypedDict):
    step_id: str
    action: str


class ProposedStep(_ProposedStep, total=False):
    """One step of a plan."""

    gate: str  # none, human_apply
    payload: Dict[str, Any]  # in place of the required action's
    needs: List[str]  # steps that must have succeeded; the one before where it is absent


class ProposedPlan(TypedDict):
    """What is to be done, in order."""

    steps: List[ProposedStep]


class Suggestion(TypedDict):
    """Something for a person."""

    type: str
    text: str


class _Proposal(TypedDict):
    agent_name: str
    agent_version: str
    kind: str  # plan_proposal, step_output, next_step_suggestions
    confidence: float  # 0 to 1
    rationale: Rationale


class Proposal(_Proposal, total=False):
    """An agent's answer. Nothing in it happens by itself."""

    required_actions: List[RequiredAction]
    proposed_plan: ProposedPlan  # with plan_proposal
    suggestions: List[Suggestion]  # with next_step_suggestions
    step_output: Any  # with step_output
    randomness_disclosure: Any


class SubmitIntent(TypedDict):
    """What an event asks for, such as Support.Ticket.Resolve."""

    type: str
    payload: Dict[str, Any]


class ExternalPrincipal(TypedDict):
    """Who the other system says it was."""

    provider: str
    external_id: str


class _SubmitRequest(TypedDict):
    intent: SubmitIntent
    principal: ExternalPrincipal


class SubmitRequest(_SubmitRequest, total=False):
    """What an adapter makes of an event that happened elsewhere: KernelSubmitRequest. It cannot name rights."""

    context: Dict[str, Any]
    constraints: Dict[str, Any]
    idempotency_key: str  # the same for every delivery of the same event
    metadata: Dict[str, Any]
