package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/near"
)

// A registration is what a plugin said when it subscribed.
type registration struct {
	Event       string   `json:"event"`
	Priority    *float64 `json:"priority"`
	FailureMode *string  `json:"failureMode"`
	Before      []string `json:"before"`
	After       []string `json:"after"`
	DeadlineMs  *float64 `json:"deadlineMs"`
	Unknown     []string `json:"unknown"` // options that there are not

	shape    event.Shape
	deadline time.Duration
}

// A desk answers the requests of one instance's code. The caller of the instance sets
// its context first.
type desk struct {
	instance    *Instance
	environment Environment // with defaults
	log         *journal

	ctx         context.Context // of the present call
	waited      time.Duration   // by the present call
	registering bool
	handlers    []registration
	tools       []Tool
}

var _ host = (*desk)(nil)

// begin prepares for the requests of one call.
func (d *desk) begin(ctx context.Context) { d.ctx, d.waited = ctx, 0 }

// ask implements host.
func (d *desk) ask(what request, text string) (string, error) {
	switch what {
	case askOn:
		return d.on(text)
	case askAdd:
		return "", d.add(text)
	case askOff:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(d.handlers) {
			return "", errors.New("no such subscription")
		}
		d.instance.off[n].Store(true)
		return "", nil
	case askLog:
		return "", d.log.line(text)
	}
	begun := time.Now()
	left := d.environment.Limits.Wait - d.waited
	if left <= 0 {
		return "", fmt.Errorf("the plugin has waited for the host for %s, which is all that one call may", d.environment.Limits.Wait)
	}
	ctx, cancel := context.WithTimeout(d.instance.enclose(d.ctx), left)
	defer cancel()
	defer func() { d.waited += time.Since(begun) }()
	switch what {
	case askGet:
		return d.get(ctx, text)
	case askSearch:
		return d.search(ctx, text)
	case askSession:
		return d.session(ctx)
	}
	return "", fmt.Errorf("the host does not know request %d", what)
}

// options are those of bus.on.
var options = []string{"priority", "failureMode", "before", "after", "deadlineMs"}

func eventNames() (names []string) {
	for _, e := range event.Catalogue {
		names = append(names, e.Name)
	}
	return names
}

// on takes a subscription and answers with its number.
func (d *desk) on(text string) (string, error) {
	var r registration
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return "", errors.New("the options of bus.on are {priority, failureMode, before, after, deadlineMs}: " + err.Error())
	}
	if !d.registering {
		return "", errors.New("bus.on works while register runs, not later")
	}
	if len(d.handlers) >= maxHandlers {
		return "", fmt.Errorf("a plugin has at most %d handlers", maxHandlers)
	}
	e, known := event.Find(r.Event)
	if !known {
		return "", fmt.Errorf("there is no event %q%s", cut(r.Event, 100), near.Hint(r.Event, eventNames()))
	}
	if len(r.Unknown) > 0 {
		return "", fmt.Errorf("bus.on has no option %q%s; its options are %s", cut(r.Unknown[0], 100), near.Hint(r.Unknown[0], options), strings.Join(options, ", "))
	}
	r.shape, r.deadline = e.Shape, d.environment.Limits.Deadline
	switch {
	case r.FailureMode != nil && *r.FailureMode != string(event.Skip) && *r.FailureMode != string(event.Fail):
		return "", fmt.Errorf("failureMode is \"skip\" or \"fail\", not %q", cut(*r.FailureMode, 40))
	case len(r.Before) > event.MaxNeighbours || len(r.After) > event.MaxNeighbours:
		return "", fmt.Errorf("before and after name at most %d plugins each", event.MaxNeighbours)
	}
	if r.DeadlineMs != nil {
		most := d.environment.Limits.MaxDeadline
		if !(*r.DeadlineMs >= 1 && *r.DeadlineMs <= float64(most.Milliseconds())) {
			return "", fmt.Errorf("deadlineMs is between 1 and %d", most.Milliseconds())
		}
		r.deadline = time.Duration(*r.DeadlineMs * float64(time.Millisecond))
	}
	d.handlers = append(d.handlers, r)
	return strconv.Itoa(len(d.handlers) - 1), nil
}

// get answers with a value of the agent's memory, "" if there is none.
func (d *desk) get(ctx context.Context, text string) (string, error) {
	var q struct{ Key string }
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return "", errors.New("memory.get takes a key")
	}
	if d.environment.Memory == nil {
		return "", nil
	}
	value, found, err := d.environment.Memory.Get(ctx, q.Key)
	if err != nil {
		return "", d.failed("memory.get", err)
	}
	if !found {
		return "", nil
	}
	raw, err := json.Marshal(value)
	return string(raw), err
}

// search answers with what was found, a JSON array.
func (d *desk) search(ctx context.Context, text string) (string, error) {
	var q struct {
		Query string
		Limit *float64
	}
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return "", errors.New("memory.search takes a text and {limit}")
	}
	limit := defaultFound
	if q.Limit != nil {
		if !(*q.Limit >= 1 && *q.Limit <= maxFound) {
			return "", fmt.Errorf("the limit of memory.search is between 1 and %d", maxFound)
		}
		limit = int(*q.Limit)
	}
	if d.environment.Memory == nil {
		return "[]", nil
	}
	found, err := d.environment.Memory.Search(ctx, q.Query, limit)
	if err != nil {
		return "", d.failed("memory.search", err)
	}
	if len(found) == 0 {
		return "[]", nil
	}
	return string(found), nil
}

func (d *desk) session(ctx context.Context) (string, error) {
	var s Session
	if d.environment.Session != nil {
		s = d.environment.Session(ctx)
	}
	raw, err := json.Marshal(s)
	return string(raw), err
}

// failed tells the code that the host could not answer, and the log why.
func (d *desk) failed(what string, err error) error {
	d.log.write("error", what+" failed: "+err.Error(), nil)
	return errors.New(what + ": the host could not answer")
}
