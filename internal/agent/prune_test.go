package agent_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/store"
)

// What came in is known again for as long as it is kept. The conversation goes on
// whatever was forgotten.
func TestDeliveriesAreForgotten(t *testing.T) {
	t.Parallel()
	d := channels(t)
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	if err := d.ForgetDeliveries(t.Context(), "t", time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r, err := d.send("m1", `{"text":"hi","sender":"U1"}`); err != nil || !r.Seen {
		t.Errorf("before its time is over: %+v, %v", r, err)
	}
	if err := d.ForgetDeliveries(t.Context(), "t", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if tenants, err := d.Store.DeliveredBefore(t.Context(), time.Now().Add(time.Hour), 5); err != nil || len(tenants) != 0 {
		t.Errorf("there remain deliveries of %q, %v", tenants, err)
	}
	if got := d.got("m1", `{"text":"hi","sender":"U1"}`); got != session {
		t.Errorf("it is in %s, and was in %s", got, session)
	}
	if _, err := d.End(t.Context(), "t", session, "user"); err != nil {
		t.Fatal(err)
	}
	next := d.got("m2", `{"text":"hi","sender":"U1"}`)
	if err := d.ForgetDeliveries(t.Context(), "t", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := d.got("m3", `{"text":"hi","sender":"U1"}`); got != next || got == session {
		t.Errorf("after another conversation it is in %s", got)
	}
}

// An instance that only served a chat is let go once it is idle; one of an agent that was
// started, that has a turn, or that was used since, is not.
func TestIdleInstancesAreLetGo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.hire("chatty", agent.Settings{})
	d.state("chatty", store.AgentStopped)
	var told []string
	kit := d.equip("chatty", "watch", event.Subscription{Event: event.AgentStopped, Listen: func(_ context.Context, p *event.Payload) error {
		d.note(&told, p.String("reason"))
		return nil
	}})
	now := time.Now()
	d.Options.Now = func() time.Time { return now }
	i, session := d.open("chatty")
	if _, err := d.Instance(t.Context(), "t", "one"); err != nil {
		t.Fatal(err)
	}
	if keys := d.IdleInstances(now, 10); len(keys) != 0 {
		t.Errorf("at once: %+v", keys)
	}
	now = now.Add(time.Hour)
	if keys := d.IdleInstances(now, 10); !slices.Equal(keys, []agent.Key{{Tenant: "t", Agent: "chatty"}}) {
		t.Errorf("an hour later: %+v", keys)
	}
	if _, err := i.Turn(t.Context(), session, hello("hi"), agent.Audience{}); err != nil {
		t.Fatal(err)
	}
	if err := d.StopIdle("t", "chatty", now); err != nil || d.Local("t", "chatty") == nil {
		t.Errorf("used meanwhile: %v", err)
	}
	now = now.Add(time.Hour)
	if err := d.StopIdle("t", "chatty", now); err != nil || d.Local("t", "chatty") != nil || kit.shut != 1 || !slices.Equal(told, []string{"idle"}) {
		t.Errorf("it was told %q, and closed %d plugins: %v", told, kit.shut, err)
	}
	if again, _ := d.open("chatty"); again == i {
		t.Error("a new chat has the old instance")
	}
}
