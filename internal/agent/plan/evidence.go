package plan

import (
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// An evidence is the body of a plan's entries.
type evidence struct {
	Plan         string              `json:"plan,omitempty"`
	Agent        string              `json:"agent"`
	AgentVersion string              `json:"agent_version,omitempty"`
	ProposalCall string              `json:"proposal_call"`
	Hash         string              `json:"hash,omitempty"`
	State        State               `json:"state,omitempty"`
	Approval     string              `json:"approval,omitempty"`
	Steps        []stepEvidence      `json:"steps,omitempty"`
	Step         string              `json:"step,omitempty"` // that decided how it ended
	Error        *plugin.ErrorRecord `json:"error,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	Confidence   *float64            `json:"confidence,omitempty"`
	Randomness   jsontext.Value      `json:"randomness_disclosure,omitzero"`
}

type stepEvidence struct {
	ID        string `json:"step_id"`
	Operation string `json:"operation"`
	Version   string `json:"version"`
	Digest    string `json:"package_digest"`
	Gate      string `json:"gate"`
}

func (ev *evidence) steps(rows []StepRow) {
	for _, s := range rows {
		ev.Steps = append(ev.Steps, stepEvidence{s.StepID, s.Operation, s.Version, s.PackageDigest, s.Gate})
	}
}

// entry returns an entry about a plan. The subject is the plan.
func (e *Engine) entry(row *Row, kind plugin.EntryKind, by string, at time.Time, add func(*evidence)) (plugin.Entry, error) {
	ev := evidence{Plan: row.ID, Agent: row.Agent, ProposalCall: row.ProposalCall, Hash: row.Hash, State: row.State}
	if row.Code != "" {
		ev.Error = &plugin.ErrorRecord{Code: plugin.Code(row.Code), Message: row.Message}
	}
	if add != nil {
		add(&ev)
	}
	if row.ID == "" {
		ev.State = ""
	}
	body, err := encode(ev)
	return plugin.Entry{At: at, Tenant: row.Tenant, Kind: kind, Subject: row.ID, Principal: by, Body: json.RawMessage(body)}, err
}
