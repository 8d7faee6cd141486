package schedule

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Misfire is the policy for times that were missed because no node was running.
type Misfire string

// The ways.
const (
	MisfireSkip    Misfire = "skip"     // nothing
	MisfireOnce    Misfire = "once"     // one run stands for all of them
	MisfireCatchUp Misfire = "catch_up" // the last of them are run, one after the other
)

// An Overlap says what becomes of a time that comes while an earlier run is not
// over.
type Overlap string

// The ways.
const (
	OverlapSkip  Overlap = "skip"  // nothing
	OverlapQueue Overlap = "queue" // it is run afterwards
)

const (
	MaxCatchUp = 100     // missed times that are run
	maxWaiting = 100     // ticks of one schedule that wait for their turn
	maxInput   = 1 << 18 // bytes of the input of a schedule
	maxOverlay = 1 << 14 // bytes of what the host alone decides

	// Grace is how late a run may be and still count as on time: engines look only every
	// few seconds.
	Grace = time.Minute

	keepTicks = 90 * 24 * time.Hour // for which it is known what became of a time
)

// A Schedule is when an operation is run, and in whose name.
type Schedule struct {
	ID        string           `json:"id"`
	Owner     plugin.Principal `json:"-"`
	Asker     string           `json:"-"`         // who is known to have made it, see [plugin.Call]
	Operation string           `json:"operation"` // plugin/operation
	Input     json.RawMessage  `json:"input"`
	Overlay   json.RawMessage  `json:"host,omitzero"` // what the host alone decides
	Spec      string           `json:"spec"`
	Zone      string           `json:"zone"`
	Misfire   Misfire          `json:"misfire"`
	CatchUp   int              `json:"catch_up,omitzero"`
	Overlap   Overlap          `json:"overlap"`
	State     State            `json:"state"`
	Next      *time.Time       `json:"next,omitempty"` // none while it is paused
	LastCall  string           `json:"last_call,omitempty"`
	CreatedAt time.Time        `json:"created_at"`

	// AtOnce asks Create for a first run beside the times, as soon as it is made.
	AtOnce bool `json:"-"`
}

// check fills in what was left open and refuses what cannot be.
func (s *Schedule) check() (Spec, error) {
	if s.Misfire == "" {
		s.Misfire = MisfireOnce
	}
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if len(s.Input) == 0 {
		s.Input = json.RawMessage("{}")
	}
	switch {
	case !slices.Contains([]Misfire{MisfireSkip, MisfireOnce, MisfireCatchUp}, s.Misfire):
		return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "misfire is skip, once or catch_up, not %.40q", s.Misfire)
	case !slices.Contains([]Overlap{OverlapSkip, OverlapQueue}, s.Overlap):
		return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "overlap is skip or queue, not %.40q", s.Overlap)
	case s.Misfire == MisfireCatchUp && (s.CatchUp < 1 || s.CatchUp > MaxCatchUp):
		return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "catch_up is for 1 to %d missed times, not %d", MaxCatchUp, s.CatchUp)
	case s.Misfire != MisfireCatchUp && s.CatchUp != 0:
		return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "how many missed times are run is a matter of misfire catch_up, not of %s", s.Misfire)
	case len(s.Input) > maxInput:
		return Spec{}, plugin.Errorf(plugin.CodeInputTooLarge, "the input has %d bytes; that of a schedule has at most %d", len(s.Input), maxInput)
	case len(s.Overlay) > maxOverlay:
		return Spec{}, plugin.Errorf(plugin.CodeInputTooLarge, "what the host decides has %d bytes; at most %d are kept", len(s.Overlay), maxOverlay)
	}
	return Parse(s.Spec, s.Zone)
}

// specOf reads the spec of a row, which was read before.
func specOf(row *Row) (Spec, error) { return Parse(row.Spec, row.Zone) }

// viewOf is a row as others see it.
func viewOf(row *Row) Schedule {
	s := Schedule{
		ID: row.ID, Owner: plugin.Principal{Type: row.OwnerType, ID: row.OwnerID, Scopes: row.Scopes}, Asker: row.Asker, Operation: row.Operation,
		Input: json.RawMessage(row.Input), Spec: row.Spec, Zone: row.Zone, Misfire: Misfire(row.Misfire), CatchUp: int(row.CatchUp), Overlap: Overlap(row.Overlap),
		State: row.State, LastCall: row.LastCall, CreatedAt: row.CreatedAt,
	}
	if row.Overlay != "" {
		s.Overlay = json.RawMessage(row.Overlay)
	}
	if row.State == Active {
		s.Next = &row.NextAt
	}
	return s
}

// details are what a refused operation comes with.
func details(m *plugin.Manifest) json.RawMessage {
	names := schedulable(m)
	if names == nil {
		names = []string{}
	}
	raw, err := json.Marshal(map[string]any{"error": "invalid_feed_op", "allowed": names})
	if err != nil {
		panic(err) // texts
	}
	return raw
}
