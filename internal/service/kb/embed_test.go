package kb_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A moody is compass as long as it can be reached.
type moody struct {
	compass
	space string

	mu     sync.Mutex
	gone   bool
	asked  int
	during func() // what happens while it works
}

func (m *moody) Space() string { return m.space }

func (m *moody) Embed(ctx context.Context, tenant string, by kb.By, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.gone {
		return nil, errors.New("connection refused")
	}
	if m.during != nil {
		m.during()
	}
	return m.compass.Embed(ctx, tenant, by, texts)
}

func (m *moody) set(gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = gone
}

func (m *moody) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// A document that is added while the model is unavailable is stored, is found
// by its words, does not wait for the model, and is found by its meaning once
// it is embedded later.
func TestNoDocumentIsLostForWantOfAModel(t *testing.T) {
	t.Parallel()
	m := &moody{space: "compass", gone: true}
	b := open(t, func(o *kb.Options) { o.Embedder = m })
	for i, content := range []string{"Apples and pears.", "Rain, then sun.", "Nothing of either."} {
		got := ingest(t, b, text(fmt.Sprint("s", i+1), content))
		if !got.Unembedded || got.Skipped || got.Chunks != 1 {
			t.Errorf("it says %+v", got)
		}
	}
	if n := m.count(); n != 1 {
		t.Errorf("a model that is not there was asked %d times in a row", n)
	}
	if got := found(t, b, "pears"); !reflect.DeepEqual(got, []string{"s1"}) {
		t.Errorf("pears finds %q", got)
	}
	if got := found(t, b, "weather"); len(got) != 0 {
		t.Errorf("weather finds %q", got)
	}
	if base, err := b.Get(t.Context(), "t", "notes"); err != nil || base.Embedding != "compass" || base.Embedded != 0 || base.Chunks != 3 {
		t.Errorf("%+v, %v", base, err)
	}
	if got, err := b.Embed(t.Context(), "t", "notes", kb.By{}); err == nil || got.Made != 0 {
		t.Errorf("without the model: %+v, %v", got, err)
	}
	m.set(false)
	if got, err := b.Embed(t.Context(), "t", "notes", kb.By{}); err != nil || got != (kb.Embedded{KB: "notes", Model: "compass", Embedded: 3, Passages: 3, Made: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := b.Embed(t.Context(), "t", "notes", kb.By{}); err != nil || got.Made != 0 || got.Embedded != 3 {
		t.Errorf("once more: %+v, %v", got, err)
	}
	// The same again is no reason to embed it again.
	before := m.count()
	if got := ingest(t, b, text("s1", "Apples and pears.")); got.SkipReason != kb.HashMatch || m.count() != before {
		t.Errorf("%+v, asked %d times", got, m.count()-before)
	}
}

// Once the model is available, it is asked again automatically.
func TestAModelThatIsBackIsAskedAgain(t *testing.T) {
	t.Parallel()
	m := &moody{space: "compass", gone: true}
	now := time.Now()
	b := open(t, func(o *kb.Options) { o.Embedder, o.Now = m, func() time.Time { return now } })
	ingest(t, b, text("s1", "Rain, then sun."))
	m.set(false)
	if got := ingest(t, b, text("s2", "Sun, then rain.")); !got.Unembedded {
		t.Error("a model that was not there is asked again at once")
	}
	now = now.Add(31 * time.Second)
	if got := ingest(t, b, text("s3", "The weather.")); got.Unembedded {
		t.Error("a model that is back is not asked")
	}
	if got := found(t, b, "weather"); !reflect.DeepEqual(got, []string{"s3"}) {
		t.Errorf("weather finds %q: the others have no vectors", got)
	}
	// A search does without a model that is gone again.
	m.set(true)
	if got := found(t, b, "sun"); len(got) != 2 {
		t.Errorf("sun finds %q", got)
	}
}

// Vectors of two models are never compared: with another model, what was
// embedded by the first is found by its words until it is embedded again.
func TestVectorsOfTwoModelsAreNotMixed(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	first := kb.New(kb.Options{Store: st, Embedder: &moody{space: "compass"}})
	if _, err := first.Create(t.Context(), "t", kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	ingest(t, first, text("s1", "Rain, then sun."))
	second := kb.New(kb.Options{Store: st, Embedder: &moody{space: "compass@2"}})
	ingest(t, second, text("s2", "Sun, then rain."))
	if got := found(t, second, "weather"); !reflect.DeepEqual(got, []string{"s2"}) {
		t.Errorf("with the second model weather finds %q", got)
	}
	if got := found(t, first, "weather"); !reflect.DeepEqual(got, []string{"s1"}) {
		t.Errorf("with the first one it finds %q", got)
	}
	if got, err := second.Embed(t.Context(), "t", "notes", kb.By{}); err != nil || got.Made != 1 || got.Embedded != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := found(t, second, "weather"); len(got) != 2 {
		t.Errorf("then it finds %q", got)
	}
	// One of the same name that gives other lengths is not compared either.
	longer := kb.New(kb.Options{Store: st, Embedder: wide{}})
	if got := found(t, longer, "weather"); len(got) != 0 {
		t.Errorf("vectors of another length: it finds %q", got)
	}
}

// wide calls itself like another model, and gives longer vectors.
type wide struct{}

func (wide) Space() string { return "compass@2" }

func (wide) Embed(_ context.Context, _ string, _ kb.By, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i := range vectors {
		vectors[i] = []float32{0, 1, 0}
	}
	return vectors, nil
}

// A document that is replaced while its old passages are embedded does not get
// their vectors.
func TestAVectorIsOfTheTextThatIsThere(t *testing.T) {
	t.Parallel()
	m := &moody{space: "compass", gone: true}
	st := openStore(t)
	b := kb.New(kb.Options{Store: st, Embedder: m})
	if _, err := b.Create(t.Context(), "t", kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	ingest(t, b, text("s1", "Rain, then sun."))
	m.set(false)
	m.during = func() {
		m.during = nil
		ingest(t, kb.New(kb.Options{Store: st}), text("s1", "Apples and pears."))
	}
	if got, err := b.Embed(t.Context(), "t", "notes", kb.By{}); err != nil || got.Made != 0 || got.Embedded != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	rows, err := st.Unembedded(t.Context(), store.UnembeddedFilter{Tenant: "t", KB: "notes", Model: "compass", Limit: 5})
	if err != nil || len(rows) != 1 || rows[0].Text != "Apples and pears." {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestWithoutAModelNothingIsEmbedded(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	if got := ingest(t, b, text("s1", "Rain.")); got.Unembedded {
		t.Errorf("%+v: marked to be embedded later, without an embedder", got)
	}
	if _, err := b.Embed(t.Context(), "t", "notes", kb.By{}); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("%v", err)
	}
}
