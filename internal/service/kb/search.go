package kb

import (
	"cmp"
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/words"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of a search.
const (
	maxQuery = 4096 // bytes
	maxTerms = 32   // words of a query that count
	maxHits  = 100
	fused    = 60 // how much the first of a ranking is worth more than the next: 1/(60+rank)
	depth    = 50 // of the rankings that are fused, at least: what is low in both may be high in their sum
)

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
	Start      int64    `json:"start"` // in the document's text, in characters
	Text       string   `json:"content"`
	Score      float64  `json:"score"` // the more the better, within one answer
	Labels     []string `json:"labels"`
}

// A Query asks for passages.
type Query struct {
	KBs   []string // nil for all
	Text  string
	Limit int // 10 where it is 0
	By    By  // who asks, where that takes a model
}

// Search returns the passages that fit a query best, the best first: by their
// words and, with a model of embeddings, by their meaning, both rankings fused.
// Where the model cannot be asked, words alone decide.
func (b *Bases) Search(ctx context.Context, tenant string, q Query) ([]Hit, error) {
	if q.Limit == 0 {
		q.Limit = 10
	}
	switch {
	case q.Text == "" || len(q.Text) > maxQuery:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the query has %d bytes; it has 1 to %d", len(q.Text), maxQuery)
	case q.Limit < 1 || q.Limit > maxHits:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the limit is %d; it is 1 to %d", q.Limit, maxHits)
	}
	kbs, err := b.meant(ctx, tenant, q.KBs)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	vector := b.vectorOf(ctx, tenant, &q, kbs)
	if vector != nil {
		limit = max(limit, depth)
	}
	byWords, err := b.opts.Store.SearchChunks(ctx, chunkQuery{Tenant: tenant, KBs: kbs, Terms: words.Asked(q.Text, maxTerms), Limit: limit})
	if err != nil || vector == nil {
		return hitsOf(byWords), err
	}
	byMeaning, err := b.near(ctx, tenant, kbs, vector, limit)
	if err != nil {
		return nil, err
	}
	return hitsOf(fuse(q.Limit, byWords, byMeaning)), nil
}

// meant returns the knowledge bases that are asked for, each of which must be
// there.
func (b *Bases) meant(ctx context.Context, tenant string, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return b.IDs(ctx, tenant)
	}
	if len(ids) > maxBases {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%d knowledge bases are named; at most %d are searched at a time", len(ids), maxBases)
	}
	for _, id := range ids {
		if _, err := b.row(ctx, tenant, id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// IDs returns the ids of a tenant's knowledge bases: of as many as are searched
// at a time.
func (b *Bases) IDs(ctx context.Context, tenant string) (ids []string, err error) {
	all, err := b.opts.Store.KBs(ctx, tenant)
	for _, base := range all[:min(len(all), maxBases)] {
		ids = append(ids, base.ID)
	}
	return ids, err
}

// fuse makes one ranking of several: what is high in any of them is high.
func fuse(limit int, rankings ...[]chunkHit) []chunkHit {
	type place struct {
		kb, document string
		n            int64
	}
	at := map[place]int{}
	var all []chunkHit
	for _, ranking := range rankings {
		for rank, hit := range ranking {
			where := place{hit.KB, hit.DocumentID, hit.N}
			i, known := at[where]
			if !known {
				i = len(all)
				at[where] = i
				hit.Score = 0
				all = append(all, hit)
			}
			all[i].Score += 1 / float64(fused+rank)
		}
	}
	slices.SortStableFunc(all, func(a, b chunkHit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), limit)]
}

func hitsOf(rows []chunkHit) []Hit {
	hits := make([]Hit, len(rows))
	for i, r := range rows {
		hits[i] = Hit{r.KB, r.DocumentID, r.ObjectID, r.SourceID, r.SourceType, r.Title, r.URL, r.N, r.Start, r.Text, r.Score, r.Labels}
	}
	return hits
}

// BestOfEach returns the first hit of each document, and no more than so many.
func BestOfEach(hits []Hit, most int) []Hit {
	seen := map[[2]string]bool{}
	best := []Hit{}
	for _, hit := range hits {
		which := [2]string{hit.KB, hit.DocumentID}
		if !seen[which] && len(best) < most {
			seen[which] = true
			best = append(best, hit)
		}
	}
	return best
}
