package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// member returns the member of an object; null is none.
func member(object jsontext.Value, name string) (value jsontext.Value, found bool) {
	for m := protocol.ScanMembers(object); m.Next(); {
		if string(m.Name) == name {
			return m.Value, m.Value.Kind() != 'n'
		}
	}
	return nil, false
}

// lookup returns what a dotted path leads to, and the names on the way. A name
// may have dots itself; the longest is tried first.
func lookup(object jsontext.Value, path string) (value jsontext.Value, trail []string, found bool) {
	if value, found := member(object, path); found {
		return value, []string{path}, true
	}
	for i := len(path) - 1; i > 0; i-- {
		if path[i] != '.' {
			continue
		}
		inner, found := member(object, path[:i])
		if !found {
			continue
		}
		if value, trail, found := lookup(inner, path[i+1:]); found {
			return value, append([]string{path[:i]}, trail...), true
		}
	}
	return nil, nil, false
}

// elements returns the elements of a list that is known to be valid JSON.
func elements(list jsontext.Value) ([]jsontext.Value, error) {
	var all []jsontext.Value
	err := json.Unmarshal(list, &all)
	return all, err
}

// at returns what a JSON pointer (RFC 6901) leads to.
func at(value jsontext.Value, pointer string) (jsontext.Value, error) {
	rest := pointer
	for rest != "" {
		token, next, more := strings.Cut(rest[1:], "/")
		if rest = ""; more {
			rest = "/" + next
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var found bool
		switch value.Kind() {
		case '{':
			for m := protocol.ScanMembers(value); m.Next(); {
				if string(m.Name) == token {
					value, found = m.Value, true
					break
				}
			}
		case '[':
			all, err := elements(value)
			n, convErr := strconv.Atoi(token)
			if err == nil && convErr == nil && n >= 0 && n < len(all) && strconv.Itoa(n) == token {
				value, found = all[n], true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is nothing at %.200s", pointer)
		}
	}
	return value, nil
}

// text returns a string's text, and any other scalar as it is spelled.
func text(value jsontext.Value) (string, bool) {
	switch value.Kind() {
	case '"':
		plain, err := jsontext.AppendUnquote(nil, value)
		return string(plain), err == nil
	case '0', 't', 'f':
		return string(value), true
	}
	return "", false
}

// encode writes a value the same way every time.
func encode(value any) (jsontext.Value, error) {
	return json.Marshal(value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
