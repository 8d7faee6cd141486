package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Tenant is a tenant of the site.
type Tenant struct {
	Name       string    `json:"name"`
	Site       bool      `json:"site" doc:"It is the site's own, which is always there."`
	By         string    `json:"by,omitzero" doc:"The principal that created it."`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	DisabledAt time.Time `json:"disabled_at,omitzero" doc:"It is not served since."`
	Directory  string    `json:"directory,omitzero" doc:"Of its configuration; on the owner's socket alone."`
}

// Tenants are all tenants of the site.
type Tenants struct {
	Tenants []Tenant `json:"tenants" nullable:"false"`
}

type tenantPath struct {
	Name string `path:"name" maxLength:"64"`
}

type tenantAnswer struct{ Body Tenant }

func tenantAs(q *request, t host.Tenant) Tenant {
	v := Tenant{Name: t.Name, Site: t.Site, By: t.By, CreatedAt: t.CreatedAt, DisabledAt: t.DisabledAt}
	if q.caller.Owns {
		v.Directory = t.Directory
	}
	return v
}

func (r *registry) tenants() {
	add(r, route{method: "GET", path: "tenants", id: "list-tenants", scope: host.ScopeAdmin, about: "The tenants of the site, for its owner; to those of other tenants there is nothing here"},
		func(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Tenants }, error) {
			of, err := r.ofSite(q)
			if err != nil {
				return nil, err
			}
			listed, err := of.List(ctx)
			if err != nil {
				return nil, err
			}
			out := &struct{ Body Tenants }{Tenants{[]Tenant{}}}
			for _, t := range listed {
				out.Body.Tenants = append(out.Body.Tenants, tenantAs(q, t))
			}
			return out, nil
		})
	add(r, route{method: "POST", path: "tenants", id: "create-tenant", scope: host.ScopeAdmin, about: "Create a tenant, with the directory of its configuration"},
		func(ctx context.Context, q *request, in *struct {
			Body struct {
				Name string `json:"name" minLength:"1" maxLength:"63" doc:"Of a-z, 0-9 and -."`
			} `nameHint:"CreateTenant"`
		}) (*tenantAnswer, error) {
			return r.tenantChanged(q, in.Body.Name, func(of host.Tenants) (host.Tenant, error) { return of.Create(ctx, in.Body.Name) })
		})
	add(r, route{method: "GET", path: "tenants/{name}", id: "get-tenant", scope: host.ScopeAdmin, about: "One tenant"},
		func(ctx context.Context, q *request, in *tenantPath) (*tenantAnswer, error) {
			return r.tenantChanged(q, in.Name, func(of host.Tenants) (host.Tenant, error) { return of.Show(ctx, in.Name) })
		})
	add(r, route{method: "POST", path: "tenants/{name}:disable", id: "disable-tenant", scope: host.ScopeAdmin, about: "Serve a tenant no more; what it has stays"},
		func(ctx context.Context, q *request, in *tenantPath) (*tenantAnswer, error) {
			return r.tenantChanged(q, in.Name, func(of host.Tenants) (host.Tenant, error) { return of.Disable(ctx, in.Name) })
		})
	add(r, route{method: "POST", path: "tenants/{name}:enable", id: "enable-tenant", scope: host.ScopeAdmin, about: "Serve a tenant again"},
		func(ctx context.Context, q *request, in *tenantPath) (*tenantAnswer, error) {
			return r.tenantChanged(q, in.Name, func(of host.Tenants) (host.Tenant, error) { return of.Enable(ctx, in.Name) })
		})
}

// ofSite returns the tenants to a caller of the site's own. To all others, also the owner of
// a tenant, there is nothing here: they do not learn which tenants there are.
func (s *server) ofSite(q *request) (host.Tenants, error) {
	if s.tenantOf(&q.caller) != "" {
		return host.Tenants{}, refused(0, plugin.CodeNotFound, "there is nothing at this path")
	}
	return q.api.Tenants(), nil
}

func (s *server) tenantChanged(q *request, name string, do func(host.Tenants) (host.Tenant, error)) (*tenantAnswer, error) {
	of, err := s.ofSite(q)
	if err != nil {
		return nil, err
	}
	t, err := do(of)
	if err != nil {
		return nil, unlessMissing(err, "tenant", name)
	}
	return &tenantAnswer{tenantAs(q, t)}, nil
}
