package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/report"
	"github.com/mortise-dev/mortise/plugin"
)

// whole is a session whose report has something in each member.
func whole(t *testing.T) *held {
	t.Helper()
	h := investigated(t)
	h.session.Pillar = "log_analysis"
	h.ran(t, "call-4", "made/made", h.session.ID, "")
	h.add("json_events", "none.json", "made", "call-4", "{", "private") // of which a note says that it is no JSON
	var rec plugin.CallRecord
	if err := json.Unmarshal(h.entries[0].Body, &rec); err != nil {
		t.Fatal(err)
	}
	rec.By, rec.Labels, rec.Artifacts, rec.PackageDigest, rec.ResultHash = "agent::a", []string{"untrusted"}, []string{h.all[1].ID}, "sha256:p", "sha256:r"
	h.change(t, 0, rec)
	return h
}

// TestEveryMutationOfAReportIsFound changes each member of the data, adds, doubles, swaps and removes each
// item, and writes the text again, as a person who edits a report can.
func TestEveryMutationOfAReportIsFound(t *testing.T) {
	t.Parallel()
	h := whole(t)
	r := h.report(t)
	everyMemberIsThere(t, "report", reflect.ValueOf(r))
	for _, format := range report.Formats {
		if got := h.problems(t, written(t, r, format)); got != "" {
			t.Fatalf("unchanged, %s does not hold: %s", format, got)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	tried := 0
	mutate("", root, func(value any) { root = value }, func(what string) {
		data, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		var edited report.Report
		if json.Unmarshal(data, &edited) != nil || bytes.Equal(written(t, edited, "md"), written(t, r, "md")) {
			return // it is no report any more, or the same
		}
		tried++
		c, err := report.Verify(t.Context(), h.source(), written(t, edited, report.Formats[tried%len(report.Formats)]))
		if err == nil && c.Holds() {
			t.Errorf("%s: an edited report holds", what)
		}
		if err != nil && plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", what, err)
		}
	})
	if tried < 150 {
		t.Errorf("%d mutations were tried, want at least 150", tried)
	}
	t.Logf("%d mutations", tried)
}

// everyMemberIsThere fails if the report has nothing in a member: a mutation of it would go untried.
func everyMemberIsThere(t *testing.T, at string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		if v.IsZero() {
			t.Errorf("%s is no time", at)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			everyMemberIsThere(t, at+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 && v.Type() != reflect.TypeFor[[]string]() {
			t.Errorf("%s has no item", at)
		}
		if v.Len() > 0 {
			everyMemberIsThere(t, at+"[]", v.Index(0))
		}
	}
}

// mutate changes a JSON value and all that it holds in one way after the other, calls try after each, and
// takes each back. set replaces the value.
func mutate(at string, value any, set func(any), try func(what string)) {
	with := func(what string, changed any) {
		set(changed)
		try(at + " " + what)
		set(value)
	}
	switch v := value.(type) {
	case string:
		with("is longer", v+"x")
		with("is empty", "")
		if when, err := time.Parse(time.RFC3339Nano, v); err == nil {
			with("is later", when.Add(time.Second).Format(time.RFC3339Nano))
			with("is earlier", when.Add(-time.Second).Format(time.RFC3339Nano))
		}
	case float64:
		with("is more", v+1)
		with("is less", v-1)
	case bool:
		with("is turned", !v)
	case []any:
		with("has an invented text", append(slices.Clone(v), "invented by hand"))
		for i := range v {
			with(fmt.Sprint("lacks item ", i), slices.Delete(slices.Clone(v), i, i+1))
			with(fmt.Sprint("has twice item ", i), append(slices.Clone(v), v[i]))
			if i > 0 {
				swapped := slices.Clone(v)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				with(fmt.Sprint("has swapped item ", i), swapped)
			}
		}
		with("is empty", []any{})
		for i := range v {
			mutate(fmt.Sprint(at, "/", i), v[i], func(one any) { v[i] = one }, try)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, name)
			with("lacks "+name, without)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			mutate(at+"/"+name, v[name], func(one any) { v[name] = one }, try)
		}
	}
}

// TestAnEditThatIsConsistentIsFound removes a finding with all that it rests on, so that the rest fits.
func TestAnEditThatIsConsistentIsFound(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(r *report.Report){
		"a result, its findings and its call": func(r *report.Report) {
			id, call := r.Artifacts[1].ID, r.Artifacts[1].Call
			r.Artifacts = slices.DeleteFunc(r.Artifacts, func(a report.Artifact) bool { return a.ID == id })
			r.Findings = slices.DeleteFunc(r.Findings, func(f report.Finding) bool { return f.Result == id })
			r.Calls = slices.DeleteFunc(r.Calls, func(c report.Call) bool { return c.ID == call })
			r.Session.Labels = slices.DeleteFunc(r.Session.Labels, func(l string) bool { return l == "untrusted" })
		},
		"the newest artifact and its note": func(r *report.Report) {
			r.Artifacts, r.Notes = r.Artifacts[:2], nil
		},
		"the newest call and the moment": func(r *report.Report) {
			r.Calls = r.Calls[:len(r.Calls)-1]
			last := r.Calls[len(r.Calls)-1]
			r.Until.Entries = []report.Entry{last.Entry}
		},
		"all of it": func(r *report.Report) {
			*r = report.Report{Form: r.Form, At: r.At, Until: r.Until, Session: r.Session}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := whole(t)
			r := h.report(t)
			edit(&r)
			if h.problems(t, written(t, r, "md")) == "" {
				t.Error("the edited report holds")
			}
		})
	}
}

// TestAReportHoldsWhateverComesLater: calls, another entry about a call, artifacts, labels and another pillar.
func TestAReportHoldsWhateverComesLater(t *testing.T) {
	t.Parallel()
	h := whole(t)
	file := written(t, h.report(t), "md")
	h.ran(t, "call-5", "search/search", h.session.ID, "")
	h.ran(t, "call-1", "search/search", h.session.ID, "it was settled otherwise")
	h.add("json_events", "later.json", "search", "call-5", `{"findings":[{"title":"later","line":1}]}`, "private", "secret")
	h.noted(t, plugin.EntrySessionPillar, map[string]string{"pillar": "risk_assessment", "was": h.session.Pillar})
	h.session.Pillar = "risk_assessment"
	h.session.Labels = []string{"secret"}
	for n := range report.MaxEntries + 10 {
		h.ran(t, fmt.Sprint("other-", n), "other/other", "sess_of_another0", "")
	}
	if got := h.problems(t, file); got != "" {
		t.Errorf("it does not hold any more: %s", got)
	}
}
