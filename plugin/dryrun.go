package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A DryRecorder makes a call, and every call nested in it, a dry run: it records what
// would have been changed or sent, and nothing of that is done. It belongs to one call
// and its nested calls, and is safe for concurrent use.
type DryRecorder struct {
	// Reads lets requests that only read go out, to other hosts too. Otherwise nothing
	// leaves the host.
	Reads bool

	mu      sync.Mutex // guards the rest
	changes []Change
	leftOut int
	shown   int // bytes of all that was before and after
	kept    map[any]kept
	size    int // of what is kept
}

type kept struct {
	value any
	size  int
}

// Bounds of one dry run.
const (
	MaxChanges = 1000
	maxTarget  = 512      // bytes of a target, and of a summary
	maxShown   = 4 << 10  // bytes of what was before, and of what comes after, of one change
	maxAll     = 1 << 20  // bytes of those of all changes
	maxKept    = 64 << 20 // bytes that later requests of the same dry run find
)

// A Change is what one request of a dry run would have done.
type Change struct {
	Operation string          `json:"operation"`       // that asked for it: plugin/operation
	Service   string          `json:"service"`         // storage
	Method    string          `json:"method"`          // put
	Class     string          `json:"class"`           // local, external, own, read, nested
	Effect    string          `json:"effect"`          // "" where it has none
	Target    string          `json:"target"`          // what would be changed, or where it would be sent
	Before    json.RawMessage `json:"before,omitzero"` // what is there; absent where nothing is
	After     json.RawMessage `json:"after,omitzero"`  // what would be there, or be sent; absent where nothing would
	Summary   string          `json:"summary"`         // what it comes to, in a few words
	Cut       bool            `json:"cut,omitzero"`    // something of it is text that was cut, or left out, for its length
}

// A DryRun is the result of a dry run.
type DryRun struct {
	Verdict Verdict  `json:"verdict"` // of policy: what it would say of the call
	Reasons []string `json:"reasons"`
	Changes []Change `json:"changes"`
	LeftOut int      `json:"left_out,omitzero"`        // changes beyond the first 1,000
	NotRun  string   `json:"not_run_reason,omitempty"` // why the plugin did not run
}

// Note records a change, up to the bounds of a dry run.
func (r *DryRecorder) Note(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changes) == MaxChanges {
		r.leftOut++
		return
	}
	for _, text := range []*string{&c.Target, &c.Summary} {
		if len(*text) > maxTarget {
			*text, c.Cut = strings.ToValidUTF8((*text)[:maxTarget], "")+"…", true
		}
	}
	for _, body := range []*json.RawMessage{&c.Before, &c.After} {
		if len(*body) > maxShown {
			*body, c.Cut = cutJSON(*body), true
		}
		if r.shown+len(*body) > maxAll {
			*body, c.Cut = nil, true
		}
		r.shown += len(*body)
	}
	r.changes = append(r.changes, c)
}

// cutJSON is the beginning of a value, as text that says so.
func cutJSON(raw json.RawMessage) json.RawMessage {
	text := strings.ToValidUTF8(string(raw[:maxShown]), "")
	var cut bytes.Buffer
	enc := json.NewEncoder(&cut)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fmt.Sprintf("%s… (%d bytes)", text, len(raw))); err != nil {
		panic(err) // it is text
	}
	return bytes.TrimSpace(cut.Bytes())
}

// Changes returns the recorded changes in order, and how many were left out.
func (r *DryRecorder) Changes() (changes []Change, leftOut int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Change{}, slices.Clone(r.changes)...), r.leftOut
}

// Keep stores a value under a key for later requests of the dry run. It returns false if
// the bound on stored values is reached.
func (r *DryRecorder) Keep(key, value any, size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := size + 64 - r.kept[key].size
	if r.size+more > maxKept {
		return false
	}
	if r.kept == nil {
		r.kept = map[any]kept{}
	}
	r.kept[key] = kept{value, size + 64}
	r.size += more
	return true
}

// Kept returns the value that an earlier request stored under a key.
func (r *DryRecorder) Kept(key any) (value any, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, found := r.kept[key]
	return k.value, found
}
