package kb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A partial model refuses one plugin of one tenant.
type partial struct {
	compass
	err   error
	asked int
}

func (p *partial) Space() string { return "compass" }

func (p *partial) Embed(ctx context.Context, tenant string, by kb.By, texts []string) ([][]float32, error) {
	if tenant == "t0" && by.Plugin == "p0" {
		p.asked++
		return nil, p.err
	}
	return p.compass.Embed(ctx, tenant, by, texts)
}

// TestWhatAModelRefusesOneItGivesTheOthers: whatever the error, and however one began.
// A budget that is used up is asked for again at once.
func TestWhatAModelRefusesOneItGivesTheOthers(t *testing.T) {
	t.Parallel()
	for _, code := range []plugin.Code{plugin.CodeUnavailable, plugin.CodeInvalidInput, plugin.CodeRateLimited, plugin.CodeTimeout, plugin.CodeBudgetExceeded} {
		m := &partial{err: plugin.Errorf(code, "not you")}
		b := kb.New(kb.Options{Store: openStore(t), Embedder: m})
		for _, tenant := range []string{"t0", "t1"} {
			if _, err := b.Create(t.Context(), tenant, kb.Base{ID: "notes"}); err != nil {
				t.Fatal(err)
			}
		}
		for round := range 3 {
			for _, tenant := range []string{"t0", "t1"} {
				for _, name := range []string{"p0", "p1", ""} {
					by := kb.By{Plugin: name, Principal: "ada"}
					got, err := b.Ingest(t.Context(), tenant, kb.Source{KB: "notes", ID: fmt.Sprint(name, round), Text: fmt.Sprint("rain ", name, round), By: by})
					if refused := tenant == "t0" && name == "p0"; err != nil || got.Unembedded != refused {
						t.Errorf("%s, round %d: %q of %s: %+v, %v", code, round, name, tenant, got, err)
					}
					if _, err := b.Search(t.Context(), tenant, kb.Query{Text: "rain", By: by}); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if budget := code == plugin.CodeBudgetExceeded; budget != (m.asked == 6) || !budget && m.asked != 1 {
			t.Errorf("%s: asked %d times", code, m.asked)
		}
	}
}
