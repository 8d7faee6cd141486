package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/plugin"
)

// A Use is one use of a tool.
type Use struct {
	ID        string          `json:"id"` // the model's
	Name      string          `json:"name"`
	Operation string          `json:"operation"`
	CallID    string          `json:"call_id"`
	Input     json.RawMessage `json:"input"`
	Status    plugin.Status   `json:"status"`
	Approval  string          `json:"approval,omitempty"` // the question that is open
	Code      plugin.Code     `json:"code,omitempty"`
	Text      string          `json:"text"` // what the model is told
	Took      time.Duration   `json:"took"`
}

// maxAnswer is how much of what a tool answers the model is told.
const maxAnswer = 64 << 10

// maxHeard is how much of that hooks may hear: what is longer is not told.
const maxHeard = 2 << 20

// unread returns what a model wrote in place of a tool's input, where that could
// not be read.
func unread(input json.RawMessage) (text string, found bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || len(members) != 1 || members["$broken"] == nil {
		return "", false
	}
	return text, json.Unmarshal(members["$broken"], &text) == nil
}

// use uses one tool. That it fails is an answer for the model; only a hook that
// asked for it, or the end of the turn, is an error. cut is that of the model's
// wish: an incomplete one is not carried out.
func (t *turn) use(ctx context.Context, u *Use, cut bool) (err error) {
	defer func() { // a panic in the audience must not take the turn down
		if v := recover(); v != nil {
			t.agents.Log.Error("what follows a turn panicked", "agent", t.key.Agent, "session", t.session, "cause", fmt.Sprint(v), "stack", string(debug.Stack()))
			if u.Text == "" {
				u.Status, u.Code, u.Text = plugin.Failed, plugin.CodeInternal, "it was not used: the turn ended before"
			}
			err = plugin.Errorf(plugin.CodeInternal, "what follows the turn failed while %s was used; the host's log has the cause", u.Operation)
		}
	}()
	at := slices.IndexFunc(t.tools, func(tool Tool) bool { return tool.Name == u.Name })
	if at < 0 {
		u.Status, u.Code = plugin.Failed, plugin.CodeNotFound
		u.Text = fmt.Sprintf("there is no tool %.80q here", u.Name)
		if t.audience.Used != nil {
			t.audience.Used(*u)
		}
		return nil
	}
	u.Operation = t.tools[at].Operation
	text, found := unread(u.Input)
	switch {
	case cut:
		u.Status, u.Code = plugin.Failed, plugin.CodeLimitExceeded
		u.Text = fmt.Sprintf("limit_exceeded: it was not run: your answer reached its limit of %d tokens before what you gave the tool was complete. Ask for it again, with less before it and less in it", t.settings.MaxTokens)
	case found:
		u.Status, u.Code = plugin.Failed, plugin.CodeInvalidInput
		u.Text = fmt.Sprintf("invalid_input: what the tool was given is no JSON object: %.200q", text)
	}
	if u.Code != "" {
		if t.audience.Used != nil {
			t.audience.Used(*u)
		}
		return nil
	}
	u.CallID = uuid.Must(uuid.NewV7()).String()
	call := t.call
	call.ID, call.Operation, call.Input = u.CallID, u.Operation, u.Input
	if meant := t.tools[at].Input; meant != nil {
		if input, err := meant(u.Input); err == nil { // else the schema says what is wrong
			call.Input = input
		}
	}
	if t.audience.Using != nil {
		t.audience.Using(*u)
	}
	started := t.agents.Now()
	inner, args := withArgs(ctx, call.Input)
	res, failed := t.agents.Kernel.Call(inner, call)
	after := After{Session: t.session, Tool: u.Operation, Call: u.CallID, Args: args(), Started: started, Inbound: t.message.Inbound, Depth: t.message.depth()}
	if failed == nil && res.Status == plugin.PendingApproval {
		u.Approval = res.Approval.ID
		u.told(res, nil) // however asking ends
		reply, failure := t.ask(ctx, u, &after)
		if failure != nil {
			return failure
		}
		if reply != nil {
			u.Approval, res, failed = "", reply.Result, reply.Err
		}
	}
	u.Took = t.agents.Now().Sub(started)
	u.told(res, failed)
	t.taint(plugin.Labels(res.Labels, t.read()))
	if t.audience.Used != nil {
		t.audience.Used(*u)
	}
	if u.Status != plugin.Succeeded && u.Code == "" { // it waits for a person, or goes on elsewhere
		after.Asking = ""
		if err := t.owe(ctx, after); err != nil {
			return err
		}
	} else if failure := t.tell(ctx, after, u, res.Data); failure != nil {
		return failure
	}
	// A hook that asked to end the turn is the one refusal that is no answer.
	if errors.Is(failed, errEnds) {
		return failed
	}
	return nil
}

// ask asks the audience about a call that waits for approval. It returns nil if the audience has
// no answer, or cannot be asked. The end of the call is owed before it asks: if the turn dies
// meanwhile, the host that sees the call end tells the conversation.
func (t *turn) ask(ctx context.Context, u *Use, after *After) (*Reply, error) {
	if t.audience.Ask == nil {
		if t.audience.Waits != nil {
			t.audience.Waits(*u)
		}
		return nil, nil
	}
	after.Asking = t.lease
	if err := t.owe(ctx, *after); err != nil {
		return nil, err
	}
	return t.audience.Ask(*u)
}

// tell tells the plugins how a use of a tool ended. Of one that was owed they hear once.
func (t *turn) tell(ctx context.Context, after After, u *Use, result json.RawMessage) error {
	if after.Asking != "" {
		mine, err := t.takeUp(ctx, after)
		if err != nil || !mine {
			return err
		}
		t.settled = append(t.settled, after.Call)
	}
	return t.after(ctx, after, u, result)
}

// told spells what a call came to for the model.
func (u *Use) told(res plugin.Result, err error) {
	u.Status = res.Status
	switch {
	case err != nil:
		failure := plugin.AsError(err)
		u.Status, u.Code, u.Text = plugin.Failed, failure.Code, string(failure.Code)+": "+failure.Message
		if res.Status == plugin.Unknown {
			u.Status = plugin.Unknown
		}
	case res.Status == plugin.PendingApproval:
		u.Text = fmt.Sprintf(`{"status":"pending_approval","approval":%q,"note":"a person has to agree first; it has not happened"}`, res.Approval.ID)
	case res.Status != plugin.Succeeded:
		u.Text = fmt.Sprintf(`{"status":%q,"call":%q,"note":"it is still going on"}`, res.Status, res.CallID)
	default:
		u.Text = string(res.Data)
	}
	if len(u.Text) > maxAnswer {
		u.Text = strings.ToValidUTF8(u.Text[:maxAnswer], "") + fmt.Sprintf("\n[cut: %d bytes in all]", len(u.Text))
	}
}
