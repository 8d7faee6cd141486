// Package mortise is the Go SDK for plugins: one typed function is an
// operation, its types are the schema.
//
//	func main() {
//		p := mortise.New("text.word_count", "1.0.0")
//		mortise.Tool(p, "word_count", "Count the words in a text.",
//			func(c *mortise.Call, in struct {
//				Text string `json:"text"`
//			}) (int, error) {
//				return len(strings.Fields(in.Text)), nil
//			})
//		p.Run()
//	}
//
// An operator may have functions beside its own, which take the same input: one
// shows what a call would do, the other finds out how an earlier run ended.
//
//	mortise.Operator(p, "send", "Send a mail.", send, mortise.Effects("http_write"), mortise.Brokered(),
//		mortise.WithPreview(func(c *mortise.Call, in mail) (mail, error) { return in, nil }),
//		mortise.WithReconcile(func(c *mortise.Call, in mail, effects []mortise.Effect) (mortise.Reconciled, error) {
//			if len(effects) == 0 {
//				return mortise.Reconciled{Outcome: mortise.NotDone}, nil
//			}
//			return mortise.Reconciled{}, nil // the outcome is unknown
//		}))
//
// [Agent] adds one that decides: it gets an [AgentInput] and answers a
// [Proposal]. [Adapter] adds one that translates, into a [SubmitRequest] for
// instance.
//
// A [Call] is a [context.Context] with the call's deadline, and has a method for
// each service of the host: [Call.HTTPFetch] has the host make a request,
// [Call.StoragePut] keeps a value, [Call.KBSearchChunks] searches knowledge bases.
//
// [Listen], [Transform] and [Veto] add hooks: what hears of the events of agents
// that have the plugin, rewrites what they carry, or refuses them.
//
//	mortise.Veto(p, "tool.before@v1", func(_ *mortise.Call, payload mortise.Payload) (mortise.Verdict, error) {
//		var use struct {
//			ToolName string `json:"toolName"`
//		}
//		err := payload.Decode(&use)
//		return mortise.Verdict{Allow: use.ToolName != "shell", Reason: "no shell here"}, err
//	}, mortise.Priority(50), mortise.FailureMode("fail"))
//
// Run serves whichever version of the protocol the host opens with. Standard
// output belongs to the protocol: Run moves it away first, and what the plugin
// prints goes to standard error, where the host keeps it as log lines.
package mortise
