package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// calls are those of the session, each by the entry that says how it ended: the newest that there is of
// it among the entries, and those that its artifacts name.
func (r *Report) calls(ctx context.Context, s Source, entries []plugin.Entry) ([]Call, error) {
	if len(entries) >= MaxEntries {
		r.note("calls of this session that are older than the newest %d entries about calls are here only where they made an artifact", MaxEntries)
	}
	byID := map[string]Call{}
	for _, e := range entries {
		if c, in, is := callOf(e); is && in == s.Session.ID {
			byID[c.ID] = c // a later entry of one call takes the place of an earlier one
		}
	}
	for _, a := range s.Artifacts {
		if _, there := byID[a.SourceCall]; there || a.SourceCall == "" {
			continue
		}
		found, err := s.Find(ctx, a.SourceCall)
		if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
			return nil, err
		}
		for _, e := range found {
			if c, _, is := callOf(e); is && c.ID == a.SourceCall && r.Until.has(e) {
				byID[c.ID] = c
			}
		}
		if _, there := byID[a.SourceCall]; !there {
			r.note("the ledger has no entry of call %s, which made %s", a.SourceCall, a.ID)
		}
	}
	all := []Call{}
	for _, c := range byID {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Call) int {
		if at := a.At.Compare(b.At); at != 0 {
			return at
		}
		return strings.Compare(a.ID, b.ID)
	})
	if len(all) > MaxCalls {
		r.note("there are %d calls in this session; the newest %d are here", len(all), MaxCalls)
		all = all[len(all)-MaxCalls:]
	}
	return all, nil
}

// has reports whether an entry is of the moment, or of before. A chain of which the moment has no entry
// had none among the newest.
func (u Until) has(e plugin.Entry) bool {
	i := slices.IndexFunc(u.Entries, func(at Entry) bool { return at.Chain == e.Chain })
	return i < 0 && len(u.Entries) > 0 || i >= 0 && e.Seq <= u.Entries[i].Seq
}

// callOf reads an entry about a call, and the session that the call was made in.
func callOf(e plugin.Entry) (c Call, in string, is bool) {
	var rec plugin.CallRecord
	if !strings.HasPrefix(string(e.Kind), "call.") || json.Unmarshal(e.Body, &rec) != nil {
		return Call{}, "", false
	}
	c = Call{
		ID: e.Subject, Operation: rec.Operation, Version: rec.Version, Package: rec.PackageDigest, At: e.At.UTC(), Principal: e.Principal, By: rec.By,
		Origin: string(rec.Origin), Kind: string(e.Kind), InputHash: rec.InputHash, ResultHash: rec.ResultHash,
		Labels: append([]string{}, rec.Labels...), Artifacts: append([]string{}, rec.Artifacts...), Entry: Entry{e.Chain, e.Seq, e.Hash},
	}
	if rec.Error != nil {
		c.Code, c.Message = string(rec.Error.Code), clipped(rec.Error.Message, maxText)
		if rec.Error.PluginCode != "" {
			c.Code += " (" + rec.Error.PluginCode + ")"
		}
	}
	return c, rec.Session, true
}

// entryOf is where the ledger tells of a call that the report has.
func (r *Report) entryOf(call string) Entry {
	for _, c := range r.Calls {
		if c.ID == call {
			return c.Entry
		}
	}
	return Entry{}
}
