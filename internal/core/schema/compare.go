package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// A Direction says which way values go, and so what breaks those who rely on a
// schema.
type Direction int

// The directions.
const (
	Input  Direction = iota // callers send it: what was accepted must stay accepted
	Output                  // callers read it: what was promised must stay promised
)

// An Impact is what a change means for those who rely on the schema.
type Impact string

// The impacts.
const (
	Breaking Impact = "breaking" // something that worked works no longer
	Unclear  Impact = "unclear"  // it cannot be judged
	Additive Impact = "additive" // all that worked still works
)

// A Change is one difference between two schemas, other than in annotations.
type Change struct {
	Pointer string `json:"pointer"` // in the schema; "the top" for all of it
	Impact  Impact `json:"impact"`
	Says    string `json:"says"` // what changed, as the end of a sentence that begins with the pointer
}

func (c Change) String() string { return fmt.Sprintf("at %s: %s", c.Pointer, c.Says) }

// Compare returns what changed from one schema to another, and nothing where
// they differ in annotations alone: description, title, examples, $comment,
// deprecated. An absent schema is one that accepts everything. The error says
// which of the two is no schema.
//
// Where no change of an input is breaking or unclear, no value that the earlier
// schema accepts is refused by the later. Where no change of an output is
// breaking or unclear, every value that the later schema accepts is accepted by
// the earlier, new members aside: who reads a result passes over members it
// does not know. The converse does not hold: what is beyond a comparison of
// keyword with keyword counts as unclear or as breaking.
func Compare(earlier, later []byte, d Direction) ([]Change, error) {
	before, err := parseSide(earlier)
	if err != nil {
		return nil, fmt.Errorf("the earlier schema: %w", err)
	}
	after, err := parseSide(later)
	if err != nil {
		return nil, fmt.Errorf("the later schema: %w", err)
	}
	if same(before.root, after.root) {
		return nil, nil
	}
	c := &comparison{
		direction: d, running: map[pair]bool{}, left: maxComparisons,
		work: budget.NewSteps(context.Background(), maxComparing),
	}
	if d == Input {
		c.sub, c.sup = before, after
	} else {
		c.sub, c.sup = after, before
	}
	changes := c.fits(c.sub.top(), c.sup.top(), nil)
	if before.draft7 != after.draft7 {
		changes = append(changes, c.unclear(nil, "$schema", "it is of another draft of JSON Schema"))
	}
	changes = distinct(changes)
	if len(changes) == 0 {
		says := "it accepts other values than before, and all that it did"
		if d == Output {
			says = "it promises more than before"
		}
		changes = append(changes, Change{Pointer(nil), Additive, says})
	}
	return changes, nil
}

// Worst returns the gravest impact among changes, "" where there is none.
func Worst(changes []Change) Impact {
	for _, impact := range []Impact{Breaking, Unclear, Additive} {
		if slices.ContainsFunc(changes, func(c Change) bool { return c.Impact == impact }) {
			return impact
		}
	}
	return ""
}

// distinct drops what was said before, at most maxChanges remain.
func distinct(changes []Change) []Change {
	var kept []Change
	for _, change := range changes {
		if !slices.Contains(kept, change) {
			kept = append(kept, change)
		}
	}
	slices.SortStableFunc(kept, func(a, b Change) int { return severity(a.Impact) - severity(b.Impact) })
	return kept[:min(len(kept), maxChanges)]
}

// maxChanges is how many changes are reported; the gravest go first.
const maxChanges = 100

func severity(i Impact) int { return slices.Index([]Impact{Breaking, Unclear, Additive}, i) }

// A side is one of the two schemas that are compared.
type side struct {
	root     any
	draft7   bool
	compiler *jsonschema.Compiler
}

func parseSide(raw []byte) (*side, error) {
	if _, err := Compile(raw); err != nil {
		return nil, err
	}
	compiler, expressions := newCompiler()
	expressions.compiled = true // once, in Compile
	s := &side{root: true, compiler: compiler}
	if len(raw) > 0 {
		var err error
		if s.root, err = jsonschema.UnmarshalJSON(strings.NewReader(string(raw))); err != nil {
			return nil, err
		}
	}
	if err := s.compiler.AddResource(resource, s.root); err != nil {
		return nil, err
	}
	if object, ok := s.root.(map[string]any); ok {
		name, _ := object["$schema"].(string)
		s.draft7 = strings.Contains(name, "draft-07")
	}
	return s, nil
}

// top returns the whole schema.
func (s *side) top() node { return s.node(s.root, "") }

// node returns the schema that stands at a pointer.
func (s *side) node(value any, pointer string) node {
	n := node{side: s, at: pointer}
	switch value := value.(type) {
	case bool:
		n.never = !value
	case map[string]any:
		n.keys = value
		if ref, ok := value["$ref"]; ok && s.draft7 { // its neighbours count for nothing there
			n.keys = map[string]any{"$ref": ref}
		}
	}
	return n
}

// follow returns the schema that a reference within this one means.
func (s *side) follow(ref string) (node, bool) {
	if object, ok := s.root.(map[string]any); ok && object["$id"] != nil {
		return node{}, false // it may change what references mean
	}
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || strings.ContainsRune(pointer, '%') || pointer != "" && pointer[0] != '/' {
		return node{}, false
	}
	value := s.root
	for _, part := range strings.Split(pointer, "/")[min(1, strings.Count(pointer, "/")):] {
		if pointer == "" {
			break
		}
		object, ok := value.(map[string]any)
		if !ok {
			return node{}, false
		}
		if value, ok = object[unescape.Replace(part)]; !ok {
			return node{}, false
		}
	}
	return s.node(value, pointer), true
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)
