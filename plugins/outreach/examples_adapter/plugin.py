"""Examples.Adapter: the three example mappings of the kernel contracts, 5.5.1."""

from __future__ import annotations

import mapping
from mortise import InvalidInput, Plugin

plugin = Plugin("Examples.Adapter", version="1.0.0")


@plugin.adapter
def salesforce_case(payload: dict, **others) -> dict:
    """A case was created in Salesforce: Support.Ticket.Resolve."""
    return _mapped(mapping.salesforce_case, payload)


@plugin.adapter
def university_portal(id: str, university: str, application: dict, applicant: dict, occurred_at: str = "", **others) -> dict:
    """A university portal reports a new status: Admission.Application.StatusUpdate."""
    return _mapped(mapping.university_portal, id, university, application, applicant, occurred_at)


@plugin.adapter
def slack_mention(team_id: str, event_id: str, event: dict, **others) -> dict:
    """A user was mentioned in Slack: Support.QA.Answer."""
    return _mapped(mapping.slack_mention, team_id, event_id, event)


def _mapped(function, *args) -> dict:
    try:
        return function(*args)
    except mapping.NotMapped as err:
        raise InvalidInput(str(err)) from None


if __name__ == "__main__":
    plugin.run()
