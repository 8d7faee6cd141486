package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
)

// A bound is a keyword that limits by a number.
type bound struct {
	keyword string
	types   []string
	upper   bool
}

var sizes = []bound{
	{"minLength", []string{"string"}, false}, {"maxLength", []string{"string"}, true},
	{"minItems", []string{"array"}, false}, {"maxItems", []string{"array"}, true},
	{"minProperties", []string{"object"}, false}, {"maxProperties", []string{"object"}, true},
}

// bounds compares what limits by a number.
func (c *comparison) bounds(sub, sup node, path []string) []Change {
	var changes []Change
	compare := func(k string, follows bool, unreadable bool) {
		switch {
		case reflect.DeepEqual(sub.keys[k], sup.keys[k]) && sub.has(k):
		case unreadable:
			changes = append(changes, c.unclear(path, k, "its number is too long to compare"))
		case !follows:
			was, is := show(sub.keys[k]), show(sup.keys[k])
			if !sub.has(k) {
				was = "none"
			}
			if c.direction == Output {
				was, is = is, was
			}
			changes = append(changes, c.breaking(path, k, fmt.Sprintf("tighter than before: %s, and was %s", is, was), fmt.Sprintf("wider than before: %s, and was %s", is, was)))
		}
	}
	for _, b := range sizes {
		limit, there, ok := number(sup.keys, b.keyword)
		if !there || !sub.some(b.types...) {
			continue
		}
		own, has, ownOK := number(sub.keys, b.keyword)
		follows := !b.upper && ok && limit.Sign() <= 0
		if has && ok && ownOK {
			follows = follows || b.upper && own.Cmp(limit) <= 0 || !b.upper && own.Cmp(limit) >= 0
		}
		compare(b.keyword, follows, !ok || !ownOK)
	}
	if !sub.some("number", "integer") {
		return changes
	}
	for _, ends := range [][]string{{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}} {
		for _, k := range ends {
			limit, there, ok := number(sup.keys, k)
			if !there {
				continue
			}
			follows, unreadable := false, !ok
			for _, own := range ends {
				value, has, ownOK := number(sub.keys, own)
				if unreadable = unreadable || !ownOK; !has || unreadable {
					continue
				}
				sign := value.Cmp(limit)
				if strings.HasSuffix(strings.ToLower(k), "maximum") {
					sign = -sign
				}
				strict := strings.HasPrefix(k, "exclusive") && !strings.HasPrefix(own, "exclusive")
				follows = follows || sign > 0 || sign == 0 && !strict
			}
			compare(k, follows, unreadable)
		}
	}
	if step, there, ok := number(sup.keys, "multipleOf"); there {
		own, has, ownOK := number(sub.keys, "multipleOf")
		follows := false
		if has && ok && ownOK && step.Sign() != 0 {
			follows = new(big.Rat).Quo(own, step).IsInt()
		}
		compare("multipleOf", follows, !ok || !ownOK)
	}
	return changes
}

// number reads a number exactly. One that is long, or has a large exponent, is
// not read.
func number(keys map[string]any, keyword string) (value *big.Rat, there, ok bool) {
	raw, there := keys[keyword]
	if !there {
		return nil, false, true
	}
	text, ok := raw.(json.Number)
	if !ok || len(text) > 40 || strings.ContainsAny(string(text), "eE") {
		return nil, true, false
	}
	value, ok = new(big.Rat).SetString(string(text))
	return value, true, ok
}
