package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Every stored answer has its labels. Those of an error that was stored before labels of errors
// were kept are not known, so it is untrusted.
func TestAStoredAnswerHasItsLabels(t *testing.T) {
	t.Parallel()
	res := &plugin.Result{Status: plugin.Succeeded, Data: []byte(`{"n":1}`), Labels: []string{"old"}}
	failure := plugin.Errorf(plugin.CodePluginError, "it failed")
	for _, labels := range [][]string{{}, {plugin.Private}, {plugin.Private, plugin.Untrusted}} {
		for name, c := range map[string]struct {
			res *plugin.Result
			err *plugin.Error
		}{"a result": {res, nil}, "an error": {nil, failure}, "both": {res, failure}} {
			body, err := encodeAnswer(c.res, c.err, labels)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, got, err := decodeAnswer(body); err != nil || !slices.Equal(got, labels) {
				t.Errorf("%s has the labels %q, want %q: %v", name, got, labels, err)
			}
		}
	}
	for body, want := range map[string][]string{
		`{"status":"","schema_version":"1","error":{"code":"plugin_error","message":"x"}}`:                         {plugin.Untrusted},
		`{"status":"unknown","call_id":"c","schema_version":"1","error":{"code":"timeout","message":"x"}}`:         {plugin.Untrusted},
		`{"status":"succeeded","schema_version":"1","data":{}}`:                                                    nil,
		`{"status":"succeeded","schema_version":"1","labels":["private"],"data":{}}`:                               {plugin.Private},
		`{"status":"succeeded","schema_version":"1","labels":["private"],"error":{"code":"timeout","message":""}}`: {plugin.Private},
	} {
		if _, _, got, err := decodeAnswer([]byte(body)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has the labels %q, want %q: %v", body, got, want, err)
		}
	}
}

// The labels of an outcome include those of its call. An outcome without labels is untrusted.
func TestLabelsOfAnOutcomeOnlyGrow(t *testing.T) {
	t.Parallel()
	row := &CallRow{Labels: []string{"of the call"}}
	for name, c := range map[string]struct {
		o    Outcome
		want []string
	}{
		"nothing said":          {Outcome{Err: &plugin.Error{}}, []string{"of the call", plugin.Untrusted}},
		"said to be none":       {Outcome{Err: &plugin.Error{}, Labels: ownWords}, []string{"of the call"}},
		"of the result":         {Outcome{Result: &plugin.Result{Labels: []string{plugin.Private}}}, []string{"of the call", plugin.Private}},
		"of both":               {Outcome{Result: &plugin.Result{Labels: []string{"a"}}, Labels: []string{"b"}}, []string{"a", "b", "of the call"}},
		"of a result with none": {Outcome{Result: &plugin.Result{}}, []string{"of the call"}},
	} {
		if got := c.o.labels(row); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// MayResume reports of an attempt that cannot be recorded what recovery makes of it: a caller can
// rely on hearing that a call is not repeated.
func TestWhatMayResumeIsWhatRecoveryRunsAgain(t *testing.T) {
	t.Parallel()
	effects := map[string][]effectRow{
		"no effects": nil, "answered": {{N: 1, State: effectDone}}, "unanswered": {{N: 1, State: effectIntent}},
		"repeatable":                {{N: 1, State: effectIntent, ProviderKey: "k"}},
		"repeatable and unanswered": {{N: 1, State: effectIntent, ProviderKey: "k"}, {N: 2, State: effectIntent}},
	}
	for name, rows := range effects {
		for _, effectful := range []bool{false, true} {
			for _, journalled := range []bool{false, true} {
				for _, request := range []string{"", "sha256:r"} {
					for attempt := int64(1); attempt <= MaxAttempts; attempt++ {
						row := CallRow{Effectful: effectful, Journalled: journalled, RequestHash: request, Attempt: attempt, State: Running}
						j := &Journal{lease: Lease{row}, open: map[int64]effectRow{}}
						for _, e := range rows {
							if e.State == effectIntent {
								j.open[e.N] = e
							}
						}
						runs := recoveredState(&row, rows, "why", time.Now()).State == Queued
						at := fmt.Sprintf("%s, effectful %v, journalled %v, request %q, attempt %d", name, effectful, journalled, request, attempt)
						if got := j.MayResume(); got != runs {
							t.Errorf("%s: may resume is %v, and recovery runs it again: %v", at, got, runs)
						}
						if runs && !(Lease{row}).MayResume() {
							t.Errorf("%s: without its journal it may not resume, and recovery runs it again", at)
						}
					}
				}
			}
		}
	}
}
