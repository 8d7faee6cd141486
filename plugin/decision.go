package plugin

// A Decision is policy's answer for one call.
type Decision struct {
	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"` // which rules spoke, or what none of them allowed
	Policy  string   `json:"policy"`  // the version of the rules that decided
}

// A Verdict is what a decision comes down to. The zero value denies.
type Verdict string

// The verdicts.
const (
	Deny              Verdict = "deny"
	Allow             Verdict = "allow"
	AllowWithApproval Verdict = "allow_with_approval"
)
