package view

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// A CallRow is a call as it is shown.
type CallRow struct {
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

// CallRowOf is a call as it is listed.
func CallRowOf(row *host.CallRow) CallRow {
	key, own := strings.CutPrefix(row.Key, "k:")
	if !own {
		key = ""
	}
	return CallRow{
		ID: row.ID, Operation: row.Operation, Version: row.Version, Status: host.StatusOf(row.State), State: row.State, Code: row.Code,
		Attempt: row.Attempt, Principal: row.Principal, Actor: row.Actor, Origin: row.Origin, Key: key, Parent: row.Parent, Plan: row.Plan,
		Session: row.Session, Labels: row.Labels, Digest: row.PackageDigest, InputHash: row.InputHash, ResultHash: row.ResultHash,
		Node: row.Node, Cancelled: row.Cancelled, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, WakeAt: row.WakeAt,
	}
}

// Calls are calls as they are listed.
var Calls = List[CallRow]{
	Key:    "calls",
	Titles: []string{"CALL", "CREATED", "WHAT", "STATE", "PRINCIPAL", "CODE"},
	Row: func(v CallRow) []string {
		return []string{v.ID, terminal.Clock(v.CreatedAt), v.Operation + "@" + v.Version, string(v.Status), v.Principal, terminal.Dash(v.Code)}
	},
}

// An Effect is one effect in a call's journal as it is shown.
type Effect struct {
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

// A CallShown is a call with its journal of effects, its approval and its entries.
type CallShown struct {
	CallRow
	Enforcement plugin.Enforcement `json:"enforcement,omitempty"` // what held the call to its decision
	Approval    string             `json:"approval,omitempty"`
	Effects     []Effect           `json:"effects"`
	Entries     []plugin.Entry     `json:"entries"`

	decided string // how the approval stands
}

// CallShownOf is a call as it is shown in full.
func CallShownOf(shown host.CallShown) CallShown {
	s := CallShown{CallRow: CallRowOf(shown.CallRow), Entries: shown.Entries, Enforcement: shown.Enforcement()}
	for _, e := range shown.Effects {
		s.Effects = append(s.Effects, Effect{e.N, e.Attempt, e.Method, e.Effect, e.Class, e.State, e.RequestHash, e.ProviderKey, e.At})
	}
	if a := shown.Approval; a != nil {
		s.Approval, s.decided = a.ID, string(a.State)
	}
	return s
}

// Call shows a call, what it did and what happened to it.
func Call(w, errs io.Writer, s CallShown) error {
	t := terminal.Details(w)
	t.Row("call", s.ID)
	t.Row("operation", s.Operation+" "+s.Version)
	t.Row("state", string(s.Status)+inBrackets(s.Code))
	t.Row("principal", s.Principal)
	t.Some("plan", s.Plan)
	t.Some("key", s.Key)
	t.Some("labels", s.Labels...)
	t.Row("attempts", fmt.Sprint(s.Attempt))
	t.Row("package", s.Digest)
	t.Some("enforcement", string(s.Enforcement))
	if s.Approval != "" {
		t.Row("approval", s.Approval+" "+s.decided)
	}
	err := errors.Join(t.Flush(), effects.below(w, s.Effects))
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, e := range s.Entries {
		CallEntry(w, &e)
	}
	if s.State == host.CallUnknown {
		Say(errs, "\nwhen you know how it ended, record it: 'mortise calls settle %s'", s.ID)
	}
	return nil
}

// CallEntry writes what happened to a call on one line.
func CallEntry(w io.Writer, e *plugin.Entry) {
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
	if json.Unmarshal(e.Body, &body) == nil {
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
	fmt.Fprintf(w, "%s  %s  %s\n", terminal.Clock(e.At), terminal.Padded(string(e.Kind), 18), terminal.OneLine(who+"  "+detail, 160))
}

// CallState says how a call stands, and what may be done next.
func CallState(w, errs io.Writer, row *host.CallRow, next string) {
	state := string(host.StatusOf(row.State))
	if row.Cancelled && !row.State.Ended() {
		state += ", told to stop"
	}
	fmt.Fprintf(w, "%s %s%s\n", row.ID, state, inBrackets(row.Code))
	if next != "" {
		Say(errs, "%s", next)
	}
}

var effects = List[Effect]{
	Titles: []string{"N", "ATTEMPT", "METHOD", "EFFECT", "CLASS", "STATE", "TIME"},
	Row: func(e Effect) []string {
		return []string{fmt.Sprint(e.N), fmt.Sprint(e.Attempt), e.Method, terminal.Dash(e.Effect), e.Class, string(e.State), terminal.Clock(e.At)}
	},
}
