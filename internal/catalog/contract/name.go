package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// MaxTimeout is the longest that one call may be allowed to take.
const MaxTimeout = 24 * time.Hour

// The classes of timeout that have a name.
var Timeouts = map[string]time.Duration{"fast": 30 * time.Second, "medium": 120 * time.Second, "slow": 600 * time.Second}

var nameForm = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

var toolForm = pattern.New(`^[a-z0-9_]{1,128}$`)

// ToolName reports whether a plugin may be called name where its contract lets
// names begin with a digit.
func ToolName(name string) bool { return toolForm.MatchString(name) }

// ValidName reports whether a plugin or an operation may be called name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

const NameRule = "a name is a letter and up to 127 letters, digits, dots, hyphens and underscores"

// Name returns the name here.
func (v Value) Name() string {
	text, ok := v.Is.(string)
	switch {
	case !v.There:
	case !ok:
		v.Wrong("text")
	case !ValidName(text):
		v.Problem("%q is no name: %s", text, NameRule)
	default:
		return text
	}
	return ""
}

// Version returns the semantic version here.
func (v Value) Version() string {
	text, ok := v.Is.(string)
	switch {
	case !v.There:
	case !ok:
		v.Wrong("text")
	default:
		if _, err := semver.StrictNewVersion(text); err != nil {
			v.Problem("%q is no semantic version, such as 1.2.0", text)
			return ""
		}
		return text
	}
	return ""
}

// Timeout returns the time here, def if there is none.
func (v Value) Timeout(def time.Duration) time.Duration {
	if !v.There {
		return def
	}
	text, ok := v.Is.(string)
	if n, isNumber := v.Is.(Number); isNumber {
		v.Problem("the number %s has no unit: write %ss, for instance", n, n)
		return def
	}
	if !ok {
		v.Wrong("text")
		return def
	}
	d, err := parseTimeout(text)
	if err != nil {
		v.Problem("%v", err)
		return def
	}
	return d
}

func parseTimeout(text string) (time.Duration, error) {
	if class, named := Timeouts[text]; named {
		return class, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is none of fast, medium, slow and no duration, such as 90s", text)
	case d <= 0:
		return 0, fmt.Errorf("%s is no time at all", text)
	case d > MaxTimeout:
		return 0, fmt.Errorf("%s is longer than %s", text, "24h")
	}
	return d, nil
}

// A Reference names an operation, or a plugin that has one, in the versions
// that a constraint allows: name[/op][@constraint].
type Reference struct {
	Plugin     string
	Operation  string // "" for the one there is
	Constraint string // as written; "" for any release
}

// ParseReference reads name[/op][@constraint]. Whether the constraint can be
// understood is checked too.
func ParseReference(text string) (Reference, error) {
	names, constraint, constrained := strings.Cut(text, "@")
	name, op, hasOp := strings.Cut(names, "/")
	switch {
	case text == "":
		return Reference{}, errors.New("an operation is named name, name/operation or name/operation@version; here is nothing")
	case !Referable(name) || hasOp && !Referable(op):
		return Reference{}, fmt.Errorf("%q is not of the form name/operation@version", Clip(text))
	case constrained && strings.TrimSpace(constraint) == "":
		return Reference{}, fmt.Errorf("%q names no version after the @", Clip(text))
	}
	if constrained {
		if _, err := semver.NewConstraint(constraint); err != nil {
			return Reference{}, fmt.Errorf("%q is no version or range of versions", Clip(constraint))
		}
	}
	return Reference{Plugin: name, Operation: op, Constraint: constraint}, nil
}

// Referable reports whether a plugin or an operation of any contract may be
// called name: tools of Event Mill may begin with a digit.
func Referable(name string) bool { return ValidName(name) || ToolName(name) }

// Clip keeps an error readable whatever it quotes.
func Clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// TaintLabels are the labels that an operation may declare.
var TaintLabels = []string{plugin.Untrusted, plugin.Private}

// SortOperations puts operations into the order of their names.
func SortOperations(ops []*plugin.Operation) {
	slices.SortFunc(ops, func(a, b *plugin.Operation) int { return strings.Compare(a.Name, b.Name) })
}
