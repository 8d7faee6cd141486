package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A KnowledgeBase is a knowledge base.
type KnowledgeBase struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Labels      []string  `json:"labels" nullable:"false" doc:"Of everything in it."`
	Documents   int64     `json:"documents"`
	Chunks      int64     `json:"chunks"`
	Embedding   string    `json:"embedding" doc:"The model of embeddings; empty where words alone are searched."`
	Embedded    int64     `json:"embedded" doc:"Passages that have a vector by it."`
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
}

// KnowledgeBases are a page of them.
type KnowledgeBases struct {
	Bases []KnowledgeBase `json:"knowledge_bases" nullable:"false"`
	Next  string          `json:"next_page_token" doc:"Empty on the last page."`
}

// A Hit is a passage that was found.
type Hit struct {
	KB         string   `json:"kb_id"`
	DocumentID string   `json:"document_id"`
	ObjectID   string   `json:"ko_id"`
	SourceID   string   `json:"source_id"`
	SourceType string   `json:"source_type"`
	Title      string   `json:"title"`
	URL        string   `json:"source_url"`
	Chunk      int64    `json:"chunk_index"`
	Start      int64    `json:"start" doc:"In the text of the document, in characters."`
	Text       string   `json:"content"`
	Score      float64  `json:"score" doc:"The more the better, within one answer."`
	Labels     []string `json:"labels" nullable:"false"`
}

// Hits are the passages that fit best, the best first.
type Hits struct {
	Results []Hit `json:"results" nullable:"false"`
}

// A Search says what is searched for.
type Search struct {
	Query string `json:"query" minLength:"1" maxLength:"4096"`
	Limit int    `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"How many passages; 10 where it is left out."`
}

// An Embedded is how far the embeddings of a knowledge base are.
type Embedded struct {
	KB       string `json:"kb_id"`
	Model    string `json:"model"`
	Embedded int64  `json:"embedded" doc:"Passages that have one now."`
	Passages int64  `json:"passages"`
	Made     int64  `json:"made" doc:"Just now."`
}

// A KnowledgeNamed is a knowledge base that is meant.
type KnowledgeNamed struct {
	ID string `path:"id" maxLength:"128"`
}

func (r *registry) knowledge() {
	add(r, route{method: "GET", path: "knowledge", id: "list-knowledge", scope: host.ScopeRead, about: "The knowledge bases that the caller may use, by id"}, r.listKnowledge)
	add(r, route{method: "POST", path: "knowledge", id: "create-knowledge", scope: host.ScopeConfigure, about: "Begin a knowledge base, which is then the caller's"}, r.createKnowledge)
	add(r, route{method: "POST", path: "knowledge:search", id: "search-all-knowledge", scope: host.ScopeRead, about: "Find passages in all knowledge bases that the caller may use"}, r.searchAllKnowledge)
	add(r, route{method: "GET", path: "knowledge/{id}", id: "get-knowledge", scope: host.ScopeRead, about: "A knowledge base"}, r.getKnowledge)
	add(r, route{method: "DELETE", path: "knowledge/{id}", id: "delete-knowledge", scope: host.ScopeConfigure, about: "Delete a knowledge base with all that is in it"}, r.deleteKnowledge)
	add(r, route{method: "POST", path: "knowledge/{id}:search", id: "search-knowledge", scope: host.ScopeRead, about: "Find passages in a knowledge base"}, r.searchKnowledge)
	add(r, route{method: "POST", path: "knowledge/{id}:embed", id: "embed-knowledge", scope: host.ScopeConfigure, stays: true, about: "Make the embeddings that a knowledge base lacks, which asks a model"}, r.embedKnowledge)
	r.documents()
}

func baseOf(b host.KnowledgeBase) KnowledgeBase { return KnowledgeBase(b) }

func (r *registry) listKnowledge(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body KnowledgeBases }, error) {
	last, err := in.after("knowledge")
	if err != nil {
		return nil, err
	}
	all, err := q.api.Knowledge().List(ctx)
	if err != nil {
		return nil, err
	}
	found := []KnowledgeBase{}
	for _, b := range all {
		if b.ID > last {
			found = append(found, baseOf(b))
		}
	}
	slices.SortFunc(found, func(a, b KnowledgeBase) int { return strings.Compare(a.ID, b.ID) })
	out := new(struct{ Body KnowledgeBases })
	out.Body.Bases, out.Body.Next = cut(found, in.size(), "", func(b *KnowledgeBase) string { return b.ID }, "knowledge")
	return out, nil
}

func (r *registry) createKnowledge(ctx context.Context, q *request, in *struct {
	Body struct {
		ID          string   `json:"id" minLength:"1" maxLength:"128" doc:"Lower-case letters, digits, dots, dashes and underscores."`
		Name        string   `json:"name,omitzero" maxLength:"200"`
		Description string   `json:"description,omitzero" maxLength:"4096"`
		Labels      []string `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private" doc:"Of everything in it."`
	} `nameHint:"CreateKnowledge"`
}) (*struct{ Body KnowledgeBase }, error) {
	b := &in.Body
	base, err := q.api.Knowledge().Create(ctx, host.KnowledgeBase{ID: b.ID, Name: b.Name, Description: b.Description, Labels: b.Labels})
	if err != nil {
		return nil, err
	}
	return &struct{ Body KnowledgeBase }{baseOf(base)}, nil
}

func (r *registry) getKnowledge(ctx context.Context, q *request, in *KnowledgeNamed) (*struct{ Body KnowledgeBase }, error) {
	base, err := q.api.Knowledge().Get(ctx, in.ID)
	if err != nil {
		return nil, noBase(err, in.ID)
	}
	return &struct{ Body KnowledgeBase }{baseOf(base)}, nil
}

// noBase is err; for what can be no id, that there is no such knowledge base.
func noBase(err error, id string) error {
	if isInvalid(err) {
		return missing("knowledge base", id)
	}
	return unlessMissing(err, "knowledge base", id)
}

func (r *registry) deleteKnowledge(ctx context.Context, q *request, in *KnowledgeNamed) (*struct{ Body Removed }, error) {
	base, err := q.api.Knowledge().Delete(ctx, in.ID)
	if err != nil {
		return nil, noBase(err, in.ID)
	}
	return &struct{ Body Removed }{Removed{base.ID}}, nil
}

func (r *registry) searchAllKnowledge(ctx context.Context, q *request, in *struct {
	Body struct {
		Search
		Bases []string `json:"knowledge_bases,omitzero" maxItems:"64" nullable:"false" doc:"In these alone."`
	} `nameHint:"SearchAll"`
}) (*struct{ Body Hits }, error) {
	return search(ctx, q, in.Body.Search, in.Body.Bases)
}

func (r *registry) searchKnowledge(ctx context.Context, q *request, in *struct {
	KnowledgeNamed
	Body Search
}) (*struct{ Body Hits }, error) {
	if _, err := q.api.Knowledge().Get(ctx, in.ID); err != nil {
		return nil, noBase(err, in.ID)
	}
	return search(ctx, q, in.Body, []string{in.ID})
}

func search(ctx context.Context, q *request, s Search, bases []string) (*struct{ Body Hits }, error) {
	hits, err := q.api.Knowledge().Search(ctx, host.Query{KBs: bases, Text: s.Query, Limit: s.Limit, By: host.OnBehalf{Operation: "kb search"}})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Hits }{Hits{[]Hit{}}}
	for _, h := range hits {
		out.Body.Results = append(out.Body.Results, Hit(h))
	}
	return out, nil
}

func (r *registry) embedKnowledge(ctx context.Context, q *request, in *KnowledgeNamed) (*struct{ Body Embedded }, error) {
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	e, err := q.api.Knowledge().Embed(ctx, in.ID, host.OnBehalf{Operation: "kb embed"})
	if err != nil {
		return nil, unlessMissing(err, "knowledge base", in.ID)
	}
	return &struct{ Body Embedded }{Embedded(e)}, nil
}
