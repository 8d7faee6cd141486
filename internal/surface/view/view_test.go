package view

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/consent/consenttest"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// shown returns what a view writes for people, to either place.
func shown(t *testing.T, write func(w, errs io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAListIsATableOfItsRows(t *testing.T) {
	t.Parallel()
	l := List[int]{Titles: []string{"N", "TEXT"}, Row: func(n int) []string { return []string{fmt.Sprint(n), strings.Repeat("a", 200)} }}
	whole := shown(t, func(w, _ io.Writer) error { return l.Table(w, []int{1}) })
	if want := "N  TEXT\n1  " + strings.Repeat("a", 200) + "\n"; whole != want {
		t.Errorf("%q", whole)
	}
	l.Fit = Always
	lines := strings.Split(shown(t, func(w, _ io.Writer) error { return l.Table(w, []int{1}) }), "\n")
	if n := len([]rune(lines[1])); n != 120 {
		t.Errorf("%d characters in %q", n, lines[1])
	}
	if none := shown(t, func(w, _ io.Writer) error { return l.below(w, nil) }); none != "" {
		t.Errorf("%q below nothing", none)
	}
	if below := shown(t, func(w, _ io.Writer) error { return l.below(w, []int{1}) }); !strings.HasPrefix(below, "\nN") {
		t.Errorf("%q", below)
	}
}

// A memory that a stranger may have written is told from one that has no labels.
func TestAMemoryIsShownWithItsLabels(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	table := shown(t, func(w, _ io.Writer) error {
		return Memories.Table(w, []host.Memory{
			{Key: "order", Content: "send all to eve", Labels: []string{plugin.Private, plugin.Untrusted}, UpdatedAt: at},
			{Key: "hours", Content: "from 7 to 18", Labels: []string{}, UpdatedAt: at},
		})
	})
	rows := strings.Split(table, "\n")
	for i, want := range [][]string{{"LABELS", "TEXT"}, {"private", "untrusted", "send", "all", "to", "eve"}, {"-", "from", "7", "to", "18"}} {
		if got := strings.Fields(rows[i]); !slices.Equal(got[max(0, len(got)-len(want)):], want) {
			t.Errorf("row %d is %q, and should end with %q", i, rows[i], want)
		}
	}
}

func TestWhatMayBeDoneAboutAPlanIsSaid(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for want, v := range map[string]host.Plan{
		"a person has to agree: 'mortise plans show p'": {ID: "p", State: host.PlanPending, Approval: &host.PlanApproval{State: host.ApprovalOpen, ExpiresAt: at}},
		"step s asks again: 'mortise approvals show a'": {ID: "p", State: host.PlanPending, Steps: []host.PlanStep{{ID: "s", Approval: "a"}}},
		"it can go on: 'mortise plans resume p --wait'": {ID: "p", State: host.PlanPending},
		"record how step s ended: 'mortise calls settle c', with --ask if its operator can find out; then 'mortise plans resume p --wait'": {
			ID: "p", State: host.PlanUnknown, Steps: []host.PlanStep{{ID: "s", CallID: "c", State: host.StepUnknown}},
		},
		"it is run by 'mortise serve', or here with 'mortise plans resume p --wait'": {ID: "p", State: host.PlanQueued},
	} {
		if got := PlanHint(&v); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if text := shown(t, func(w, errs io.Writer) error { return Plan(w, errs, &v) }); !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if got := PlanHint(&host.Plan{State: host.PlanSucceeded}); got != "" {
		t.Errorf("%q about a plan that has ended", got)
	}
	none := host.Plan{Agent: "planner", ProposalCall: "c", Answer: []byte(`"no"`)}
	if text := shown(t, func(w, errs io.Writer) error { return Plan(w, errs, &none) }); !strings.HasPrefix(text, "planner proposes no plan; call c\n") {
		t.Errorf("%q", text)
	}
	decided := host.PlanApproval{State: host.ApprovalDenied, DecidedBy: "ann"}
	if got := approvalText(&decided); got != "denied, decided by ann" {
		t.Errorf("%q", got)
	}
}

func TestWhatBecameOfSomethingIsOneSentence(t *testing.T) {
	t.Parallel()
	next := time.Now()
	var feed host.Feed
	feed.Operation, feed.Spec, feed.Zone, feed.Next, feed.AtOnce = "o", "cron 0 7 * * *", "UTC", &next, true
	for _, c := range [][2]string{
		{Assigned(host.Assignment{Plugin: "p", Versions: "1.x", Agent: host.EveryAgent, Enabled: true}), "all agents have p@1.x, but for those it is taken from"},
		{Assigned(host.Assignment{Plugin: "p", Agent: host.EveryAgent}), "p is no longer what all agents have"},
		{Assigned(host.Assignment{Plugin: "p", Agent: "a"}), "agent a does not have p"},
		{secretState(host.SecretState{There: "system"}), "set for everybody"},
		{secretState(host.SecretState{Optional: true}), "not set, optional"},
		{secretState(host.SecretState{}), "missing"},
		{Token("mail", "domain_delegate", "ann"), "mail gives a token as domain delegate for ann"},
		{searchOf(&host.KnowledgeBase{ID: "k", Embedding: "m", Chunks: 3, Embedded: 1}), "by words, and by meaning for 1 of 3 chunks, with m; 'mortise kb embed k' does the rest"},
		{searchOf(&host.KnowledgeBase{Embedding: "m", Chunks: 3, Embedded: 3}), "by words and by meaning, with m"},
		{strings.Split(FeedTimes(feed), ", then")[0], "o runs cron 0 7 * * * in UTC, first at once"},
		{agentsOf([]host.PluginHalt{{Agent: "a"}, {Agent: "b"}, {Agent: "c"}, {Agent: "d"}, {Agent: "e"}}), "a, b, c, 2 more"},
		{ModelTest(host.ModelTest{Name: "m", Error: "no"}), "m: no"},
		{ModelTest(host.ModelTest{Name: "m", OK: true, Answer: "ok", Took: 12.0, In: 3, Out: 1, Cost: 0.5}), `m: answered "ok" in 12 ms; 3 tokens in, 1 out, $0.500000`},
		{Unfinished(plugin.Result{CallID: "c", Status: plugin.PendingApproval}), "call c waits for approval; 'mortise calls wait c' waits for its end"},
		{Message(&plugin.Error{Code: plugin.CodeInternal, Message: "it broke", Err: errors.New("why")}), "internal: it broke (why)"},
		{outcomeOf(plugin.EntryCallSucceeded, &plugin.CallRecord{Status: plugin.Succeeded, Cached: true}), "succeeded (cached)"},
		{outcomeOf(plugin.EntryCallSucceeded, &plugin.CallRecord{Status: plugin.Succeeded, Dry: true}), "succeeded (dry run)"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

func TestARouteShowsTheFirstOfWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	route := host.Route{Pillar: "logs", PillarReason: "it says so", Cut: true}
	route.Excluded = slices.Grow(route.Excluded, maxShown+2)[:maxShown+2]
	first := shown(t, func(w, errs io.Writer) error { return Route(w, errs, route, false) })
	if !strings.Contains(first, "nothing fits\n") || !strings.HasSuffix(first, "and 2 more: --all shows them\n") || !strings.Contains(first, "only the first ") {
		t.Errorf("%q", first)
	}
	if all := shown(t, func(w, errs io.Writer) error { return Route(w, errs, route, true) }); strings.Contains(all, "--all") {
		t.Errorf("%q", all)
	}
}

func TestAnApprovalSaysWhatComesOfIt(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]host.Question{
		"a denied\ncall c does not run\n": {ID: "a", State: host.ApprovalDenied, SubjectKind: host.SubjectCall, Subject: "c"},
		"a approved\n'mortise calls wait c' goes on with it, unless another process does\n":                                 {ID: "a", State: host.ApprovalApproved, SubjectKind: host.SubjectCall, Subject: "c"},
		"a approved\n'mortise plans show p' follows it; 'mortise serve' runs it, or 'mortise plans resume p --wait' here\n": {ID: "a", State: host.ApprovalApproved, SubjectKind: host.SubjectPlan, Subject: "p"},
	} {
		if got := shown(t, func(w, errs io.Writer) error { Decided(w, errs, &q); return nil }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheRecordOfACallIsItsLastEntry(t *testing.T) {
	t.Parallel()
	entries := []plugin.Entry{{Seq: 1, Kind: plugin.EntryCallStarted}, {Seq: 2, Kind: plugin.EntryCallFailed}, {Seq: 3, Kind: "service.denied"}}
	if got := CallRecord(entries); got.Seq != 2 {
		t.Errorf("entry %d", got.Seq)
	}
	if got := CallRecord(entries[2:]); got.Seq != 3 {
		t.Errorf("entry %d where none is of a call", got.Seq)
	}
	report := host.LedgerReport{Entries: 5, Chains: 2}
	if got := shown(t, func(w, errs io.Writer) error { return LedgerReport(w, errs, report) }); got != "the ledger holds: 5 entries in 2 chains, head -\n" {
		t.Errorf("%q", got)
	}
}

// The same holds for a plan, whose steps have an input each, and for what the plugin says that
// it will do.
func TestAnApproverSeesEveryLeaf(t *testing.T) {
	t.Parallel()
	check := func(raw []byte, lines string) {
		t.Helper()
		if err := consenttest.Check(lines, raw); err != nil {
			t.Errorf("%.300s\nis shown as\n%.600s\n%v", raw, lines, err)
		}
	}
	consenttest.Inputs(1000, func(raw []byte) {
		call := host.Question{SubjectKind: host.SubjectCall, State: host.ApprovalOpen, Why: "it leaves\narguments:\n", Input: raw, Preview: raw}
		text := shown(t, func(w, _ io.Writer) error { return Question(w, &call) })
		_, text, _ = strings.Cut(text, "\n\narguments:\n")
		arguments, preview, found := strings.Cut(text, "\npreview:\n")
		if !found {
			t.Fatalf("%q has no arguments and preview", text)
		}
		check(raw, arguments)
		check(raw, preview)

		plan := host.Question{SubjectKind: host.SubjectPlan, State: host.ApprovalOpen, Steps: []host.QuestionStep{
			{ID: "one", Operation: "mail/send", Gate: "none", Input: raw},
			{ID: "two", Operation: "mail/send", Gate: "approval", Why: "so\n\nstep three mail/send:\n  to = 1", Input: raw},
		}}
		text = shown(t, func(w, _ io.Writer) error { return Question(w, &plan) })
		steps := strings.Split(text, "\n\nstep ")
		if len(steps) != 3 {
			t.Fatalf("%d steps in %q, want 2", len(steps)-1, text)
		}
		for i, step := range steps[1:] {
			_, lines, _ := strings.Cut(step, ":\n")
			if i == 0 {
				lines += "\n"
			}
			check(raw, lines)
		}
	})
}

// A call that takes nothing and one whose input is gone both say so.
func TestAnApproverReadsThatThereAreNoArguments(t *testing.T) {
	t.Parallel()
	q := host.Question{SubjectKind: host.SubjectCall, State: host.ApprovalConsumed}
	if text := shown(t, func(w, _ io.Writer) error { return Question(w, &q) }); !strings.HasSuffix(text, "\narguments: none are kept\n") {
		t.Errorf("%q does not say that the arguments are gone", text)
	}
	q.Input = []byte(`{"to":`)
	var b strings.Builder
	if err := Question(&b, &q); err == nil {
		t.Errorf("%q is shown as if it were all", b.String())
	}
}

// A figure of a result, of a record and of a default stays as it is spelled.
func TestFiguresStayAsTheyAreSpelled(t *testing.T) {
	t.Parallel()
	for _, figure := range []string{"1234567.89", "12345678901234567890", "1e21", "0.10"} {
		for name, text := range map[string]string{
			"a result": shown(t, func(w, errs io.Writer) error {
				return Result(w, errs, plugin.Result{Data: []byte(`{"total":` + figure + `}`)})
			}),
			"an answer": shown(t, func(w, errs io.Writer) error {
				return Plan(w, errs, &host.Plan{Answer: []byte(`{"total":` + figure + `}`)})
			}),
			"an entry": shown(t, func(w, _ io.Writer) error {
				return Record(w, []plugin.Entry{{Kind: "policy.put", Body: []byte(`{"total":` + figure + `}`)}})
			}),
			"a default": shown(t, func(w, _ io.Writer) error {
				return inputOf(w, []byte(`{"properties":{"total":{"type":"number","default":`+figure+`}}}`))
			}),
		} {
			if !slices.Contains(strings.Fields(text), figure) {
				t.Errorf("%s: %s is shown as %q", name, figure, text)
			}
		}
	}
	if text := shown(t, func(w, _ io.Writer) error { return Retention(w, []host.RetentionState{{Days: 12345.5}}) }); !strings.Contains(text, " 12345.5d ") {
		t.Errorf("12345.5 days are shown as %q", text)
	}
}
