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
// Run serves whichever version of the protocol the host opens with. Standard
// output belongs to the protocol: Run moves it away first, and what the plugin
// prints goes to standard error, where the host keeps it as log lines.
package mortise
