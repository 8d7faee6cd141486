package llm

import (
	"context"
	"encoding/json"
	"strings"
)

var _ Converser = (*Gemini)(nil)

// Converse implements [Converser].
func (p *Gemini) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.key()
	if missing != nil {
		return reply, missing
	}
	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	body := geminiBody(r.System, r.MaxTokens, r.JSON)
	body.Contents, body.Tools = geminiContents(&r), geminiTools(r.Tools)
	asked := p.request(key, r.Model, "streamGenerateContent", body)
	asked.query = "alt=sse"
	begun := false
	var failure error
	var complaint []byte
	for data, err := range t.follow(ctx, asked) {
		if failure = err; err != nil {
			break
		}
		if isComplaint(data) {
			complaint, failure = data, errComplaint
			break
		}
		var chunk geminiReply
		if failure = json.Unmarshal(data, &chunk); failure != nil || ctx.Err() != nil {
			break
		}
		begun = begun || len(chunk.Candidates) > 0
		if chunk.Model != "" {
			reply.Model = chunk.Model
		}
		chunk.usage(&reply.Reply) // each has all until then
		if chunk.Prompt.Block != "" {
			reply.Stop = chunk.Prompt.Block
			return reply, errorf(Refused, "the provider will not answer this prompt: %.60s", reply.Stop)
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		first := chunk.Candidates[0]
		for _, part := range first.Content.Parts {
			h.part(part)
		}
		if first.Finish != "" {
			reply.Stop = first.Finish
		}
		if h.over != nil {
			break
		}
	}
	switch reply.Stop {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return reply, errorf(Malformed, "the model asked for a tool in a way that its provider could not read (%.60s); ask again", reply.Stop)
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, blocked...)
	return reply, err
}

// part takes a part of what Gemini says. It gives each use of a tool at once.
func (h *streamReader) part(part geminiPart) {
	switch {
	case part.Thought || h.over != nil:
	case part.Call != nil:
		w := h.use(part.Call.ID, part.Call.Name)
		if w == nil {
			return
		}
		if len(part.Signature) <= maxInput {
			w.signature = part.Signature
		}
		if len(part.Call.Args) > 0 && string(part.Call.Args) != "null" {
			h.add(w, string(part.Call.Args))
		}
	default:
		h.tell(part.Text)
	}
}

// unsigned stands for the signature of a use that another model asked for.
// Gemini says in its documentation that this word is to be sent then.
const unsigned = "skip_thought_signature_validator"

// geminiContents puts what tools answered into contents of the user, and joins
// those that follow one another.
func geminiContents(r *ConverseRequest) []geminiContent {
	signs := !strings.HasPrefix(r.Model, "gemini-1") && !strings.HasPrefix(r.Model, "gemini-2") // later ones insist
	var all []geminiContent
	for _, m := range r.Messages {
		role := "user"
		if m.Role == Assistant {
			role = "model"
		}
		var parts []geminiPart
		for _, res := range m.Results {
			member := "output"
			if res.Failed {
				member = "error"
			}
			parts = append(parts, geminiPart{Response: &geminiResponse{ID: res.ID, Name: res.Name, Response: map[string]string{member: res.Text}}})
		}
		if m.Text != "" {
			parts = append(parts, geminiPart{Text: m.Text})
		}
		for i, u := range m.Uses {
			part := geminiPart{Call: &geminiCall{ID: u.ID, Name: u.Name, Args: geminiArgs(u.Input)}, Signature: u.Signature}
			if i == 0 && signs && len(u.Signature) == 0 { // of several at once the first is signed
				part.Signature = []byte(unsigned)
			}
			parts = append(parts, part)
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Parts = append(all[n-1].Parts, parts...)
		} else {
			all = append(all, geminiContent{Role: role, Parts: parts})
		}
	}
	return all
}

// geminiArgs is a use's input as Gemini takes it: none at all where there is nothing in it.
func geminiArgs(input json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) == nil && len(members) == 0 {
		return nil
	}
	return input
}

type geminiTool struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  schema `json:"parametersJsonSchema,omitempty"`
}

func geminiTools(tools []Tool) []geminiTool {
	if len(tools) == 0 {
		return nil
	}
	var all geminiTool
	for _, t := range tools {
		f := geminiFunction{Name: t.Name, Description: t.Description}
		if s := forGemini(inputSchema(t.Schema)); string(s["properties"]) != "{}" { // it refuses an object that has none
			f.Parameters = s
		}
		all.Functions = append(all.Functions, f)
	}
	return []geminiTool{all}
}
