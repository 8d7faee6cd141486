package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A Reference is data that plugins look things up in, without the data.
type Reference struct {
	Key       string    `json:"key"`
	Form      string    `json:"form" enum:"json,csv,txt,bundled" doc:"bundled comes along with the host."`
	Size      int64     `json:"size" doc:"Bytes."`
	UpdatedAt time.Time `json:"updated_at"`
	Version   string    `json:"version,omitempty" doc:"Of the table of techniques: enterprise 18.1, ics 18.1."`
}

// References are a page of them.
type References struct {
	References []Reference `json:"references" nullable:"false"`
	Next       string      `json:"next_page_token" doc:"Empty on the last page."`
}

// A ReferenceNamed is reference data that is meant.
type ReferenceNamed struct {
	Key string `path:"key" maxLength:"128"`
}

func (r *registry) references() {
	add(r, route{method: "GET", path: "references", id: "list-references", scope: host.ScopeRead, about: "The keys of the reference data"}, r.listReferences)
	add(r, route{method: "PUT", path: "references/{key}", id: "put-reference", scope: host.ScopeConfigure, about: "Put data in the place of a key's"}, r.putReference)
	add(r, route{method: "DELETE", path: "references/{key}", id: "delete-reference", scope: host.ScopeConfigure, about: "Take a key's data away"}, r.deleteReference)
}

func (r *registry) listReferences(_ context.Context, q *request, in *struct{ Page }) (*struct{ Body References }, error) {
	last, err := in.after("references")
	if err != nil {
		return nil, err
	}
	all, err := q.api.References().List()
	if err != nil {
		return nil, err
	}
	found := []Reference{}
	for _, k := range all {
		if k.Key > last {
			found = append(found, Reference(k))
		}
	}
	slices.SortFunc(found, func(a, b Reference) int { return strings.Compare(a.Key, b.Key) })
	out := new(struct{ Body References })
	out.Body.References, out.Body.Next = cut(found, in.size(), "", func(k *Reference) string { return k.Key }, "references")
	return out, nil
}

func (r *registry) putReference(ctx context.Context, q *request, in *struct {
	ReferenceNamed
	Body struct {
		Form string `json:"form" enum:"json,csv,txt,previous" doc:"json is kept as the value that it is, csv and txt as text; previous puts back what was there before the last change."`
		Text string `json:"text" doc:"The data itself."`
	} `nameHint:"PutReference"`
}) (*struct{ Body Reference }, error) {
	k, err := q.api.References().Put(ctx, in.Key, in.Body.Form, []byte(in.Body.Text))
	if err != nil {
		return nil, err
	}
	return &struct{ Body Reference }{Reference(k)}, nil
}

func (r *registry) deleteReference(ctx context.Context, q *request, in *ReferenceNamed) (*struct{ Body Removed }, error) {
	if err := q.api.References().Remove(ctx, in.Key); err != nil {
		return nil, unlessMissing(err, "reference data", in.Key)
	}
	return &struct{ Body Removed }{Removed{in.Key}}, nil
}

// A Removed is the id of what is not there any more.
type Removed struct {
	ID string `json:"id"`
}
