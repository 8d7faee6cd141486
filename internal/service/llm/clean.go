package llm

import (
	"encoding/json"
	"slices"
)

// A Scrubber takes secrets out of what models are told.
type Scrubber interface {
	// Text and JSON return what they are given without the secrets.
	Text(text string) string
	JSON(raw json.RawMessage) json.RawMessage
}

// clean takes secrets out of a query: what goes to a provider has left the house,
// and is kept as it was sent. The bytes of images and documents stay what they
// are.
func (d *Dispatcher) clean(q *Query) {
	s := d.opts.Scrubber
	if s == nil {
		return
	}
	q.System, q.Prompt = s.Text(q.System), s.Text(q.Prompt)
	q.Grounding = slices.Clone(q.Grounding)
	for i, text := range q.Grounding {
		q.Grounding[i] = s.Text(text)
	}
	if q.Document != nil {
		document := *q.Document
		document.Name = s.Text(document.Name)
		q.Document = &document
	}
}

// cleanTalk takes secrets out of a conversation.
func (d *Dispatcher) cleanTalk(c *Conversation) {
	s := d.opts.Scrubber
	if s == nil {
		return
	}
	c.System, c.Messages = s.Text(c.System), slices.Clone(c.Messages)
	for i := range c.Messages {
		m := &c.Messages[i]
		m.Text, m.Uses, m.Results = s.Text(m.Text), slices.Clone(m.Uses), slices.Clone(m.Results)
		for n := range m.Uses {
			m.Uses[n].Input = s.JSON(m.Uses[n].Input)
		}
		for n := range m.Results {
			m.Results[n].Text = s.Text(m.Results[n].Text)
		}
	}
}

// cleanTexts returns texts without secrets.
func (d *Dispatcher) cleanTexts(texts []string) []string {
	s := d.opts.Scrubber
	if s == nil {
		return texts
	}
	texts = slices.Clone(texts)
	for i, text := range texts {
		texts[i] = s.Text(text)
	}
	return texts
}
