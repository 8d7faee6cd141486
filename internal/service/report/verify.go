package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/service/timeline"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// A Check is what a look at a report found.
type Check struct {
	Session   string   `json:"session"`
	Artifacts int      `json:"artifacts"` // that were looked at, as all that follow
	Calls     int      `json:"calls"`
	Findings  int      `json:"findings"`
	Events    int      `json:"events"`
	Problems  []string `json:"problems"` // what does not hold; the first 100
	More      int      `json:"more"`     // and how many others
}

// Holds reports whether all of it does.
func (c Check) Holds() bool { return len(c.Problems) == 0 }

func (c *Check) say(format string, args ...any) {
	if len(c.Problems) == maxProblems {
		c.More++
		return
	}
	c.Problems = append(c.Problems, plain(fmt.Sprintf(format, args...)))
}

// dataMark is how the line with the data begins. No text of others begins a line.
const dataMark = `{"form":`

// encoded is the data of a report: one line in ASCII that is no markup of Markdown or HTML.
func encoded(r Report) (string, error) {
	raw, err := json.Marshal(r) // which escapes what HTML means
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range string(raw) {
		switch {
		case c == '`':
			b.WriteString(`\u0060`)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case c >= 0x7f:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String(), nil
}

// Read returns the report that a file has. Error: invalid_input where it has none.
func Read(file []byte) (Report, error) {
	if len(file) > MaxBytes {
		return Report{}, plugin.Errorf(plugin.CodeInvalidInput, "the file has more than the %d bytes of a report", MaxBytes)
	}
	var found []byte
	for line := range bytes.Lines(file) {
		if bytes.HasPrefix(line, []byte(dataMark)) {
			found = line
		}
	}
	var r Report
	in := json.NewDecoder(bytes.NewReader(found))
	in.DisallowUnknownFields()
	if found == nil || in.Decode(&r) != nil {
		return Report{}, plugin.Errorf(plugin.CodeInvalidInput, "the file is no report of a session: it has no data that can be read")
	}
	if r.Form != form {
		return Report{}, plugin.Errorf(plugin.CodeInvalidInput, "the report is of form %d, and this program verifies form %d", r.Form, form)
	}
	if len(r.Artifacts) > MaxArtifacts || len(r.Calls) > MaxCalls || len(r.Findings) > MaxFindings || len(r.Events) > MaxEvents || len(r.Until.Entries) > maxChains {
		return Report{}, plugin.Errorf(plugin.CodeInvalidInput, "the report cites more than a report can")
	}
	return r, nil
}

// Verify holds the report of a file against the session that it is of: it works out the whole report of the
// same moment once more, and compares every member of it and every byte of the file. What was added to the
// session since is no part of that. Errors: those of the ledger; what an artifact's bytes do not hold is a
// problem, and no error.
func Verify(ctx context.Context, s Source, file []byte) (Check, error) {
	r, err := Read(file)
	if err != nil {
		return Check{}, err
	}
	c := Check{Session: r.Session.ID, Artifacts: len(r.Artifacts), Calls: len(r.Calls), Findings: len(r.Findings), Events: len(r.Events), Problems: []string{}}
	if r.Session.ID != s.Session.ID || r.Session.Name != s.Session.Name || r.Session.Owner != s.Session.Owner {
		c.say("the report is of session %s (%s) of %s, and the host has %s (%s) of %s", r.Session.ID, r.Session.Name, r.Session.Owner, s.Session.ID, s.Session.Name, s.Session.Owner)
	}
	format := formatOf(file)
	if text, err := r.Write(format); err != nil {
		c.say("the data cannot be written: %v", err)
	} else if n, line := difference(file, text); n > 0 {
		c.say("line %d of the report is not what its data says: it is %s", n, line)
	}
	again, err := c.again(ctx, r, s)
	if err != nil {
		return Check{}, err
	}
	differ(&c, "finding", r.Findings, again.Findings, func(f Finding) string { return f.Result + " at " + f.At })
	differ(&c, "event", r.Events, again.Events, func(e timeline.Event) string {
		return fmt.Sprintf("%s, %s", clock(e.Time), cited(placeOf(e)))
	})
	differ(&c, "note", r.Notes, again.Notes, func(note string) string { return fmt.Sprintf("%q", clipped(note, 120)) })
	if c.Holds() {
		c.members(r, again)
	}
	if c.Holds() { // so that nothing of the file is left that was compared with nothing
		text, err := again.Write(format)
		if err != nil {
			return Check{}, err
		}
		if n, line := difference(file, text); n > 0 {
			c.say("line %d of the report is not what the host works out: it is %s", n, line)
		}
	}
	return c, nil
}

// again works out the report of the moment that a report is of. Artifacts whose bytes are not what they were
// are left out.
func (c *Check) again(ctx context.Context, r Report, s Source) (Report, error) {
	then := len(s.Artifacts)
	if r.Until.Artifact == "" {
		then = 0
	} else if i := slices.IndexFunc(s.Artifacts, func(a session.Artifact) bool { return a.ID == r.Until.Artifact }); i >= 0 {
		then = i + 1
	} else {
		c.say("the newest artifact of the report is %s, and the session has none of this id", r.Until.Artifact)
	}
	s.Artifacts = c.artifacts(ctx, r, s, then)
	pillar, err := hadPillar(ctx, s, r.Session.Pillar)
	if err != nil {
		return Report{}, err
	}
	if pillar {
		s.Session.Pillar = r.Session.Pillar
	}
	if err := c.calls(ctx, r, s); err != nil {
		return Report{}, err
	}
	entries, err := c.entries(ctx, r.Until, s)
	if err != nil {
		return Report{}, err
	}
	again, err := of(ctx, s, r.Until, entries)
	for _, call := range again.Calls {
		if !slices.ContainsFunc(r.Calls, func(cited Call) bool { return cited.ID == call.ID }) {
			c.say("the report lacks call %s of %s", call.ID, call.Operation)
		}
	}
	return again, err
}

// hadPillar reports whether a session is in a pillar, or was: the ledger has every change.
func hadPillar(ctx context.Context, s Source, pillar string) (bool, error) {
	if pillar == s.Session.Pillar {
		return true, nil
	}
	found, err := s.Find(ctx, s.Session.ID)
	if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		return false, err
	}
	for _, e := range found {
		var changed struct {
			Pillar string `json:"pillar"`
			Was    string `json:"was"`
		}
		switch e.Kind {
		case plugin.EntrySessionCreated, plugin.EntrySessionPillar:
			if json.Unmarshal(e.Body, &changed) == nil && (changed.Pillar == pillar || e.Kind == plugin.EntrySessionPillar && changed.Was == pillar) {
				return true, nil
			}
		}
	}
	return false, nil
}

// entries are the newest about calls at a moment.
func (c *Check) entries(ctx context.Context, until Until, s Source) (all []plugin.Entry, err error) {
	for _, at := range until.Entries {
		entries, err := s.Newest(ctx, at)
		if err != nil {
			return nil, err
		}
		if n := len(entries); n == 0 || entries[n-1].Chain != at.Chain || entries[n-1].Seq != at.Seq || entries[n-1].Hash != at.Hash {
			c.say("the newest entry of the report is %s, and the ledger has no such entry about a call", inLedger(at))
			continue
		}
		all = append(all, entries...)
	}
	if len(until.Entries) > 1 {
		slices.SortStableFunc(all, func(a, b plugin.Entry) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Seq, b.Seq))
		})
	}
	all = all[max(0, len(all)-MaxEntries):]
	if now := heads(all); !same(now, until.Entries) && c.Holds() {
		c.say("the newest entries of the report are not those of one moment")
	}
	return all, nil
}

// members says which members of a report are not what they are worked out to be, after a closer look found
// nothing.
func (c *Check) members(r, again Report) {
	has, is := reflect.ValueOf(r), reflect.ValueOf(again)
	for i := range has.NumField() {
		if !same(has.Field(i).Interface(), is.Field(i).Interface()) {
			c.say("%s of the report: the host works it out otherwise", has.Type().Field(i).Tag.Get("json"))
		}
	}
}

func formatOf(file []byte) string {
	if bytes.HasPrefix(file, []byte("<!DOCTYPE html>")) {
		return "html"
	}
	return "md"
}

// difference returns the first line in which a file is not what it should be, with what it is; 0 if there
// is none.
func difference(file, want []byte) (n int, line string) {
	if bytes.Equal(want, file) {
		return 0, ""
	}
	is, should := strings.Split(string(file), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(is), len(should)) {
		if i >= len(is) || i >= len(should) || is[i] != should[i] {
			if i < len(is) {
				return i + 1, fmt.Sprintf("%q", clipped(is[i], 120))
			}
			return i + 1, "missing"
		}
	}
	return 0, ""
}

// artifacts are those that the session had then, but for those whose bytes are not what they were. It says
// which of them the report does not have, or has otherwise.
func (c *Check) artifacts(ctx context.Context, r Report, s Source, then int) (good []session.Artifact) {
	for _, cited := range r.Artifacts {
		i := slices.IndexFunc(s.Artifacts[:then], func(a session.Artifact) bool { return a.ID == cited.ID })
		if i < 0 {
			c.say("artifact %s (%s): the session has none of this id", cited.ID, cited.Name)
			continue
		}
		if now := artifactOf(s.Artifacts[i]); !same(now, cited) {
			c.say("artifact %s (%s): the report has sha256 %s and %d bytes of %q, and the session %s and %d of %q", cited.ID, cited.Name,
				cited.SHA256, cited.Size, cited.Tool, now.SHA256, now.Size, now.Tool)
		}
	}
	for i, a := range s.Artifacts[:then] {
		if i >= MaxArtifacts { // of these a report has no more than how many there are
			good = append(good, a)
			continue
		}
		if !slices.ContainsFunc(r.Artifacts, func(cited Artifact) bool { return cited.ID == a.ID }) {
			c.say("the report lacks artifact %s (%s)", a.ID, a.Name)
		}
		switch is, err := sum(ctx, s, a.ID); {
		case err != nil:
			c.say("artifact %s (%s): %v", a.ID, a.Name, err)
		case is != a.SHA256:
			c.say("artifact %s (%s): its bytes have sha256 %s, and not %s", a.ID, a.Name, is, a.SHA256)
		default:
			good = append(good, a)
		}
	}
	return good
}

// calls says which calls of the report the ledger does not have where the report says, with the hash that it says.
func (c *Check) calls(ctx context.Context, r Report, s Source) error {
	for _, cited := range r.Calls {
		at := fmt.Sprintf("%d/%d", cited.Entry.Chain, cited.Entry.Seq)
		found, err := s.Find(ctx, at)
		if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
			return err
		}
		if len(found) == 0 {
			c.say("call %s: the ledger has no entry %s", cited.ID, at)
			continue
		}
		e := found[0]
		now, in, is := callOf(e)
		switch {
		case e.Hash != cited.Entry.Hash:
			c.say("call %s: entry %s of the ledger has the hash %s, and not %s", cited.ID, at, e.Hash, cited.Entry.Hash)
		case !is:
			c.say("call %s: entry %s of the ledger does not tell of a call, or not any more", cited.ID, at)
		case chain.Hash(&e) != e.Hash:
			c.say("call %s: entry %s of the ledger is not what its hash is of", cited.ID, at)
		case in != s.Session.ID:
			c.say("call %s: entry %s of the ledger is about a call of another session", cited.ID, at)
		case !same(now, cited):
			c.say("call %s: entry %s of the ledger tells of it otherwise: %s %s, %s, by %s", cited.ID, at, now.Operation, now.Version, now.Kind, now.Principal)
		}
	}
	return nil
}

// differ says which of the things that a report has are not what they are worked out to be now.
func differ[T any](c *Check, what string, has, now []T, name func(T) string) {
	byKey := map[string]T{}
	for i, key := range keys(now, name) {
		byKey[key] = now[i]
	}
	for i, key := range keys(has, name) {
		is, there := byKey[key]
		switch {
		case !there:
			c.say("%s %d (%s): what it cites does not say this, or does not hold", what, i+1, name(has[i]))
		case !same(is, has[i]):
			c.say("%s %d (%s): what it cites says otherwise", what, i+1, name(has[i]))
		}
		delete(byKey, key)
	}
	for i, key := range keys(now, name) {
		if _, left := byKey[key]; left {
			c.say("the report lacks a %s: %s", what, name(now[i]))
		}
	}
}

// keys are names, each with how many there were of it before.
func keys[T any](all []T, name func(T) string) []string {
	count := map[string]int{}
	out := make([]string, len(all))
	for i, one := range all {
		key := name(one)
		out[i] = fmt.Sprintf("%s\x00%d", key, count[key])
		count[key]++
	}
	return out
}

// same reports whether two values are written alike.
func same(a, b any) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}
