package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// answerEventMill prints the result of an investigation plugin, with the members
// that its contract knows (Event Mill, ToolResult) beside the host's own.
func (c *command) answerEventMill(ref, session string, res plugin.Result, done []exported, err error) error {
	var waits unfinished
	if errors.As(err, &waits) || err == nil && res.Status != "" && !res.Status.Ended() {
		return c.answer(ref, res, err)
	}
	if c.json {
		return c.answerEventMillJSON(session, res, done, err)
	}
	if answered := c.answer(ref, res, err); answered != nil {
		c.showMade(res.Artifacts)
		return answered
	}
	c.showMade(res.Artifacts)
	c.showExported(done)
	if res.Metrics["fresh_process"] == true {
		c.say("the process of the session is a new one; what its plugins kept in memory before is lost")
	}
	return nil
}

// showMade prints the artifacts that a call registered.
func (c *command) showMade(made []plugin.Artifact) {
	for i, a := range made {
		if i == 0 {
			fmt.Fprintln(c.out)
		}
		if a.ID != "" {
			fmt.Fprintf(c.out, "artifact %s  %s  %s  %d bytes\n", a.ID, terminal.Safe(a.Type), terminal.Safe(a.Name), a.Size)
		}
	}
}

func (c *command) answerEventMillJSON(session string, res plugin.Result, done []exported, err error) error {
	if !c.debug {
		res.Diagnostics = nil
	}
	if err != nil && res.Status != plugin.Unknown {
		res.Status = plugin.Failed
	}
	raw, encodeErr := json2.Marshal(res)
	if encodeErr != nil {
		return encodeErr
	}
	object := map[string]any{}
	var members map[string]jsontext.Value
	if err := json2.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name, value := range members {
		object[name] = value
	}
	object["ok"], object["error_code"], object["summary"] = err == nil, nil, res.Summary
	object["result"], object["session_id"] = orNull(res.Data), session
	object["message"], object["details"], object["output_artifacts"] = nil, orNull(res.Details), orNull(res.Outputs)
	if res.Message != "" {
		object["message"] = res.Message
	}
	if res.Artifacts == nil {
		object["artifacts"] = []plugin.Artifact{}
	}
	if len(done) > 0 {
		object["exported"] = done
	}
	if err != nil {
		e := plugin.AsError(err)
		object["error"], object["error_code"], object["message"] = errorOf(err), eventmill.Code(err), e.Message
		if len(e.Details) > 0 {
			object["details"] = jsontext.Value(e.Details)
		}
	}
	if printErr := c.print(object); printErr != nil {
		return printErr
	}
	if err != nil {
		return reported{err}
	}
	return nil
}

func orNull(raw []byte) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value("null")
	}
	return raw
}

// An argument is one member of the input, as the command line gives it after --.
type argument struct {
	name string
	text string
	bare bool // a flag without a value, which is true
}

// readArguments reads what stands after -- on the command line: --name value,
// --name=value, a bare --flag, and one JSON object.
func readArguments(args []string) (object string, list []argument, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !utf8.ValidString(arg) {
			return "", nil, usage{fmt.Errorf("%q is not UTF-8, as JSON must be", arg)}
		}
		name, isFlag := strings.CutPrefix(arg, "--")
		name, text, assigned := strings.Cut(name, "=")
		switch {
		case !isFlag && strings.HasPrefix(arg, "{") && object == "":
			object = arg
			continue
		case !isFlag || name == "":
			return "", nil, usage{fmt.Errorf("%s after --: write --name value, a bare --flag, or one JSON object", quoted(arg))}
		case assigned:
			list = append(list, argument{name: name, text: text})
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
			if !utf8.ValidString(args[i]) {
				return "", nil, usage{fmt.Errorf("--%s: the value is not UTF-8, as JSON must be", name)}
			}
			list = append(list, argument{name: name, text: args[i]})
		default:
			list = append(list, argument{name: name, bare: true})
		}
	}
	return object, list, nil
}
