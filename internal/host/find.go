package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// Ids may be abbreviated. They begin with the time, so that those of one day
// look alike and their ends tell them apart.
const (
	shortestID = 6      // characters of an id that are enough
	lookBack   = 10_000 // newest rows among which an end is looked for
	page       = 500    // rows read at a time

	mostDocuments = 1000 // of a knowledge base that are read at a time
)

// absent is what a get of [byID] returns where nothing has that id.
var absent = plugin.Errorf(plugin.CodeNotFound, "nothing has that id")

// byID returns what an id means, written whole or cut short to its beginning or its end.
// An id that means nothing is refused in the words of get, unless it has none. list
// returns ids that are smaller than before, newest first.
func byID[T any](what, given string, get func(id string) (T, error), list func(before string, limit int) ([]string, error)) (T, error) {
	got, err := get(given)
	if plugin.CodeOf(err) != plugin.CodeNotFound {
		return got, err
	}
	id, failed := findID(what, given, list)
	switch {
	case failed == nil:
		return get(id)
	case errors.Is(err, absent) || plugin.CodeOf(failed) == plugin.CodeInvalidInput && len(given) >= shortestID:
		return got, failed
	}
	return got, err
}

// findID returns the one id that begins so, or ends so.
func findID(what, given string, list func(before string, limit int) ([]string, error)) (string, error) {
	if len(given) < shortestID || len(given) > 64 {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%q is no id of any %s: write the whole, or at least %d characters of its beginning or end", given, what, shortestID)
	}
	begun, err := list(given+"g", 2) // in hexadecimal nothing is above f
	if err != nil {
		return "", err
	}
	found := matching(begun, func(id string) bool { return strings.HasPrefix(id, given) })
	if len(found) == 0 {
		for before, seen := "", 0; seen < lookBack; seen += page {
			ids, err := list(before, page)
			if err != nil {
				return "", err
			}
			found = append(found, matching(ids, func(id string) bool { return strings.HasSuffix(id, given) })...)
			if len(ids) < page {
				break
			}
			before = ids[len(ids)-1]
		}
	}
	switch len(found) {
	case 0:
		return "", plugin.Errorf(plugin.CodeNotFound, "there is no %s %s; 'mortise %ss list' shows those there are", what, given, what)
	case 1:
		return found[0], nil
	}
	return "", plugin.Errorf(plugin.CodeInvalidInput, "%s may mean %s or %s; write more of the id, or its end", given, found[0], found[1])
}

func matching(ids []string, fits func(string) bool) (found []string) {
	for _, id := range ids {
		if fits(id) {
			found = append(found, id)
		}
	}
	return found
}

// orAbsent turns a row that there is not into an error.
func orAbsent[T any](row *T, err error) (*T, error) {
	if row == nil && err == nil {
		err = absent
	}
	return row, err
}

// among lists ids that are all known.
func among(all func() ([]string, error)) func(before string, limit int) ([]string, error) {
	sorted := sync.OnceValues(func() ([]string, error) {
		ids, err := all()
		slices.Sort(ids)
		ids = slices.Compact(ids)
		slices.Reverse(ids)
		return ids, err
	})
	return func(before string, limit int) ([]string, error) {
		ids, err := sorted()
		if i := slices.IndexFunc(ids, func(id string) bool { return before == "" || id < before }); i >= 0 {
			return ids[i:min(i+limit, len(ids))], err
		}
		return nil, err
	}
}

func idsOf[T any](rows []T, id func(T) string) []string {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = id(row)
	}
	return ids
}

// mostPages is how many pages are read for an id that is cut short, of lists whose pages may have
// few rows that the caller may see.
const mostPages = 5

// Find returns the call that an id means, which may be cut short, as [Calls.Get] does.
func (c Calls) Find(ctx context.Context, given, action string) (*CallRow, error) {
	return c.find(ctx, given, action, c.Get)
}

// FindToControl returns the call that an id means, as [Calls.Control] does.
func (c Calls) FindToControl(ctx context.Context, given, action string) (*CallRow, error) {
	return c.find(ctx, given, action, c.Control)
}

func (c Calls) find(ctx context.Context, given, action string, get func(ctx context.Context, id, action string) (*CallRow, error)) (*CallRow, error) {
	return byID("call", given, func(id string) (*CallRow, error) { return orAbsent(get(ctx, id, action)) }, func(before string, limit int) ([]string, error) {
		rows, err := collect(before, limit, mostPages, func(before string, limit int) ([]CallRow, string, error) {
			return c.Page(ctx, CallFilter{Before: before, Limit: limit})
		})
		return idsOf(rows, func(r CallRow) string { return r.ID }), err
	})
}

// Find returns the approval that an id means, which may be cut short, as
// [Approvals.Get] does.
func (a Approvals) Find(ctx context.Context, given, action string) (*ApprovalRow, error) {
	return byID("approval", given, func(id string) (*ApprovalRow, error) { return orAbsent(a.Get(ctx, id, action)) }, func(before string, limit int) ([]string, error) {
		rows, err := collect(before, limit, mostPages, func(before string, limit int) ([]ApprovalRow, string, error) {
			return a.Page(ctx, ApprovalFilter{Before: before, Limit: limit})
		})
		return idsOf(rows, func(r ApprovalRow) string { return r.ID }), err
	})
}

// Find returns the id of the feed that is meant. What is done with it asks for rights.
func (f Feeds) Find(ctx context.Context, given string) (string, error) {
	row, err := byID("feed", given, func(id string) (*ScheduleRow, error) { return orAbsent(f.g.Store.Schedule(ctx, f.g.Tenant, id)) }, func(before string, limit int) ([]string, error) {
		rows, err := f.g.Store.Schedules(ctx, ScheduleFilter{Tenant: f.g.Tenant, Before: before, Limit: limit})
		return idsOf(rows, func(r ScheduleRow) string { return r.ID }), err
	})
	if err != nil {
		return "", err
	}
	return row.ID, nil
}

// Find returns the session that an id means, which may be cut short.
func (m Sessions) Find(ctx context.Context, given string) (session.Session, error) {
	return InSession(ctx, m, given, func(id string) (session.Session, error) { return m.Get(ctx, id) })
}

// InSession does something with the session that is meant, of those that m lists.
func InSession[T any](ctx context.Context, m interface {
	List(ctx context.Context) ([]session.Session, error)
}, given string, do func(id string) (T, error)) (T, error) {
	return byID("session", given, do, among(func() ([]string, error) {
		all, err := m.List(ctx)
		return idsOf(all, func(s session.Session) string { return s.ID }), err
	}))
}

// FindArtifact returns the artifact of a session that is meant, by its id or its name.
func (m Sessions) FindArtifact(ctx context.Context, in, given string) (session.Artifact, error) {
	return byID("artifact", given, func(id string) (session.Artifact, error) { return m.Artifact(ctx, in, id) }, among(func() ([]string, error) {
		all, err := m.Artifacts(ctx, in)
		return idsOf(all, func(a session.Artifact) string { return a.ID }), err
	}))
}

// ArtifactAmong is [Sessions.FindArtifact] where all artifacts of the session are known.
func ArtifactAmong(list []Artifact, in, given string) (Artifact, error) {
	return byID("artifact", given, func(id string) (session.Artifact, error) { return session.Named(list, in, id) }, among(func() ([]string, error) {
		return idsOf(list, func(a session.Artifact) string { return a.ID }), nil
	}))
}

// FindDocument returns the document of a knowledge base that is meant.
func (k Knowledge) FindDocument(ctx context.Context, base, given string) (Document, error) {
	return k.find(ctx, base, given, k.Document)
}

// FindAndRemove removes the document of a knowledge base that is meant.
func (k Knowledge) FindAndRemove(ctx context.Context, base, given string) (Document, error) {
	return k.find(ctx, base, given, k.RemoveDocument)
}

func (k Knowledge) find(ctx context.Context, base, given string, do func(ctx context.Context, base, id string) (Document, error)) (Document, error) {
	return InDocument(ctx, k, base, given, do)
}

// InDocument does something with the document of a knowledge base that is meant, of those
// that k lists.
func InDocument(ctx context.Context, k interface {
	Documents(ctx context.Context, l kb.Listing) ([]Document, error)
}, base, given string, do func(ctx context.Context, base, id string) (Document, error)) (Document, error) {
	return byID("document", given, func(id string) (Document, error) { return do(ctx, base, id) }, among(func() (ids []string, err error) {
		for last := mostDocuments; last == mostDocuments && len(ids) < lookBack; {
			l := kb.Listing{KB: base, Limit: mostDocuments}
			if len(ids) > 0 {
				l.After = ids[len(ids)-1]
			}
			some, err := k.Documents(ctx, l)
			if err != nil {
				return nil, err
			}
			ids, last = append(ids, idsOf(some, func(d Document) string { return d.ID })...), len(some)
		}
		return ids, nil
	}))
}

// FindFeed returns the id of the feed that is meant, of those that f lists.
func FindFeed(ctx context.Context, f interface {
	List(ctx context.Context) ([]Feed, error)
}, given string) (string, error) {
	all, err := f.List(ctx)
	if err != nil {
		return "", err
	}
	ids := idsOf(all, func(feed Feed) string { return feed.ID })
	return byID("feed", given, func(id string) (string, error) {
		if slices.Contains(ids, id) {
			return id, nil
		}
		return "", absent
	}, among(func() ([]string, error) { return ids, nil }))
}
