package mcp

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what an operation returns as content.
const (
	maxBlocks = 64
	maxURI    = 1024 // bytes
)

// A block is one content block as an operation returns it, in the form that clients get it.
type block struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitzero"`
	Data        []byte    `json:"data,omitzero"`
	MIMEType    string    `json:"mimeType,omitzero"`
	Resource    *contents `json:"resource,omitzero"`
	URI         string    `json:"uri,omitzero"`
	Name        string    `json:"name,omitzero"`
	Title       string    `json:"title,omitzero"`
	Description string    `json:"description,omitzero"`
}

// The contents of an embedded resource.
type contents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitzero"`
	Text     string `json:"text,omitzero"`
	Blob     []byte `json:"blob,omitzero"`
}

// returnsContent reports whether the data of an operation's results is a list of blocks.
func returnsContent(t *plugin.Target) bool {
	return t != nil && t.Operation.MCP != nil && t.Operation.MCP.Content
}

// contentOf returns the blocks that the data of a result is.
func contentOf(data json.RawMessage) ([]sdk.Content, error) {
	var blocks []block
	if err := json2.Unmarshal(data, &blocks, json2.RejectUnknownMembers(true)); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the data of the result is no list of content blocks: %v", err)
	}
	if len(blocks) > maxBlocks {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the result has %d content blocks; there may be %d", len(blocks), maxBlocks)
	}
	all := []sdk.Content{}
	for i, b := range blocks {
		content, err := b.content()
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeInvalidOutput, "content block %d: %v", i, err)
		}
		all = append(all, content)
	}
	return all, nil
}

func (b block) content() (sdk.Content, error) {
	switch b.Type {
	case "text":
		return &sdk.TextContent{Text: b.Text}, nil
	case "image", "audio":
		kind, _, err := mime.ParseMediaType(b.MIMEType)
		if err != nil || !strings.HasPrefix(kind, b.Type+"/") || len(b.Data) == 0 {
			return nil, fmt.Errorf("an %s has data in base64 and a mimeType that begins with %s/", b.Type, b.Type)
		}
		if b.Type == "image" {
			return &sdk.ImageContent{Data: b.Data, MIMEType: b.MIMEType}, nil
		}
		return &sdk.AudioContent{Data: b.Data, MIMEType: b.MIMEType}, nil
	case "resource":
		r := b.Resource
		if r == nil {
			return nil, fmt.Errorf("it has no resource")
		}
		if err := checkURI(r.URI); err != nil {
			return nil, err
		}
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: r.URI, MIMEType: r.MIMEType, Text: r.Text, Blob: r.Blob}}, nil
	case "resource_link":
		if err := checkURI(b.URI); err != nil {
			return nil, err
		}
		return &sdk.ResourceLink{URI: b.URI, Name: b.Name, Title: b.Title, Description: b.Description, MIMEType: b.MIMEType}, nil
	}
	return nil, fmt.Errorf("%.64q is no type; there are text, image, audio, resource and resource_link", b.Type)
}

// notAPlugins are the schemes of URIs that a plugin may not speak for: those of the host, and
// those that a client would open on its own machine.
var notAPlugins = []string{"mortise", "file", "data", "javascript", "ui"}

// checkURI refuses the URI of a resource that a plugin may not name.
func checkURI(uri string) error {
	at, err := url.Parse(uri)
	if err != nil || at.Scheme == "" || len(uri) > maxURI {
		return fmt.Errorf("%.128q is no URI of at most %d bytes", uri, maxURI)
	}
	if slices.Contains(notAPlugins, strings.ToLower(at.Scheme)) {
		return fmt.Errorf("a URI of the scheme %s is not a plugin's to give", at.Scheme)
	}
	return nil
}
