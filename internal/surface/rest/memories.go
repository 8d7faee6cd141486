package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A Memory is something that an agent remembers.
type Memory struct {
	Key       string    `json:"key"`
	Content   string    `json:"content"`
	Labels    []string  `json:"labels" nullable:"false" doc:"What it is tainted with, and what the agent makes of it."`
	UpdatedAt time.Time `json:"updated_at"`
}

// Memories are a page of them.
type Memories struct {
	Memories []Memory `json:"memories" nullable:"false"`
	Next     string   `json:"next_page_token" doc:"Empty on the last page."`
}

// A MemoryKey is what something is remembered under.
type MemoryKey struct {
	Key string `json:"key" minLength:"1" maxLength:"1024"`
}

// A MemorySpec is what is to be remembered, in place of what is under the key.
type MemorySpec struct {
	MemoryKey
	Content string `json:"content" maxLength:"65536"`
}

// A MemoryChanged is what was remembered or forgotten.
type MemoryChanged struct {
	Agent string `json:"agent"`
	Key   string `json:"key"`
}

func (r *registry) memories() {
	add(r, route{method: "GET", path: "agents/{id}/memories", id: "list-memories", scope: host.ScopeRead, about: "What an agent remembers, by key; or what has most of the words of search, on one page"}, r.listMemories)
	add(r, route{method: "POST", path: "agents/{id}/memories:remember", id: "remember", scope: host.ScopeConfigure, about: "Have an agent remember something"},
		func(ctx context.Context, q *request, in *struct {
			AgentNamed
			Body MemorySpec
		}) (*struct{ Body MemoryChanged }, error) {
			err := q.api.Agents().Remember(ctx, in.ID, in.Body.Key, in.Body.Content)
			return &struct{ Body MemoryChanged }{MemoryChanged{in.ID, in.Body.Key}}, unlessMissing(err, "agent", in.ID)
		})
	add(r, route{method: "POST", path: "agents/{id}/memories:forget", id: "forget", scope: host.ScopeConfigure, about: "Take something from what an agent remembers"},
		func(ctx context.Context, q *request, in *struct {
			AgentNamed
			Body MemoryKey
		}) (*struct{ Body MemoryChanged }, error) {
			return &struct{ Body MemoryChanged }{MemoryChanged{in.ID, in.Body.Key}}, q.api.Agents().Forget(ctx, in.ID, in.Body.Key)
		})
}

func (r *registry) listMemories(ctx context.Context, q *request, in *struct {
	AgentNamed
	Page
	Search string `query:"search" maxLength:"1024" doc:"Words."`
}) (*struct{ Body Memories }, error) {
	last, err := in.after("memories", in.ID, in.Search)
	if err != nil {
		return nil, err
	}
	most := host.MaxMemories
	if in.Search != "" {
		most = in.size()
	}
	rows, err := q.api.Agents().Memories(ctx, in.ID, in.Search, most)
	if err != nil {
		return nil, unlessMissing(err, "agent", in.ID)
	}
	found := []Memory{}
	for _, m := range rows {
		if m.Key > last {
			found = append(found, Memory(m))
		}
	}
	if in.Search == "" {
		slices.SortFunc(found, func(a, b Memory) int { return strings.Compare(a.Key, b.Key) })
	}
	out := new(struct{ Body Memories })
	out.Body.Memories, out.Body.Next = cut(found, in.size(), "", func(m *Memory) string { return m.Key }, "memories", in.ID, in.Search)
	return out, nil
}
