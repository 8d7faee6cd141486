package kb

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// costly returns a value for an operator and a field's value that it is costly to hold it
// against: lists in lists, none of which is contained, and wildcards that nearly fit.
func costly(r *rand.Rand, shape, operator string) (asked json.RawMessage, value any) {
	list := func(n int, item func(int) any) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = item(i)
		}
		return all
	}
	inner := func(n int) func(int) any {
		return func(int) any { return list(n, func(i int) any { return fmt.Sprint("a", i) }) }
	}
	var wanted any
	switch {
	case shape == textField:
		letter := []string{"a", "é", "_", "a%"}[r.IntN(4)]
		wanted, value = strings.Repeat(letter, 1000)+"_b", strings.Repeat("a", 1<<20)
	case operator == "has_key":
		wanted, value = "b", list(1<<20, func(int) any { return "a" })
	case operator == "path_contains":
		wanted = map[string]any{"path": "m", "value": list(200, inner(3))}
		value = map[string]any{"m": list(1<<14, inner(8))}
	case shape == objectField:
		wanted = map[string]any{"m": list(200, inner(3))}
		value = map[string]any{"m": list(1<<14, inner(8))}
	default:
		wanted, value = list(400, func(i int) any { return fmt.Sprint("b", i) }), list(1<<20, func(int) any { return "a" })
	}
	asked, err := json.Marshal(wanted)
	if err != nil {
		panic(err)
	}
	return asked, value
}

// Every operator of every field stops without steps, and with its context.
func TestEveryOperatorTakesSteps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for of, fields := range fieldShapes {
		for field, shape := range fields {
			for _, operator := range fieldOperators[shape] {
				asked, value := costly(r, shape, operator)
				c, _, err := of.Condition(field, operator, asked)
				if err != nil {
					t.Fatalf("%s %s: %v", field, operator, err)
				}
				const few = 500
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				for _, work := range []*budget.Steps{budget.NewSteps(t.Context(), few), budget.NewSteps(ended, findSteps)} {
					met := c.meets(work, value)
					if free := operator == "eq"; free == (work.Err() != nil) || met {
						t.Errorf("%s %s %s: met %t, %v", of, field, operator, met, work.Err())
					}
				}
			}
		}
	}
}

// What a search for a value may take is enough for a linear look at all there may be.
func TestTheStepsOfASearchAreEnough(t *testing.T) {
	t.Parallel()
	c, _, err := OfDocuments.Condition("content", "icontains", json.RawMessage(`"a%needle_of 4,000 bytes%z"`))
	if err != nil {
		t.Fatal(err)
	}
	work := budget.NewSteps(t.Context(), findSteps)
	text := strings.Repeat("some text that has nothing to do with it. ", 1<<14)
	for read := 0; read < maxFindBytes/16; read += len(text) {
		c.meets(work, text)
	}
	if left := findSteps - work.Left(); work.Err() != nil || left > findSteps/12 {
		t.Errorf("a sixteenth of the text took %d of %d steps, %v", left, findSteps, work.Err())
	}
}
