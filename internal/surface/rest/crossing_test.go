package rest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// sharedPlugin is the code that one tenant has under a name that all have: it says the
// tenant's word.
func sharedPlugin(word string) {
	p := mortise.New("shared", "1.0.0")
	type text struct {
		Text string `json:"text"`
	}
	mortise.Tool(p, "say", "Say the word.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return map[string]any{"word": word, "text": in.Text}, nil
	})
	mortise.Operator(p, "keep", "Keep a value under a key that all tenants use.", func(c *mortise.Call, in text) (map[string]any, error) {
		var had string
		if _, err := c.StorageGet("", "same", &had); err != nil {
			return nil, err
		}
		if err := c.StoragePut("", "same", word+" "+in.Text); err != nil {
			return nil, err
		}
		return map[string]any{"word": word, "had": had}, nil
	}, mortise.Effects("storage_write"))
	mortise.Operator(p, "hash", "Say the hash of a secret.", func(c *mortise.Call, _ text) (map[string]any, error) {
		secret, _, err := c.SecretsGet("key")
		sum := sha256.Sum256([]byte(secret))
		return map[string]any{"word": word, "hash": hex.EncodeToString(sum[:])}, err
	}, mortise.Effects("db_write"))
	mortise.Tool(p, "limited", "Say the word, so many times a day.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return map[string]any{"word": word, "text": in.Text}, nil
	})
	mortise.Tool(p, "hold", "Wait until there is a file.", func(c *mortise.Call, in struct {
		File string `json:"file"`
	}) (map[string]any, error) {
		for {
			if _, err := os.Stat(in.File); err == nil {
				return map[string]any{"word": word}, nil
			}
			select {
			case <-c.Done():
				return nil, c.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	mortise.Tool(p, "pace", "Take from a bucket that all tenants call the same.", func(c *mortise.Call, in struct {
		Cost float64 `json:"cost"`
	}) (map[string]any, error) {
		allowed, _, err := c.RateLimitTake("same", in.Cost)
		return map[string]any{"word": word, "allowed": allowed}, err
	})
	p.Run()
}

const sharedManifest = `name: shared
version: 1.0.0
owner: test
description: A test.
capabilities: [storage, secrets, rate_limit]
runner: {kind: process, command: [%q, shared, %s]}
operations:
  say: {kind: tool}
  keep: {kind: operator, effects: [storage_write]}
  hash: {kind: operator, effects: [db_write], secrets: {key: {allowed_scope: user}}}
  limited: {kind: tool}
  pace: {kind: tool}
  hold: {kind: tool}
`

// A party is one tenant of the test, and what it knows to be its own.
type party struct {
	app     *app.App
	word    string
	token   string
	session string

	mu     sync.Mutex
	calls  map[string]bool // ids that it was answered
	keyed  map[string]string
	events map[string]bool // ids of calls that its stream told
	told   int
}

// parties makes tenants that are called alike in everything but their own names.
func (b *bench) parties(n int) []*party {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var all []*party
	for i := range n {
		p := &party{word: fmt.Sprintf("tenant-%03d-word", i), calls: map[string]bool{}, keyed: map[string]string{}, events: map[string]bool{}}
		row, err := b.app.As(b.app.Principal).Tenants().Create(b.Context(), fmt.Sprintf("t%03d", i))
		if err != nil {
			b.Fatal(err)
		}
		b.write(filepath.Join(row.Directory, "mortise.yaml"), "policy: {files: [own.cedar]}\n")
		b.write(filepath.Join(row.Directory, "own.cedar"), `permit (principal, action, resource in Plugin::"shared");`)
		all = append(all, p)
	}
	for i, p := range all {
		ctx := b.Context()
		if p.app, err = b.app.Tenant(ctx, fmt.Sprintf("t%03d", i)); err != nil {
			b.Fatal(err)
		}
		dir := b.TempDir()
		b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf(sharedManifest, self, p.word))
		report, err := p.app.Registry.Register(ctx, dir, registry.RegisterOptions{Enable: true})
		if err != nil || report.Registered[0].NotEnabled != nil {
			b.Fatal(err, report)
		}
		own := p.app.As(p.app.Principal)
		if _, p.token, err = own.Tokens().Create(ctx, host.NewToken{Name: "same", Scopes: host.Scopes}); err != nil {
			b.Fatal(err)
		}
		if _, err := own.Secrets().Set(ctx, host.SecretPlace{Name: "key"}, "the secret of "+p.word); err != nil {
			b.Fatal(err)
		}
		s, err := own.Sessions().Create(ctx, host.NewSession{Name: "same"})
		if err != nil {
			b.Fatal(err)
		}
		p.session = s.ID
	}
	return all
}

// crossing is the client of the test.
type crossing struct {
	*bench
	client *http.Client
	faults sync.Map // what was wrong, once each
}

func (c *crossing) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > 600 {
		text = text[:600]
	}
	if _, known := c.faults.LoadOrStore(text[:min(len(text), 60)], true); !known {
		c.Error(text)
	}
}

func (c *crossing) post(p *party, method, path, body, key string) (int, string, map[string]any) {
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.fault("%v", err)
		return 0, "", nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.token)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for {
		resp, err := c.client.Do(r.Clone(c.Context()))
		if err != nil {
			c.fault("%s: %v", path, err)
			return 0, "", nil
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			c.fault("%s: %v", path, err)
		}
		if resp.StatusCode == 503 || resp.StatusCode == 429 { // there are more than the host takes at once
			r.Body = io.NopCloser(strings.NewReader(body))
			wait, _ := strconv.Atoi(cmp.Or(resp.Header.Get("Retry-After"), "1"))
			select {
			case <-time.After(time.Duration(wait) * 200 * time.Millisecond):
			case <-c.Context().Done():
				c.fault("%s: the host stays overloaded", path)
				return 0, "", nil
			}
			continue
		}
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		_ = d.Decode(&object)
		return resp.StatusCode, string(text), object
	}
}

// call makes one call, and holds its answer against whose it is.
func (c *crossing) call(p *party, op, text, key string) (id string, data map[string]any) {
	status, raw, answer := c.post(p, "POST", "/api/v1/operations/shared/"+op+":execute", fmt.Sprintf(`{"input":{"text":%q}}`, text), key)
	if status != 200 {
		c.fault("%s calls %s and is answered %d %s", p.word, op, status, raw)
		return "", nil
	}
	data, _ = answer["data"].(map[string]any)
	id, _ = answer["call_id"].(string)
	if data["word"] != p.word {
		c.fault("%s calls %s and is answered with another's: %s", p.word, op, raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[id] = true
	if key != "" {
		if first := p.keyed[op+key]; first != "" && first != id {
			c.fault("%s has two calls of one key: %s and %s", p.word, first, id)
		}
		p.keyed[op+key] = id
	}
	return id, data
}

// one is the nth request of a tenant.
func (c *crossing) one(p *party, n int) {
	key := "key-" + strconv.Itoa(n/2) // each twice, and the same ones in all tenants
	switch n % 5 {
	case 0:
		c.call(p, "say", "same", "")
	case 1:
		c.call(p, "say", strconv.Itoa(n%7), key)
	case 2:
		if _, data := c.call(p, "keep", "same", key); data != nil {
			if had, _ := data["had"].(string); had != "" && !strings.HasPrefix(had, p.word+" ") {
				c.fault("%s finds the value of another: %q", p.word, had)
			}
		}
	case 3:
		sum := sha256.Sum256([]byte("the secret of " + p.word))
		if _, data := c.call(p, "hash", "same", key); data != nil && data["hash"] != hex.EncodeToString(sum[:]) {
			c.fault("%s has the secret of another", p.word)
		}
	case 4:
		name := fmt.Sprintf("file-%d.txt", n)
		status, raw, made := c.post(p, "POST", "/api/v1/sessions/"+p.session+"/artifacts", fmt.Sprintf(`{"name":%q,"content":%q}`, name, "dGhl"), "")
		if status != 200 {
			c.fault("%s adds an artifact and is answered %d %s", p.word, status, raw)
			return
		}
		if status, raw, _ = c.post(p, "GET", fmt.Sprintf("/api/v1/sessions/%s/artifacts/%v", p.session, made["id"]), "", ""); status != 200 {
			c.fault("%s reads its artifact and is answered %d %s", p.word, status, raw)
		}
	}
}

// follow reads the events of a tenant until ctx ends.
func (c *crossing) follow(ctx context.Context, p *party, opened *sync.WaitGroup) {
	f := c.followed(p.token, "GET", "/api/v1/events", "")
	opened.Done()
	stop := context.AfterFunc(ctx, f.leave)
	defer stop()
	for {
		e, err := f.next()
		if err != nil {
			return
		}
		if id, is := e.body["id"].(string); is && strings.HasPrefix(e.name, "call.") {
			p.mu.Lock()
			p.events[id] = true
			p.told++
			p.mu.Unlock()
		}
	}
}

// Many tenants call at once what has the same name in each of them, with the same keys,
// inputs, sessions, artifacts, values and secrets: each is answered with its own, its events
// are of its own calls, and so are its rows, its limits and its series of metrics. MORTISE_TENANTS and MORTISE_TENANT_CALLS say how
// many there are.
func TestNothingCrossesTenants(t *testing.T) {
	many, _ := strconv.Atoi(cmp.Or(os.Getenv("MORTISE_TENANTS"), "10"))
	calls, _ := strconv.Atoi(cmp.Or(os.Getenv("MORTISE_TENANT_CALLS"), "1000"))
	for name, database := range map[string]func() string{"SQLite": func() string { return "" }, "PostgreSQL": func() string { return pgtest.Open(t) }} {
		t.Run(name, func(t *testing.T) {
			b := beginWith(t, rest.Options{Streams: 4096}, "processes: {max: 128, per_tenant: 1}\ntelemetry: {metrics: true}\n"+
				"quotas: {plugins: {shared/limited: {day: 5}}}\n", app.Options{Database: database(), Standby: true})
			c := &crossing{bench: b, client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 200, MaxIdleConnsPerHost: 200}}}
			defer c.client.CloseIdleConnections()
			all := b.parties(many)

			listening, hush := context.WithCancel(t.Context())
			defer hush()
			var readers, opened sync.WaitGroup
			for _, p := range all {
				opened.Add(1)
				readers.Go(func() { c.follow(listening, p, &opened) })
			}
			opened.Wait()
			began := time.Now()
			work := make(chan int)
			var doing sync.WaitGroup
			for range 200 {
				doing.Go(func() {
					for i := range work {
						c.one(all[i%many], i/many)
					}
				})
			}
			for i := range calls {
				work <- i
			}
			close(work)
			doing.Wait()
			took := time.Since(began)
			last := map[*party]string{}
			for _, p := range all { // each stream has come so far once it tells this one
				last[p], _ = c.call(p, "keep", "last", "last")
			}
			for p, id := range last {
				testwait.Until(t, "the stream of "+p.word+" tells of its last call", func() bool { return p.has(id) })
			}
			c.limits(all)
			hush()
			readers.Wait()
			c.metrics(all)
			made, told := c.verify(all)
			t.Logf("%d requests of %d tenants in %s, %d calls, %d events", calls, many, took.Round(time.Millisecond), made, told)
		})
	}
}

// made notes the call of an answer.
func (p *party) made(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[fmt.Sprint(a.at("call_id"))] = true
}

func (p *party) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[id]
}

// verify holds what is kept against what each tenant was answered.
func (c *crossing) verify(all []*party) (made, told int) {
	for _, p := range all {
		ctx, name := c.Context(), p.app.Config.Tenant
		for id := range p.events {
			if !p.calls[id] {
				c.fault("%s was told of call %s, which is not its own", p.word, id)
			}
		}
		for _, of := range all {
			for id := range p.calls {
				if of != p && of.calls[id] {
					c.fault("%s and %s have the call %s", p.word, of.word, id)
				}
			}
			if row, err := of.app.As(of.app.Principal).Sessions().Get(ctx, p.session); of != p && err == nil {
				c.fault("%s has the session of %s: %+v", of.word, p.word, row)
			}
		}
		rows, err := c.app.Store.Calls(ctx, store.CallFilter{Tenant: name})
		for _, row := range rows {
			if !p.calls[row.ID] {
				c.fault("%s has a row of a call that it did not make: %s", p.word, row.ID)
			}
		}
		if err != nil || len(rows) == 0 {
			c.fault("%s has no rows: %v", p.word, err)
		}
		for e, err := range c.app.Store.Entries(ctx, store.EntryFilter{Tenant: name}) {
			if err != nil {
				c.fault("%v", err)
			}
			if strings.HasPrefix(string(e.Kind), "call.") && !p.calls[e.Subject] {
				c.fault("the ledger has an entry of %s about call %s, which it did not make", p.word, e.Subject)
			}
			for _, of := range all {
				if of != p && strings.Contains(string(e.Body), of.word) {
					c.fault("an entry of %s has the word of %s", p.word, of.word)
				}
			}
		}
		made += len(p.calls)
		told += p.told
	}
	return made, told
}
