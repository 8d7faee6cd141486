package client

import (
	"context"
	"net/url"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// approvals are the approvals of a remote host.
type approvals struct{ *remote }

// Approvals implements [Host].
func (r *remote) Approvals() Approvals { return approvals{r} }

// An asked is an approval as a document has it.
type asked struct {
	host.Question
	Standing *rest.Standing `json:"standing"`
}

func (a *asked) of() host.Asked {
	q := a.Question
	out := host.Asked{
		Question: &q,
		Row: &host.ApprovalRow{
			ID: q.ID, State: q.State, SubjectKind: q.SubjectKind, SubjectID: q.Subject, Requester: q.Requester, Why: q.Why,
			CreatedAt: q.CreatedAt, ExpiresAt: q.ExpiresAt, DecidedBy: q.DecidedBy, DecidedAt: q.DecidedAt, Reason: q.Reason,
		},
	}
	if s := a.Standing; s != nil {
		out.Deciders, out.Owner, out.TrustAs, out.Theirs, out.Same = s.Deciders, s.Owner, s.TrustAs, s.Theirs, s.Same
	}
	return out
}

// Questions implements [Approvals].
func (a approvals) Questions(ctx context.Context, all bool, last int) ([]*host.Question, error) {
	query := url.Values{"questions": {"true"}}
	if !all {
		query.Set("state", string(host.ApprovalOpen))
	}
	rows, err := rowsOf[host.Question](ctx, a.remote, "questions", query, last, "approvals")
	questions := make([]*host.Question, len(rows))
	for i := range rows {
		questions[i] = &rows[i]
	}
	return questions, err
}

// Asked implements [Approvals].
func (a approvals) Asked(ctx context.Context, given string) (host.Asked, error) {
	var got asked
	if err := a.get(ctx, &got, url.Values{"short": {"true"}}, "approvals", given); err != nil {
		return host.Asked{}, err
	}
	return got.of(), nil
}

// Answer implements [Approvals].
func (a approvals) Answer(ctx context.Context, given string, approve, own bool, reason string) (host.Asked, error) {
	body := rest.Decided{Reason: reason, Terminal: own}
	switch {
	case host.IsApprovalToken(given):
		given, body.Token = "token", given
	case len(given) != wholeID:
		seen, err := a.Asked(ctx, given)
		if err != nil {
			return seen, err
		}
		given = seen.Row.ID
	}
	verb := ":deny"
	if approve {
		verb = ":approve"
	}
	var got asked
	if err := a.post(ctx, body, &got, "approvals", given+verb); err != nil {
		return host.Asked{}, err
	}
	return got.of(), nil
}
