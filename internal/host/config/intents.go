package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Intents say which agent is asked where an adapter has made an intent of an
// event: agents by the intent's type, whole or by a beginning of it that ends
// in ".*".
type Intents map[string]string

// intentPattern is what adapters may give as a type, or its beginning and ".*".
var intentPattern = pattern.New(`^[A-Z][A-Za-z0-9]*(\.[A-Z][A-Za-z0-9]*)*\.([A-Z][A-Za-z0-9]*|\*)$`)

// maxIntent is the longest type of an intent.
const maxIntent = 200

// Agent returns the agent that an intent of this type goes to. Of several
// patterns that fit the longest counts.
func (i Intents) Agent(intent string) (agent string, found bool) {
	longest := 0
	for pattern, ref := range i {
		beginning, open := strings.CutSuffix(pattern, "*")
		fits := intent == pattern || open && strings.HasPrefix(intent, beginning)
		if fits && len(beginning) > longest { // an exact one is longer than any beginning of it
			longest, agent, found = len(beginning), ref, true
		}
	}
	return agent, found
}

// check refuses patterns that nothing fits, and agents that cannot be.
func (i Intents) check() (errs []error) {
	for _, pattern := range slices.Sorted(maps.Keys(i)) {
		if !intentPattern.MatchString(pattern) || len(pattern) > maxIntent {
			errs = append(errs, fmt.Errorf("intents: %q is no type of an intent; write one like Support.QA.Answer, or a beginning like Support.*", pattern))
		}
		if agent := i[pattern]; agent == "" || strings.ContainsFunc(agent, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			errs = append(errs, fmt.Errorf("intents.%s: %q is no agent; write name, name/op or name/op@versions", pattern, agent))
		}
	}
	return errs
}
