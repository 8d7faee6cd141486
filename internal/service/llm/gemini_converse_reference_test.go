package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genai"
)

var _ Converser = (*referenceGemini)(nil)

// Converse implements [Converser].
func (p *referenceGemini) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return reply, missing
	}
	if key == "" {
		return reply, errorf(Auth, "no key is configured; name one with api_key_env or api_key_file")
	}
	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	client, refused := p.dial(ctx, t)
	if refused != nil {
		return reply, refused
	}
	off := false
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(r.MaxTokens, 1<<30)), AutomaticContinuation: &off, Tools: referenceGeminiTools(r.Tools)}
	if r.System != "" {
		config.SystemInstruction = genai.NewContentFromText(r.System, genai.RoleUser)
	}
	if r.JSON {
		config.ResponseMIMEType = "application/json"
	}
	begun := false
	var failure error
	var complaint []byte
	for chunk, err := range client.Models.GenerateContentStream(ctx, r.Model, referenceGeminiContents(&r), config) {
		if failure = err; err != nil {
			complaint = referenceGeminiComplaint(err)
			break
		}
		if ctx.Err() != nil {
			break
		}
		begun = begun || len(chunk.Candidates) > 0
		if chunk.ModelVersion != "" {
			reply.Model = chunk.ModelVersion
		}
		if u := chunk.UsageMetadata; u != nil { // each has all until then
			reply.Usage = Usage{In: int(u.PromptTokenCount + u.ToolUsePromptTokenCount), Out: int(u.CandidatesTokenCount + u.ThoughtsTokenCount)}
		}
		if f := chunk.PromptFeedback; f != nil && f.BlockReason != "" {
			reply.Stop = string(f.BlockReason)
			return reply, errorf(Refused, "the provider will not answer this prompt: %.60s", f.BlockReason)
		}
		if len(chunk.Candidates) == 0 || chunk.Candidates[0] == nil {
			continue
		}
		first := chunk.Candidates[0]
		if first.Content != nil {
			for _, part := range first.Content.Parts {
				referencePart(h, part)
			}
		}
		if first.FinishReason != "" {
			reply.Stop = string(first.FinishReason)
		}
		if h.over != nil {
			break
		}
	}
	switch genai.FinishReason(reply.Stop) {
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		return reply, errorf(Malformed, "the model asked for a tool in a way that its provider could not read (%.60s); ask again", reply.Stop)
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, blocked...)
	return reply, err
}

// part takes a part of what Gemini says. It gives each use of a tool at once;
// its numbers are floating-point already where they come from.
func referencePart(h *streamReader, part *genai.Part) {
	switch {
	case part == nil || part.Thought || h.over != nil:
	case part.FunctionCall != nil:
		w := h.use(part.FunctionCall.ID, part.FunctionCall.Name)
		if w == nil {
			return
		}
		if len(part.ThoughtSignature) <= maxInput {
			w.signature = part.ThoughtSignature
		}
		if part.FunctionCall.Args != nil {
			h.add(w, string(marshal(part.FunctionCall.Args)))
		}
	default:
		h.tell(part.Text)
	}
}

// referenceGeminiComplaint is what the provider said instead of going on, as it says it
// in an answer of its own.
func referenceGeminiComplaint(err error) []byte {
	var said genai.APIError
	if !errors.As(err, &said) {
		return nil
	}
	code := said.Code
	if code == http.StatusOK {
		code = 0
	}
	return marshal(map[string]any{"error": map[string]any{"code": code, "message": said.Message, "status": said.Status}})
}

// referenceGeminiContents puts what tools answered into contents of the user, and joins
// those that follow one another.
func referenceGeminiContents(r *ConverseRequest) []*genai.Content {
	signs := !strings.HasPrefix(r.Model, "gemini-1") && !strings.HasPrefix(r.Model, "gemini-2") // later ones insist
	var all []*genai.Content
	for _, m := range r.Messages {
		role := genai.RoleUser
		if m.Role == Assistant {
			role = genai.RoleModel
		}
		var parts []*genai.Part
		for _, res := range m.Results {
			member := "output"
			if res.Failed {
				member = "error"
			}
			parts = append(parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: res.ID, Name: res.Name, Response: map[string]any{member: res.Text}}})
		}
		if m.Text != "" {
			parts = append(parts, genai.NewPartFromText(m.Text))
		}
		for i, u := range m.Uses {
			args := map[string]any{}
			_ = json.Unmarshal(u.Input, &args) // it is an object
			part := &genai.Part{FunctionCall: &genai.FunctionCall{ID: u.ID, Name: u.Name, Args: args}, ThoughtSignature: u.Signature}
			if i == 0 && signs && len(u.Signature) == 0 { // of several at once the first is signed
				part.ThoughtSignature = []byte(unsigned)
			}
			parts = append(parts, part)
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Parts = append(all[n-1].Parts, parts...)
		} else {
			all = append(all, &genai.Content{Role: role, Parts: parts})
		}
	}
	return all
}

func referenceGeminiTools(tools []Tool) []*genai.Tool {
	if len(tools) == 0 {
		return nil
	}
	all := &genai.Tool{}
	for _, t := range tools {
		f := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		if s := forGemini(inputSchema(t.Schema)); string(s["properties"]) != "{}" { // it refuses an object that has none
			f.ParametersJsonSchema = s
		}
		all.FunctionDeclarations = append(all.FunctionDeclarations, f)
	}
	return []*genai.Tool{all}
}
