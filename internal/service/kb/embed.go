package kb

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// An Embedder turns texts into vectors of one length, in their order. It must
// give the same vector for the same text.
type Embedder interface {
	// Space names what its vectors can be compared with: those of the same
	// space, and no others.
	Space() string
	// Embed makes the vectors. by is in whose name that is.
	Embed(ctx context.Context, tenant string, by By, texts []string) ([][]float32, error)
}

const (
	restAfter = 30 * time.Second // for which a model that failed is not asked again by who can do without
	embedStep = 64               // passages that are embedded at a time afterwards
)

// A rest is how a model is left alone that cannot be asked at the moment: a
// document that comes meanwhile does not wait for it. It is of one plugin in one
// tenant: what the model refuses one says nothing of the others.
type rest struct {
	mu    sync.Mutex
	until map[resting]time.Time
}

type resting struct{ tenant, plugin string }

// maxRests is how many rests are remembered; those that are over go first.
const maxRests = 4096

func (r *rest) over(tenant string, by By, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.until[resting{tenant, by.Plugin}])
}

// begin has a model rest that failed. That a budget is used up costs no time to hear,
// and may be over at any moment.
func (r *rest) begin(tenant string, by By, now time.Time, err error) {
	if plugin.CodeOf(err) == plugin.CodeBudgetExceeded {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.until) >= maxRests {
		maps.DeleteFunc(r.until, func(_ resting, until time.Time) bool { return !now.Before(until) })
	}
	if r.until == nil || len(r.until) >= maxRests {
		r.until = map[resting]time.Time{}
	}
	r.until[resting{tenant, by.Plugin}] = now.Add(restAfter)
}

// embed gives passages their vectors, where there is a model that can be asked.
// Otherwise they stay without, are found by their words, and are embedded by
// [Bases.Embed] later: no document is lost for want of a model.
func (b *Bases) embed(ctx context.Context, tenant string, by By, chunks []chunkRow) (done bool) {
	e := b.opts.Embedder
	if e == nil || len(chunks) == 0 || !b.rest.over(tenant, by, b.now()) {
		return e == nil || len(chunks) == 0
	}
	texts := make([]string, len(chunks))
	for i := range chunks {
		texts[i] = chunks[i].Text
	}
	vectors, err := vectorsOf(ctx, e, tenant, by, texts)
	if err != nil {
		if ctx.Err() == nil {
			b.rest.begin(tenant, by, b.now(), err)
		}
		return false
	}
	for i, v := range vectors {
		chunks[i].Embedding, chunks[i].Model = stored(v), e.Space()
	}
	return true
}

func vectorsOf(ctx context.Context, e Embedder, tenant string, by By, texts []string) ([][]float32, error) {
	vectors, err := e.Embed(ctx, tenant, by, texts)
	if err == nil && len(vectors) != len(texts) {
		err = plugin.Errorf(plugin.CodeUnavailable, "the model of embeddings gave %d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors, err
}

// stored is a vector as the store keeps it.
func stored(v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return raw
}

// An Embedded is how far the embeddings of a knowledge base are.
type Embedded struct {
	KB       string `json:"kb_id"`
	Model    string `json:"model"`    // what makes them
	Embedded int64  `json:"embedded"` // passages that have one now
	Passages int64  `json:"passages"`
	Made     int64  `json:"made"` // just now
}

// Embed makes the embeddings that the passages of a knowledge base lack: because
// the model could not be asked when they came, or was another one. It may be
// stopped at any moment and run again. On an error, what was made is kept.
func (b *Bases) Embed(ctx context.Context, tenant, id string, by By) (Embedded, error) {
	e := b.opts.Embedder
	if e == nil {
		return Embedded{}, plugin.Errorf(plugin.CodeUnavailable, "no model of embeddings is configured; name one under models.embedding in mortise.yaml")
	}
	base, err := b.Get(ctx, tenant, id)
	if err != nil {
		return Embedded{}, err
	}
	done := Embedded{KB: id, Model: e.Space(), Passages: base.Chunks}
	f := unembeddedFilter{Tenant: tenant, KB: id, Model: e.Space(), Limit: embedStep}
	for err == nil {
		var missing []passageRow
		if missing, err = b.opts.Store.Unembedded(ctx, f); err != nil || len(missing) == 0 {
			break
		}
		last := missing[len(missing)-1]
		f.Document, f.N = last.DocumentID, last.N
		var made int64
		made, err = b.fill(ctx, tenant, id, by, missing)
		done.Made += made
	}
	counted, countErr := b.opts.Store.CountVectors(context.WithoutCancel(ctx), tenant, id, e.Space())
	done.Embedded = counted
	return done, cmp.Or(err, countErr)
}

// fill embeds some passages and keeps the vectors of those that are still what
// they were.
func (b *Bases) fill(ctx context.Context, tenant, id string, by By, missing []passageRow) (made int64, err error) {
	texts := make([]string, len(missing))
	for i, p := range missing {
		texts[i] = p.Text
	}
	vectors, err := vectorsOf(ctx, b.opts.Embedder, tenant, by, texts)
	if err != nil {
		return 0, err
	}
	err = b.opts.Store.Write(ctx, func(tx Tx) error {
		made = 0
		for i, p := range missing {
			found, err := tx.PutVector(tenant, id, p, b.opts.Embedder.Space(), stored(vectors[i]))
			if err != nil {
				return err
			}
			if found {
				made++
			}
		}
		return nil
	})
	return made, err
}

// vectorOf returns what a query means; nil where there is no model that can be
// asked.
func (b *Bases) vectorOf(ctx context.Context, tenant string, q *Query, kbs []string) []float32 {
	if b.opts.Embedder == nil || len(kbs) == 0 || !b.rest.over(tenant, q.By, b.now()) {
		return nil
	}
	vectors, err := vectorsOf(ctx, b.opts.Embedder, tenant, q.By, []string{q.Text})
	if err != nil {
		if ctx.Err() == nil {
			b.rest.begin(tenant, q.By, b.now(), err)
		}
		return nil
	}
	return vectors[0]
}

// near returns the passages whose embeddings are closest to a vector of the same
// space, by looking at all.
func (b *Bases) near(ctx context.Context, tenant string, kbs []string, vector []float32, limit int) ([]chunkHit, error) {
	type scored struct {
		row   vectorRow
		score float64
	}
	var best []scored
	for row, err := range b.opts.Store.Vectors(ctx, tenant, kbs, b.opts.Embedder.Space()) {
		if err != nil {
			return nil, err
		}
		score, ok := cosine(vector, row.Embedding)
		if !ok || len(best) == limit && score <= best[limit-1].score {
			continue
		}
		row.Embedding = nil
		at, _ := slices.BinarySearchFunc(best, score, func(s scored, score float64) int { return cmp.Compare(score, s.score) })
		best = slices.Insert(best, at, scored{row, score})
		best = best[:min(len(best), limit)]
	}
	rows := make([]vectorRow, len(best))
	for i, s := range best {
		rows[i] = s.row
	}
	return b.opts.Store.Hits(ctx, tenant, rows)
}

// cosine compares a vector with one as it is stored; ok is false where they are
// not of one kind.
func cosine(a []float32, stored []byte) (score float64, ok bool) {
	if len(stored) != 4*len(a) || len(a) == 0 {
		return 0, false
	}
	var dot, na, nb float64
	for i, x := range a {
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:])))
		dot += float64(x) * y
		na += float64(x) * float64(x)
		nb += y * y
	}
	if na == 0 || nb == 0 {
		return 0, false
	}
	return dot / math.Sqrt(na*nb), true
}
