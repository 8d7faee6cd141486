package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A QuotaUse is what the caller used of one bound.
type QuotaUse struct {
	Of     string    `json:"of" doc:"All operations, a plugin, plugin/operation, or the accounts of a provider."`
	Period string    `json:"period" enum:"daily,monthly,minute,concurrent"`
	Limit  int64     `json:"limit"`
	Used   int64     `json:"used" doc:"Of a minute and of what runs at once: on the node that answers."`
	Ends   time.Time `json:"ends,omitzero" doc:"When a day or a month is over."`
}

func (r *registry) quotas() {
	add(r, route{method: "GET", path: "quotas", id: "list-quotas", scope: host.ScopeRead, about: "How many calls the caller may make, and has made"}, r.listQuotas)
}

func (r *registry) listQuotas(ctx context.Context, q *request, _ *struct{}) (*struct {
	Body struct {
		Quotas []QuotaUse `json:"quotas" nullable:"false"`
	} `nameHint:"Quotas"`
}, error) {
	uses, err := q.api.Quotas(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct {
		Body struct {
			Quotas []QuotaUse `json:"quotas" nullable:"false"`
		} `nameHint:"Quotas"`
	}{}
	out.Body.Quotas = []QuotaUse{}
	for _, use := range uses {
		out.Body.Quotas = append(out.Body.Quotas, QuotaUse(use))
	}
	return out, nil
}
