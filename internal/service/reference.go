package service

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	referenceName = "reference_data"
	referenceGet  = "reference_data.get"
)

// Reference is the data that all plugins may look things up in.
type Reference interface {
	// Get returns the value of a key; found is false where there is none.
	Get(ctx context.Context, key string, most int) (value json.RawMessage, found bool, err error)
}

// A looked is the value of reference_data.get.
type looked struct {
	Found bool           `json:"found"`
	Value jsontext.Value `json:"value"`
}

// referenceLookUp answers reference_data.get.
func referenceLookUp(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Key string `json:"key"`
	}
	if err := decode(referenceGet, args, &in); err != nil {
		return nil, err
	}
	if n := len(in.Key); n == 0 || n > maxWord {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: the key has %d bytes; it has 1 to %d", referenceGet, n, maxWord)
	}
	answer := looked{Value: jsontext.Value("null")}
	if g.broker.Reference == nil {
		return answer, nil
	}
	value, found, err := g.broker.Reference.Get(ctx, in.Key, g.broker.maxAnswer())
	if err != nil {
		return nil, err
	}
	if found {
		answer = looked{Found: true, Value: jsontext.Value(value)}
	}
	return answer, nil
}
