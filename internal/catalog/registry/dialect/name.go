package dialect

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// maxTimeout is the longest that one call may be allowed to take.
const maxTimeout = 24 * time.Hour

// The classes of timeout that have a name.
var timeouts = map[string]time.Duration{"fast": 30 * time.Second, "medium": 120 * time.Second, "slow": 600 * time.Second}

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// ValidName reports whether a plugin or an operation may be called name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

const nameRule = "a name is a letter and up to 127 letters, digits, dots, hyphens and underscores"

// name returns the name here.
func (v value) name() string {
	text, ok := v.is.(string)
	switch {
	case !v.there:
	case !ok:
		v.wrong("text")
	case !ValidName(text):
		v.problem("%q is no name: %s", text, nameRule)
	default:
		return text
	}
	return ""
}

// version returns the semantic version here.
func (v value) version() string {
	text, ok := v.is.(string)
	switch {
	case !v.there:
	case !ok:
		v.wrong("text")
	default:
		if _, err := semver.StrictNewVersion(text); err != nil {
			v.problem("%q is no semantic version, such as 1.2.0", text)
			return ""
		}
		return text
	}
	return ""
}

// timeout returns the time here, def if there is none.
func (v value) timeout(def time.Duration) time.Duration {
	if !v.there {
		return def
	}
	text, ok := v.is.(string)
	if n, isNumber := v.is.(number); isNumber {
		v.problem("the number %s has no unit: write %ss, for instance", n, n)
		return def
	}
	if !ok {
		v.wrong("text")
		return def
	}
	d, err := parseTimeout(text)
	if err != nil {
		v.problem("%v", err)
		return def
	}
	return d
}

func parseTimeout(text string) (time.Duration, error) {
	if class, named := timeouts[text]; named {
		return class, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is none of fast, medium, slow and no duration, such as 90s", text)
	case d <= 0:
		return 0, fmt.Errorf("%s is no time at all", text)
	case d > maxTimeout:
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
	case !referable(name) || hasOp && !referable(op):
		return Reference{}, fmt.Errorf("%q is not of the form name/operation@version", clip(text))
	case constrained && strings.TrimSpace(constraint) == "":
		return Reference{}, fmt.Errorf("%q names no version after the @", clip(text))
	}
	if constrained {
		if _, err := semver.NewConstraint(constraint); err != nil {
			return Reference{}, fmt.Errorf("%q is no version or range of versions", clip(constraint))
		}
	}
	return Reference{Plugin: name, Operation: op, Constraint: constraint}, nil
}

// referable reports whether a plugin or an operation of any contract may be
// called name: tools of Event Mill may begin with a digit.
func referable(name string) bool { return ValidName(name) || toolName.MatchString(name) }

// clip keeps an error readable whatever it quotes.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
