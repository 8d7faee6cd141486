package native

import (
	"slices"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

const maxResourceURI = 512 // bytes

// resourcePattern is a URI whose scheme is the plugin's own, with {name} for what varies.
var resourcePattern = pattern.New(`^([a-z][a-z0-9+.-]*)://(?:[A-Za-z0-9._~/?#&=@:+,;-]|\{[A-Za-z_][A-Za-z0-9_]*\})+$`)

// hostSchemes are those of URIs that mean something else than a resource of a plugin.
var hostSchemes = []string{"mortise", "http", "https", "file", "data", "javascript", "ui"}

// protocolFace reads how clients of the Model Context Protocol see an operation.
func protocolFace(v contract.Value, op *plugin.Operation) *plugin.MCP {
	if !v.There || !v.Mapping("prompt", "resource", "mime_type", "content", "asks") {
		return nil
	}
	face := &plugin.MCP{
		Prompt:   v.Get("prompt").Truth(),
		Resource: v.Get("resource").Word(),
		MIMEType: v.Get("mime_type").Word(),
		Content:  v.Get("content").Truth(),
		Asks:     v.Get("asks").Truth(),
	}
	if (face.Prompt || face.Resource != "" || face.Asks) && op.Kind != plugin.Tool {
		v.Problem("only a tool can be a prompt or a resource or ask questions, and this is of kind %s", op.Kind)
	}
	if face.Resource != "" {
		resource := v.Get("resource")
		parts := resourcePattern.FindStringSubmatch(face.Resource)
		switch {
		case parts == nil || len(face.Resource) > maxResourceURI:
			resource.Problem("%q is no URI of at most %d bytes such as notes://today or notes://{id}", contract.Clip(face.Resource), maxResourceURI)
		case slices.Contains(hostSchemes, parts[1]):
			resource.Problem("the scheme %s is not a plugin's own", parts[1])
		case face.Prompt || face.Asks || face.Content:
			resource.Problem("a resource is not a prompt too, and has no content blocks and no questions")
		}
	}
	if face.MIMEType != "" && face.Resource == "" {
		v.Get("mime_type").Problem("it is of a resource, and there is none")
	}
	return face
}
