package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// Received is what became of a delivery.
type Received struct {
	Session   string `json:"session,omitempty"`
	Seen      bool   `json:"seen,omitzero"`    // it came in before, and was not taken again
	Ignored   bool   `json:"ignored,omitzero"` // it is not a message of a user
	Challenge string `json:"challenge,omitempty"`
}

// ErrMalformed means that a delivery of a known sender has no one reading.
var ErrMalformed = errors.New("a delivery is one strict JSON value: valid UTF-8, and no member twice")

// Receive takes a delivery of a channel in. Once it returns without an error the
// message is kept, and will have its turn (HK-12). A delivery that came in before
// is not taken again. Receive calls proved once the signature is verified, and takes nothing in if
// proved fails; proved may be nil.
func (a *Agents) Receive(ctx context.Context, tenant, id, namespace string, header http.Header, body []byte, proved func() error) (r Received, err error) {
	row, err := a.Store.Agent(ctx, tenant, id)
	if err != nil {
		return r, err
	}
	var c Channel
	found := false
	if row != nil {
		s := full(row)
		c, found = s.Channels[namespace]
	}
	// One answer for whatever is wrong, after the same work: who has no secret does
	// not learn which channels there are.
	stranger := func(why error) error {
		a.Log.Info("a delivery was not accepted", "agent", id, "channel", namespace, "cause", why.Error())
		e := plugin.Errorf(plugin.CodeUnauthenticated, "the delivery is not accepted: no channel at this address knows its sender; the host's log says more")
		e.Err = why
		return e
	}
	if !found {
		_, _ = a.Secrets(ctx, tenant, "of no channel") // which takes as long as one that is there
		webhook.Refused(body)
		return r, stranger(fmt.Errorf("there is no channel %.40q of an agent %.80q", namespace, id))
	}
	secrets, err := a.Secrets(ctx, tenant, c.Secret)
	if code := plugin.CodeOf(err); err != nil && (code == plugin.CodeNotFound || code == plugin.CodeMissingSecrets || code == plugin.CodeUnavailable) {
		a.Log.Warn("a channel takes nothing", "agent", id, "channel", namespace, "cause", err.Error())
		webhook.Refused(body)
		return r, stranger(err)
	}
	if err != nil {
		return r, err
	}
	d, err := c.Scheme.Verify(header, body, secrets, a.Now())
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated {
		return r, stranger(err)
	}
	if err == nil && proved != nil {
		err = proved()
	}
	if err != nil {
		return r, err
	}
	if !jsontext.Value(body).IsValid() { // two parsers of valid JSON read the same
		return r, plugin.Errorf(plugin.CodeInvalidInput, "%w", ErrMalformed)
	}
	if row.State != AgentRunning {
		return r, plugin.Errorf(plugin.CodeUnavailable, "agent %s is stopped; mortise agents start %s starts it", id, id)
	}
	in, err := read(c.Scheme, d, header.Get("X-GitHub-Event"))
	if err != nil {
		return r, err
	}
	if in == nil {
		return Received{Ignored: true}, nil
	}
	if in.Challenge != "" {
		return Received{Challenge: in.Challenge}, nil
	}
	in.Channel = namespace
	place, marks := id+"/"+namespace, []string{"id:" + d.ID}
	if in.mark != "" {
		marks = append(marks, "said:"+in.mark)
	}
	if c.Scheme == webhook.GitHub { // which does not sign its ids
		marks = append(marks, "body:"+d.Hash())
	}
	return a.take(ctx, Key{tenant, id}, &c, in, place, marks)
}

// take keeps a message, unless one of its marks was seen.
func (a *Agents) take(ctx context.Context, key Key, c *Channel, in *Incoming, place string, marks []string) (r Received, err error) {
	i, err := a.Instance(ctx, key.Tenant, key.Agent)
	if err != nil {
		return r, err
	}
	// Replay: one that came in before is not told to hooks again. At the same time
	// in this process, the second waits until the first is kept or refused.
	release, err := i.oneAtATime(ctx, place, marks)
	if err != nil {
		return r, err
	}
	defer release()
	source := Source{Channel: in.Channel, Kind: "channel", Platform: string(c.Scheme), Room: in.Room, Peer: c.peer(in.Sender)}
	for _, mark := range marks {
		if r.Seen, err = a.Store.Delivered(ctx, key.Tenant, place, mark); err != nil {
			return r, err
		}
		if r.Seen {
			last, err := i.last(ctx, source, false)
			if last != nil {
				r.Session = last.SessionID
			}
			return r, err
		}
	}
	ctx, read := Tainting(ctx)
	p, err := i.transform(ctx, event.ChannelMessageIn, fields{
		"channel": in.Channel, "direction": "in", "text": in.Text, "metadata": orNil(in.Metadata),
	})
	if err != nil {
		return r, err
	}
	if p != nil {
		if raw, found := p.Field("text"); !found || raw[0] != '"' {
			return r, plugin.Errorf(plugin.CodeHookFailed, "after its hooks %s has no text", event.ChannelMessageIn)
		}
		in.Text, in.Metadata = p.String("text"), nil
		if raw, found := p.Field("metadata"); found && raw[0] == '{' {
			in.Metadata = json.RawMessage(raw)
		}
	}
	in.Ends = c.ends(in.Text)
	message, err := json.Marshal(in)
	if err != nil {
		return r, err
	}
	for range 3 { // one that was found may be closed in between, for having been idle
		if r, err = i.keepInbound(ctx, source, message, plugin.Labels(c.labels(), read()), place, marks); !errors.Is(err, errClosed) {
			break
		}
	}
	if err == nil && !r.Seen && a.Wake != nil {
		a.Wake(ctx, key.Tenant, r.Session)
	}
	return r, err
}

// oneAtATime waits until no other delivery with one of the marks is being taken.
func (i *Instance) oneAtATime(ctx context.Context, place string, marks []string) (release func(), err error) {
	var mine []string
	for _, mark := range marks {
		mine = append(mine, place+" "+mark)
	}
	for {
		i.mu.Lock()
		var other chan struct{}
		for _, mark := range mine {
			if taken := i.taking[mark]; taken != nil {
				other = taken
			}
		}
		if other == nil {
			done := make(chan struct{})
			for _, mark := range mine {
				i.taking[mark] = done
			}
			i.mu.Unlock()
			return func() {
				i.mu.Lock()
				defer i.mu.Unlock()
				for _, mark := range mine {
					delete(i.taking, mark)
				}
				close(done)
			}, nil
		}
		i.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, plugin.AsError(context.Cause(ctx))
		}
	}
}

// errClosed is why a message was not added to a conversation.
var errClosed = plugin.Errorf(plugin.CodeUnavailable, "the conversation has just been closed; send it again")

// keepInbound adds a message to the conversation of its source, unless one of its
// marks was seen.
func (i *Instance) keepInbound(ctx context.Context, source Source, message []byte, labels []string, place string, marks []string) (r Received, err error) {
	key := i.key
	conversation, err := i.Next(ctx, source)
	if err != nil {
		return r, err
	}
	now := i.agents.Now().UTC()
	err = i.agents.Store.Write(ctx, func(tx Tx) error {
		r.Seen = false
		for _, mark := range marks {
			fresh, err := tx.InsertDelivery(key.Tenant, place, mark, now)
			if err != nil {
				return err
			}
			r.Seen = r.Seen || !fresh
		}
		if r.Seen {
			return nil
		}
		n, err := tx.InsertMessage(MessageRow{
			Tenant: key.Tenant, SessionID: conversation.SessionID, Role: inbound, Body: message, Labels: labels, At: now,
		})
		if err == nil && n == 0 {
			err = errClosed // and the marks are not kept either
		}
		return err
	})
	r.Session = conversation.SessionID
	return r, err
}

func orNil(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return raw
}

// Waiting returns the conversations in which a message waits for its turn, of
// agents that run.
func (a *Agents) Waiting(ctx context.Context, limit int) ([]ConversationRow, error) {
	return a.Store.Conversations(ctx, ConversationFilter{Waiting: true, Running: true, Limit: limit})
}

// Advance runs a turn for each message that waits in a conversation, and sends the
// answers to the channel that the messages came from. A turn that a crash interrupted is
// not repeated: its tools would have their effects twice.
func (a *Agents) Advance(ctx context.Context, tenant, session string) error {
	row, err := a.Store.Conversation(ctx, tenant, session)
	if err != nil || row == nil || !row.Open || row.Handled >= row.Received {
		return err
	}
	agent, err := a.Store.Agent(ctx, tenant, row.Agent)
	if err != nil || agent == nil || agent.State != AgentRunning {
		return err
	}
	i, err := a.Instance(ctx, tenant, row.Agent)
	if err != nil {
		return err
	}
	waiting, err := a.Store.Messages(ctx, tenant, session, row.Handled, 100)
	if err != nil {
		return err
	}
	for _, m := range waiting {
		if m.Role != inbound {
			continue
		}
		message, err := a.incoming(ctx, tenant, session, m.N)
		if err != nil {
			return err
		}
		if err := i.converse(ctx, session, *message); err != nil || message.Ends {
			return err // what came after it is in the next conversation
		}
	}
	return nil
}

// maxAsked is how deep agents may ask agents.
const maxAsked = 3

type askedKey struct{}

// Ask has an agent answer one message of a call, in a conversation of its own.
func (a *Agents) Ask(ctx context.Context, by *plugin.Call, id, text string) (Answer, error) {
	depth, _ := ctx.Value(askedKey{}).(int)
	if depth == maxAsked {
		return Answer{}, plugin.Errorf(plugin.CodeLimitExceeded, "agents asked each other %d deep; take agent.chat from one of them", maxAsked)
	}
	ctx = context.WithValue(ctx, askedKey{}, depth+1)
	i, err := a.Instance(ctx, by.Tenant, id)
	if err != nil {
		return Answer{}, err
	}
	return i.once(ctx, Source{Channel: Called, Kind: "api", Peer: by.Trace.Correlation}, messageOf(by, text, "user"))
}

// messageOf returns the message of a call to an agent. It has the rights, the asker and the labels
// of the call.
func messageOf(by *plugin.Call, text, role string) Message {
	return Message{Text: text, From: by.Principal, Asker: by.Asker, Role: role, Labels: by.Labels}
}

// Fire gives a time of one of the agent's schedules its turn, in the call that the
// schedule makes. kind is cron or once.
func (a *Agents) Fire(ctx context.Context, by *plugin.Call, id, schedule, kind, prompt string) (Answer, error) {
	i, err := a.Instance(ctx, by.Tenant, id)
	if err != nil {
		return Answer{}, err
	}
	if row := i.agent(); row.State != AgentRunning {
		return Answer{}, plugin.Errorf(plugin.CodeDisabled, "agent %s is stopped; mortise agents start %s starts it", id, id)
	}
	ctx, read := Tainting(ctx)
	prompt, err = i.rewritten(ctx, event.ScheduleFired, "prompt", fields{"scheduleId": schedule, "type": kind, "prompt": prompt})
	if err != nil {
		return Answer{}, err
	}
	m := messageOf(by, prompt, "owner")
	m.Labels = plugin.Labels(m.Labels, read())
	return i.once(ctx, Source{Channel: Scheduled, Kind: "schedule", Peer: schedule}, m)
}

// once is a conversation of one message.
func (i *Instance) once(ctx context.Context, s Source, m Message) (Answer, error) {
	conversation, err := i.Open(ctx, s)
	if err != nil {
		return Answer{}, err
	}
	answer, err := i.Turn(ctx, conversation.SessionID, m, Audience{})
	reason := "idle"
	if err != nil {
		reason = "error"
	}
	if failure := i.End(context.WithoutCancel(ctx), conversation.SessionID, reason); err == nil {
		err = failure
	}
	return answer, err
}
