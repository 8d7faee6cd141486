package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// GeminiURL is where Gemini is.
const GeminiURL = "https://generativelanguage.googleapis.com"

// Gemini asks Google's generateContent.
type Gemini struct {
	BaseURL string // [GeminiURL] where it is empty
	Key     Key
	Over    http.RoundTripper
}

var _ Provider = (*Gemini)(nil)

// A geminiRequest asks for content.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction,omitempty"`
	Tools    []geminiTool    `json:"tools,omitempty"`
	Config   geminiConfig    `json:"generationConfig"`
}

type geminiConfig struct {
	MaxTokens int    `json:"maxOutputTokens,omitempty"`
	MIME      string `json:"responseMimeType,omitempty"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      string          `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature []byte          `json:"thoughtSignature,omitempty"`
	Inline    *geminiInline   `json:"inlineData,omitempty"`
	File      *geminiFile     `json:"fileData,omitempty"`
	Call      *geminiCall     `json:"functionCall,omitempty"`
	Response  *geminiResponse `json:"functionResponse,omitempty"`
}

type geminiInline struct {
	Data []byte `json:"data,omitempty"`
	MIME string `json:"mimeType,omitempty"`
}

type geminiFile struct {
	URI  string `json:"fileUri"`
	MIME string `json:"mimeType,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name,omitempty"`
	Response map[string]string `json:"response,omitempty"`
}

// A geminiReply is content, or a piece of it that is streamed.
type geminiReply struct {
	Model  string `json:"modelVersion"`
	Prompt struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Candidates []struct {
		Content geminiContent `json:"content"`
		Finish  string        `json:"finishReason"`
	} `json:"candidates"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		ToolPrompt int `json:"toolUsePromptTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

// usage adds what was used so far to a reply.
func (res *geminiReply) usage(reply *Reply) {
	if u := res.Usage; u != nil {
		reply.Usage = Usage{In: u.Prompt + u.ToolPrompt, Out: u.Candidates + u.Thoughts}
	}
}

// blocked are the reasons to stop that mean a refusal.
var blocked = []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}

// Complete implements [Provider].
func (p *Gemini) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.key()
	if missing != nil {
		return Reply{}, missing
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	body := geminiBody(r.System, r.MaxTokens, r.JSON)
	body.Contents = []geminiContent{{Role: "user", Parts: geminiParts(r)}}
	var res geminiReply
	if err := t.ask(ctx, p.request(key, r.Model, "generateContent", body), &res); err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	reply = Reply{Model: res.Model}
	res.usage(&reply)
	if res.Prompt.Block != "" {
		reply.Stop = res.Prompt.Block
		return reply, errorf(Refused, "the provider will not answer this prompt: %.60s", reply.Stop)
	}
	if len(res.Candidates) == 0 {
		return reply, t.fail(ctx, errNoAnswer)
	}
	first := res.Candidates[0]
	reply.Stop = first.Finish
	var text strings.Builder
	for _, part := range first.Content.Parts {
		if !part.Thought {
			text.WriteString(part.Text)
		}
	}
	reply.Text = text.String()
	return reply, answered(&reply, blocked...)
}

func (p *Gemini) key() (string, error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return "", missing
	}
	if key == "" {
		return "", errorf(Auth, "no key is configured; name one with api_key_env or api_key_file")
	}
	return key, nil
}

// request asks a model to do something.
func (p *Gemini) request(key, model, what string, body any) request {
	base := p.BaseURL
	if base == "" {
		base = GeminiURL
	}
	return request{base: base, path: "v1beta/" + geminiModel(model) + ":" + what, header: http.Header{"X-Goog-Api-Key": {key}}, body: body}
}

// geminiModel is the resource of a model.
func geminiModel(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return model
	}
	return "models/" + model
}

// geminiBody is what all requests for content have.
func geminiBody(system string, tokens int, json bool) geminiRequest {
	body := geminiRequest{Config: geminiConfig{MaxTokens: min(tokens, 1<<30)}}
	if system != "" {
		body.System = &geminiContent{Role: "user", Parts: []geminiPart{{Text: system}}}
	}
	if json {
		body.Config.MIME = "application/json"
	}
	return body
}

var _ Embedder = (*Gemini)(nil)

// A geminiEmbedding asks for the embedding of one text.
type geminiEmbedding struct {
	Model      string        `json:"model"`
	Content    geminiContent `json:"content"`
	Dimensions int           `json:"outputDimensionality,omitempty"`
}

// Embed implements [Embedder]. Gemini does not say what it used.
func (p *Gemini) Embed(ctx context.Context, r EmbedRequest) (reply EmbedReply, err error) {
	key, missing := p.key()
	if missing != nil {
		return EmbedReply{}, missing
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	texts := make([]geminiEmbedding, len(r.Texts))
	for i, text := range r.Texts {
		texts[i] = geminiEmbedding{geminiModel(r.Model), geminiContent{Role: "user", Parts: []geminiPart{{Text: text}}}, max(0, min(r.Dimensions, maxDimensions))}
	}
	var res struct {
		Embeddings []*struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	if err := t.ask(ctx, p.request(key, r.Model, "batchEmbedContents", map[string]any{"requests": texts}), &res); err != nil {
		return EmbedReply{}, t.fail(ctx, err)
	}
	if len(res.Embeddings) != len(r.Texts) {
		return EmbedReply{}, t.fail(ctx, errNoAnswer)
	}
	reply.Vectors, reply.Model = make([][]float32, len(r.Texts)), r.Model
	for i, e := range res.Embeddings {
		if e == nil {
			return reply, t.fail(ctx, errNoAnswer)
		}
		reply.Vectors[i] = e.Values
	}
	return reply, nil
}

// geminiParts puts images and documents before the prompt.
func geminiParts(r Request) []geminiPart {
	var parts []geminiPart
	for _, part := range r.Parts {
		if part.URI != "" {
			parts = append(parts, geminiPart{File: &geminiFile{URI: part.URI, MIME: part.MIME}})
		} else {
			parts = append(parts, geminiPart{Inline: &geminiInline{Data: part.Data, MIME: part.MIME}})
		}
	}
	return append(parts, geminiPart{Text: r.Prompt})
}

// answered judges the answer to a query. One that the model ended of itself is
// an answer, though it be empty.
func answered(r *Reply, refusals ...string) error {
	if slices.Contains(finished, r.Stop) {
		return nil
	}
	return stopped(r, refusals...)
}

// stopped judges an answer by why it ended and what is in it.
func stopped(r *Reply, refusals ...string) error {
	switch {
	case slices.Contains(refusals, r.Stop):
		return errorf(Refused, "the model, or a filter around it, will not answer (%.60s)", r.Stop)
	case r.Text == "" && r.Usage.Out > 0:
		return errorf(Malformed, "the model used all of max_tokens without an answer, or gave an empty one (%.60s); ask for more tokens", r.Stop)
	case r.Text == "":
		return &Error{Kind: Malformed, Message: "the answer is empty", Sent: !r.Usage.Known()}
	}
	return nil
}
