package check

// The names of the checks, as reports show them.
const (
	starts  = "starts and describes itself"
	honest  = "its code is what the manifest says"
	schemas = "has schemas"
	speaks  = "has a description"
	unknown = "refuses an operation it does not have"

	hears = "answers its event"

	runs    = "runs its example"
	expects = "gives the answer that its example expects"
	asks    = "asks the host for nothing it may not have"

	pure   = "gives the same result twice"
	reused = "its cached answer is its fresh one"

	idempotent = "a repeated key gives the first result and runs nothing"
	scoped     = "is refused to who lacks its permissions"
	defends    = "refuses who lacks its permissions itself"
	discloses  = "says so where two runs differ"

	answers  = "answers as an agent does"
	proposes = "proposes only what it may"
	grounded = "gives reasons that are facts of its input"
	needs    = "does not run without the context it needs"

	maps     = "makes a request to the kernel of an event"
	bypasses = "acts through operators alone"

	compatible = "keeps what earlier versions promised"
)

// rows are the requirements that checks prove.
var rows = map[string]string{
	asks: "KN-20", pure: "KN-20", reused: "KN-20",
	idempotent: "KN-20", scoped: "KN-20", defends: "KN-20", discloses: "KN-20",
	answers: "KN-20", proposes: "KN-20", grounded: "KN-20", needs: "KN-20",
	maps: "KN-20", bypasses: "KN-20",
	compatible: "KN-17",
}
