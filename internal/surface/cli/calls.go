package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) calls() *cobra.Command {
	return group(spec{
		use:   "calls",
		short: "Follow, await, stop and settle calls",
		long: `Follow, await, stop and settle calls: those with effects, a key or an approval, and
those that were queued. All calls are in 'mortise ledger list'.

Ids may be abbreviated to their beginning, or to the last six characters or more.`,
	}, c.callsList(), c.callsShow(), c.callsFollow(), c.callsWait(), c.callsCancel(), c.callsSettle())
}

// A callView is a call as it is shown.
type callView struct {
	ID         string         `json:"call_id"`
	Operation  string         `json:"operation"`
	Version    string         `json:"version"`
	Status     plugin.Status  `json:"status"` // as it reads outside
	State      host.CallState `json:"state"`  // as it is kept
	Code       string         `json:"code,omitempty"`
	Attempt    int64          `json:"attempt"`
	Principal  string         `json:"principal"`
	Actor      string         `json:"actor,omitempty"`
	Origin     string         `json:"origin"`
	Key        string         `json:"key,omitempty"` // its caller's own
	Parent     string         `json:"parent,omitempty"`
	Plan       string         `json:"plan,omitempty"`
	Session    string         `json:"session,omitempty"`
	Labels     []string       `json:"labels,omitempty"`
	Digest     string         `json:"package_digest"`
	InputHash  string         `json:"input_hash"`
	ResultHash string         `json:"result_hash,omitempty"`
	Node       string         `json:"node,omitempty"`
	Cancelled  bool           `json:"cancelled"` // cancellation was requested
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	WakeAt     time.Time      `json:"wake_at,omitzero"` // when it is looked at next
}

func viewOf(row *host.CallRow) callView {
	key, own := strings.CutPrefix(row.Key, "k:")
	if !own {
		key = ""
	}
	return callView{
		ID: row.ID, Operation: row.Operation, Version: row.Version, Status: host.StatusOf(row.State), State: row.State, Code: row.Code,
		Attempt: row.Attempt, Principal: row.Principal, Actor: row.Actor, Origin: row.Origin, Key: key, Parent: row.Parent, Plan: row.Plan,
		Session: row.Session, Labels: row.Labels, Digest: row.PackageDigest, InputHash: row.InputHash, ResultHash: row.ResultHash,
		Node: row.Node, Cancelled: row.Cancelled, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, WakeAt: row.WakeAt,
	}
}

func (c *command) callsList() *cobra.Command {
	var f host.CallFilter
	var state string
	var unknown bool
	return list(c, spec{
		use: "list", short: "List calls, the newest first", example: "  mortise calls list --state in_progress",
		door: inStanding, watch: true, limit: &limit{"limit", &f.Limit, 20, "how many calls"},
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.BoolVar(&unknown, "unknown", false, "only those whose outcome is unknown")
			flags.StringVar(&state, "state", "", "only pending_approval, in_progress, succeeded, failed or unknown")
			flags.StringVar(&f.Operation, "operation", "", "only calls of this operation: plugin/operation")
			flags.StringVar(&f.Plan, "plan", "", "only the steps of this plan")
		},
		check: func([]string) error {
			if unknown && state != "" && state != string(plugin.Unknown) {
				return onlyOne("--unknown", "--state")
			}
			if unknown {
				state = string(plugin.Unknown)
			}
			if state != "" && !host.IsCallStatus(plugin.Status(state)) {
				return usage{fmt.Errorf("--state %s: there are pending_approval, in_progress, succeeded, failed, unknown", state)}
			}
			return nil
		},
	}, listing[callView]{
		key:    "calls",
		titles: []string{"CALL", "CREATED", "WHAT", "STATE", "PRINCIPAL", "CODE"},
		row: func(v callView) []string {
			return []string{v.ID, terminal.Clock(v.CreatedAt), v.Operation + "@" + v.Version, string(v.Status), v.Principal, terminal.Dash(v.Code)}
		},
	}, func(ctx context.Context, q *ask) ([]callView, error) {
		list := q.Calls().List
		if state != "" {
			list = func(ctx context.Context, f host.CallFilter) ([]host.CallRow, error) {
				return q.Calls().ListIn(ctx, f, plugin.Status(state))
			}
		}
		rows, err := list(ctx, f)
		views := make([]callView, len(rows))
		for i := range rows {
			views[i] = viewOf(&rows[i])
		}
		return views, err
	})
}

// An effectView is one effect in a call's journal as it is shown.
type effectView struct {
	N           int64            `json:"n"`
	Attempt     int64            `json:"attempt"`
	Method      string           `json:"method"`
	Effect      string           `json:"effect"`
	Class       string           `json:"class"` // external or local
	State       host.EffectState `json:"state"`
	RequestHash string           `json:"request_hash"`
	ProviderKey string           `json:"provider_key,omitempty"`
	At          time.Time        `json:"at"`
}

// A callShown is a call with its journal of effects, its approval and its entries.
type callShown struct {
	callView
	Approval string         `json:"approval,omitempty"`
	Effects  []effectView   `json:"effects"`
	Entries  []plugin.Entry `json:"entries"`

	decided string // how the approval stands
}

func (c *command) callsShow() *cobra.Command {
	return show(c, spec{
		use: "show ID", short: "Show a call with its journal of effects, its approval and its entries", example: "  mortise calls show 3f21aa",
		complete: c.completeCalls, door: inStanding,
	}, func(ctx context.Context, q *ask) (s callShown, err error) {
		shown, err := q.Calls().Show(ctx, q.args[0])
		if err != nil {
			return s, err
		}
		return callShownOf(shown), nil
	}, c.showCall)
}

func callShownOf(shown host.CallShown) callShown {
	s := callShown{callView: viewOf(shown.CallRow), Entries: shown.Entries}
	for _, e := range shown.Effects {
		s.Effects = append(s.Effects, effectView{e.N, e.Attempt, e.Method, e.Effect, e.Class, e.State, e.RequestHash, e.ProviderKey, e.At})
	}
	if a := shown.Approval; a != nil {
		s.Approval, s.decided = a.ID, string(a.State)
	}
	return s
}

func (c *command) showCall(s callShown) error {
	t := terminal.Details(c.out)
	t.Row("call", s.ID)
	t.Row("operation", s.Operation+" "+s.Version)
	t.Row("state", string(s.Status)+inBrackets(s.Code))
	t.Row("principal", s.Principal)
	t.Some("plan", s.Plan)
	t.Some("key", s.Key)
	t.Some("labels", s.Labels...)
	t.Row("attempts", fmt.Sprint(s.Attempt))
	t.Row("package", s.Digest)
	if s.Approval != "" {
		t.Row("approval", s.Approval+" "+s.decided)
	}
	err := errors.Join(t.Flush(), below(c, whole, s.Effects, func(e effectView) []string {
		return []string{fmt.Sprint(e.N), fmt.Sprint(e.Attempt), e.Method, terminal.Dash(e.Effect), e.Class, string(e.State), terminal.Clock(e.At)}
	}, "N", "ATTEMPT", "METHOD", "EFFECT", "CLASS", "STATE", "TIME"))
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	for _, e := range s.Entries {
		c.showEntry(&e)
	}
	if s.State == host.CallUnknown {
		c.say("\nwhen you know how it ended, record it: 'mortise calls settle %s'", s.ID)
	}
	return nil
}

// showEntry prints what happened to a call on one line.
func (c *command) showEntry(e *plugin.Entry) {
	var body struct {
		Error      *plugin.ErrorRecord `json:"error"`
		Method     string              `json:"method"`
		Reason     string              `json:"reason"`
		Settlement struct {
			By     string `json:"by"`
			Reason string `json:"reason"`
		} `json:"settlement"`
	}
	detail := ""
	if json2.Unmarshal(e.Body, &body) == nil {
		switch {
		case body.Settlement.By != "":
			detail = body.Settlement.Reason
		case body.Error != nil:
			detail = string(body.Error.Code) + ": " + body.Error.Message
		case body.Method != "":
			detail = body.Method
		default:
			detail = body.Reason
		}
	}
	who := ""
	if e.Principal != "" {
		who = "by " + e.Principal
	}
	fmt.Fprintf(c.out, "%s  %s  %s\n", terminal.Clock(e.At), terminal.Padded(string(e.Kind), 18), terminal.OneLine(who+"  "+detail, 160))
}
