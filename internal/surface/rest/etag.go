package rest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// maxTags bounds the bytes of the ETags that a request names.
const maxTags = 1024

// A Seen is what a client has of a resource already.
type Seen struct {
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"ETags that the caller has: where one is that of the answer, it is 304 without a body."`
}

// A Match is what a change is to find.
type Match struct {
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"ETags: where none is that of the resource, nothing is changed and the answer is 412."`
}

// A Tagged is an answer with its ETag.
type Tagged[T any] struct {
	Status int
	ETag   string `header:"ETag" doc:"Strong: another representation has another."`
	Body   T
}

// tagOf returns the ETag of a representation: a hash of its canonical JSON.
func tagOf(v any) (string, error) {
	raw, err := json2.Marshal(v, json2.Deterministic(true))
	sum := sha256.Sum256(raw)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`, err
}

// tagged is an answer, or that the caller has it already.
func tagged[T any](q *request, v T) (*Tagged[T], error) {
	tag, err := tagOf(v)
	if err != nil {
		return nil, err
	}
	out := &Tagged[T]{Status: http.StatusOK, ETag: tag, Body: v}
	if q.Method == http.MethodGet && names(q.Header.Values("If-None-Match"), tag, true) {
		out.Status = http.StatusNotModified
	}
	return out, nil
}

// names reports whether a header names a tag, or any. A weak one is none, unless weakly
// is enough.
func names(header []string, tag string, weakly bool) bool {
	list := strings.Join(header, ",")
	if len(list) > maxTags {
		return false
	}
	for _, given := range strings.Split(list, ",") {
		given = strings.TrimSpace(given)
		if weakly {
			given = strings.TrimPrefix(given, "W/")
		}
		if given == tag || given == "*" {
			return true
		}
	}
	return false
}

// change does what changes a thing. Where the request names ETags, the thing is as now
// returns it, which asks for the rights to see it; and what is kept of it is the same when
// it is changed, in one transaction.
func change[T, O any](ctx context.Context, q *request, thing host.Thing, now func(ctx context.Context) (T, error), do func(ctx context.Context) (O, error)) (O, error) {
	var none O
	given := q.Header.Values("If-Match")
	if len(given) == 0 {
		return do(ctx)
	}
	ctx, done, err := q.api.Expect(ctx, thing)
	if err != nil {
		return none, err
	}
	defer func() { _ = done() }() // a second time it does nothing
	seen, err := now(ctx)
	if err != nil {
		return none, err
	}
	tag, err := tagOf(seen)
	if err != nil {
		return none, err
	}
	if !names(given, tag, false) {
		return none, refused(0, plugin.CodeConflict, "it is not what If-Match names; get it again", Place{Pointer: "If-Match", Detail: "it names no ETag of the resource as it is now"})
	}
	out, err := do(ctx)
	if err == nil {
		err = done()
	}
	return out, err
}

// unseen refuses a change that takes what the caller does not say they have seen.
func unseen(q *request, what string) error {
	if given := q.Header.Values("If-Match"); len(given) > 0 && strings.TrimSpace(strings.Join(given, ",")) != "*" {
		return nil
	}
	return refused(http.StatusPreconditionRequired, plugin.CodeConflict, what+" are changed as a whole: name the ETag that you have seen in If-Match", Place{Pointer: "If-Match", Detail: "it is missing"})
}
