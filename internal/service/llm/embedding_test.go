package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// A loom is a server that makes vectors in one provider's format and takes
// nothing else: of a text its length and the number of its vowels.
type loom struct {
	t      *testing.T
	format string
	server *httptest.Server

	mu     sync.Mutex
	texts  [][]string // of each request
	dims   int        // that the last one asked for
	answer func(out http.ResponseWriter, n int) bool
}

func newLoom(t *testing.T, format string) *loom {
	t.Helper()
	l := &loom{t: t, format: format}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	return l
}

func (l *loom) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	texts, dims, err := l.understand(r)
	if err != nil {
		l.t.Errorf("%s: what was sent is no request: %v", l.format, err)
		http.Error(out, `{"error":{"message":"no such request"}}`, http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.texts, l.dims = append(l.texts, texts), dims
	n, answer := len(l.texts), l.answer
	l.mu.Unlock()
	if answer != nil && answer(out, n) {
		return
	}
	l.give(out, texts)
}

func (l *loom) understand(r *http.Request) (texts []string, dims int, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" {
		return nil, 0, fmt.Errorf("%s %s, %w", r.Method, r.URL, err)
	}
	if l.format == "openai" {
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+secret {
			return nil, 0, fmt.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		var in struct {
			Model      string   `json:"model"`
			Input      []string `json:"input"`
			Dimensions int      `json:"dimensions"`
		}
		err := strict(body, &in)
		if err == nil && in.Model != "m" {
			err = fmt.Errorf("the model is %q", in.Model)
		}
		return in.Input, in.Dimensions, err
	}
	if r.URL.Path != "/v1beta/models/m:batchEmbedContents" || r.Header.Get("X-Goog-Api-Key") != secret {
		return nil, 0, fmt.Errorf("%s with %q", r.URL.Path, r.Header)
	}
	var in struct {
		Requests []struct {
			Model   string `json:"model"`
			Content struct {
				Role  string `json:"role"`
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
			Dimensions int `json:"outputDimensionality"`
		} `json:"requests"`
	}
	if err := strict(body, &in); err != nil {
		return nil, 0, err
	}
	for _, one := range in.Requests {
		if one.Model != "models/m" || len(one.Content.Parts) != 1 {
			return nil, 0, fmt.Errorf("%+v", one)
		}
		texts, dims = append(texts, one.Content.Parts[0].Text), one.Dimensions
	}
	return texts, dims, nil
}

func vectorFor(text string) []float32 {
	vowels := 0
	for _, r := range text {
		if strings.ContainsRune("aeiou", r) {
			vowels++
		}
	}
	return []float32{float32(len(text)), float32(vowels)}
}

// give answers, in OpenAI's format with the last text first: each vector says of
// which it is.
func (l *loom) give(out http.ResponseWriter, texts []string) {
	out.Header().Set("Content-Type", "application/json")
	var body any
	if l.format == "openai" {
		data := []map[string]any{}
		for i := len(texts) - 1; i >= 0; i-- {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectorFor(texts[i])})
		}
		body = map[string]any{"object": "list", "model": "m-1", "data": data, "usage": map[string]int{"prompt_tokens": 10 * len(texts), "total_tokens": 10 * len(texts)}}
	} else {
		all := []map[string]any{}
		for _, text := range texts {
			all = append(all, map[string]any{"values": vectorFor(text)})
		}
		body = map[string]any{"embeddings": all}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		l.t.Error(err)
	}
	_, _ = out.Write(raw)
}

func (l *loom) requests() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.texts
}

func (l *loom) model() *EmbeddingModel {
	key := Key{File: keyFile(l.t, secret, 0o600)}
	over := Transport()
	l.t.Cleanup(over.CloseIdleConnections)
	m := &EmbeddingModel{Name: "vectors", Provider: l.format, ID: "m", Price: Dollars(1)}
	if l.format == "openai" {
		m.Asks = &OpenAI{BaseURL: l.server.URL + "/v1", Key: key, Over: over}
	} else {
		m.Asks = &Gemini{BaseURL: l.server.URL, Key: key, Over: over}
	}
	return m
}

// embedding is a dispatcher with this model alone, and what it put on record.
func (l *loom) embedding(change func(o *Options)) (*Dispatcher, *[]Exchange) {
	var mu sync.Mutex
	recorded := &[]Exchange{}
	o := Options{Embedding: l.model(), Record: func(_ context.Context, e *Exchange) error {
		mu.Lock()
		defer mu.Unlock()
		*recorded = append(*recorded, *e)
		return nil
	}, Wait: func(context.Context, time.Duration) error { return nil }}
	if change != nil {
		change(&o)
	}
	return New(o), recorded
}

func eachLoom(t *testing.T, test func(t *testing.T, l *loom)) {
	for _, format := range []string{"openai", "gemini"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			test(t, newLoom(t, format))
		})
	}
}

// Texts go out in batches, in the provider's format; vectors come back in the
// order of the texts; each request is on record and in the books.
func TestVectorsAreMadeInBatches(t *testing.T) {
	t.Parallel()
	eachLoom(t, func(t *testing.T, l *loom) {
		d, recorded := l.embedding(func(o *Options) { o.Embedding.Batch, o.Embedding.Dimensions = 2, 2 })
		texts := []string{"apple", "pear", "fig", "plum", "date"}
		got, err := d.Embed(t.Context(), Caller{Tenant: "t", Principal: "ada", Call: "c", Plugin: "p"}, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if !reflect.DeepEqual(got[i], vectorFor(text)) {
				t.Errorf("%s is %v", text, got[i])
			}
		}
		if want := [][]string{{"apple", "pear"}, {"fig", "plum"}, {"date"}}; !reflect.DeepEqual(l.requests(), want) || l.dims != 2 {
			t.Errorf("asked for %q, of %d dimensions", l.requests(), l.dims)
		}
		var cost MicroCents
		for _, e := range *recorded {
			r := e.Record
			cost += r.Cost
			if !e.Hashed || r.Tier != "embedding" || r.Outcome != "ok" || r.CallID != "c" || r.Plugin != "p" || r.Model != "vectors" || r.PromptHash == "" || r.AnswerHash == "" || r.Cost == 0 {
				t.Errorf("on record is %+v", r)
			}
			if r.Estimated != (l.format == "gemini") { // which does not say what it used
				t.Errorf("estimated: %t", r.Estimated)
			}
		}
		spent, _, err := d.Spent(t.Context(), "t")
		if err != nil || len(*recorded) != 3 || spent != cost {
			t.Errorf("%d on record, %d spent and %d booked, %v", len(*recorded), spent, cost, err)
		}
		if l.format == "openai" && cost != 3*Dollars(1).cost(10)+2*Dollars(1).cost(10) {
			t.Errorf("50 tokens cost %d", cost)
		}
		if space := d.Embedding().Space(); space != l.format+"/m@2" {
			t.Errorf("the space is %s", space)
		}
	})
}

// What fails gives no vectors, is on record, and is tried a second time where
// that may help.
func TestVectorsThatDoNotCome(t *testing.T) {
	t.Parallel()
	eachLoom(t, func(t *testing.T, l *loom) {
		say := func(status int, body string) func(http.ResponseWriter, int) bool {
			return func(out http.ResponseWriter, _ int) bool {
				out.Header().Set("Content-Type", "application/json")
				out.WriteHeader(status)
				fmt.Fprint(out, body)
				return true
			}
		}
		one := map[string]string{"openai": `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`, "gemini": `{"embeddings":[{"values":[1,2]}]}`}[l.format]
		uneven := map[string]string{"openai": `{"object":"list","model":"m","data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}],"usage":{"prompt_tokens":1}}`, "gemini": `{"embeddings":[{"values":[1,2]},{"values":[1]}]}`}[l.format]
		for _, c := range []struct {
			name     string
			answer   func(http.ResponseWriter, int) bool
			kind     Kind
			requests int
		}{
			{"overloaded", say(503, `{"error":{"message":"busy"}}`), Overloaded, 2},
			{"overloaded once", func(out http.ResponseWriter, n int) bool {
				if n%2 == 1 {
					return say(503, `{"error":{"message":"busy"}}`)(out, n)
				}
				return false
			}, "", 2},
			{"bad key", say(401, `{"error":{"message":"no"}}`), Auth, 1},
			{"no such model", say(404, `{"error":{"message":"no"}}`), BadRequest, 1},
			{"no JSON", say(200, `<html>`), Malformed, 1},
			{"one for two", say(200, one), Malformed, 1},
			{"of two lengths", say(200, uneven), Malformed, 1},
			{"too large", func(out http.ResponseWriter, _ int) bool {
				out.Header().Set("Content-Type", "application/json")
				for range maxAnswer/len(huge) + 2 {
					_, _ = out.Write(huge)
				}
				return true
			}, TooLarge, 1},
		} {
			l.mu.Lock()
			l.texts, l.answer = nil, c.answer
			l.mu.Unlock()
			d, recorded := l.embedding(nil)
			got, err := d.Embed(t.Context(), Caller{Tenant: "t"}, []string{"a", "b"})
			var failure *Error
			if c.kind == "" && (err != nil || len(got) != 2) || c.kind != "" && (got != nil || !errors.As(err, &failure) || failure.Kind != c.kind) {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
			if n := len(l.requests()); n != c.requests {
				t.Errorf("%s: %d requests", c.name, n)
			}
			if len(*recorded) != 1 || len((*recorded)[0].Record.Attempts) != c.requests || (c.kind == "") != ((*recorded)[0].Record.Outcome == "ok") {
				t.Errorf("%s: on record is %+v", c.name, *recorded)
			}
		}
	})
}

// Nothing is sent that a budget has no room for, and nothing is given that
// cannot be put on record.
func TestVectorsHaveABudget(t *testing.T) {
	t.Parallel()
	l := newLoom(t, "openai")
	d, recorded := l.embedding(func(o *Options) { o.Limits.Day = Dollars(1).cost(150) })
	var failure *Error
	if _, err := d.Embed(t.Context(), Caller{Tenant: "t"}, []string{strings.Repeat("long ", 100)}); !errors.As(err, &failure) || failure.Kind != Budget || len(l.requests()) != 0 {
		t.Errorf("%v after %d requests", err, len(l.requests()))
	}
	if len(*recorded) != 1 || (*recorded)[0].Record.Outcome != string(Budget) {
		t.Errorf("on record is %+v", *recorded)
	}
	d, _ = l.embedding(func(o *Options) {
		o.Record = func(context.Context, *Exchange) error { return errors.New("the disk is full") }
	})
	if got, err := d.Embed(t.Context(), Caller{Tenant: "t"}, []string{"short"}); got != nil || !errors.As(err, &failure) || failure.Kind != Internal {
		t.Errorf("%v, %v", got, err)
	}
	var none *Dispatcher
	if _, err := none.Embed(t.Context(), Caller{}, []string{"a"}); !errors.As(err, &failure) || failure.Kind != NotConfigured {
		t.Errorf("%v", err)
	}
}
