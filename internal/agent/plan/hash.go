package plan

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/canon"
)

// Steps returns the steps of a plan. Those of a plan that has not ended are the ones that
// its hash is of, which the ledger signs and an approval binds: what a person is shown is
// what runs.
func Steps(ctx context.Context, r planReader, row *Row) ([]StepRow, error) {
	steps, err := r.Steps(ctx, row.Tenant, row.ID)
	if err != nil || !row.State.Live() {
		return steps, err
	}
	if now, err := hash(steps, row.RequestHash); err != nil || now != row.Hash {
		return nil, &authorityError{Table: "steps"}
	}
	return steps, nil
}

// hash identifies what would run: every step with everything that is pinned,
// and for whom. It is what an approval of the plan binds.
func hash(steps []StepRow, requestHash string) (string, error) {
	type pinned struct {
		N         int64          `json:"n"`
		ID        string         `json:"step_id"`
		Operation string         `json:"operation"`
		Version   string         `json:"version"`
		Digest    string         `json:"package_digest"`
		Input     jsontext.Value `json:"input"`
		Needs     []string       `json:"needs"`
		Gate      string         `json:"gate"`
	}
	all := make([]pinned, len(steps))
	for i, s := range steps {
		all[i] = pinned{s.N, s.StepID, s.Operation, s.Version, s.PackageDigest, jsontext.Value(s.Input), orEmpty(s.Needs), s.Gate}
	}
	raw, err := encode(map[string]any{"plan": 1, "request": requestHash, "steps": all})
	if err != nil {
		return "", err
	}
	return canon.Hash(raw)
}
