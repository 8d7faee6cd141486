package bridge

import (
	"context"
	"io"
	"mime"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/session"
)

// Documents are the artifacts of sessions as models read them.
type Documents struct{ Of *session.Sessions }

// mimeTypes are those of the types of artifacts. An image has its name's.
var mimeTypes = map[string]string{
	"pdf_report": "application/pdf", "html_report": "text/html", "text": "text/plain", "log_stream": "text/plain",
	"json_events": "application/json", "cloud_audit_log": "application/json", "risk_model": "application/json", "pcap": "application/vnd.tcpdump.pcap",
}

// Document implements service.Documents.
func (d Documents) Document(ctx context.Context, tenant, in, id string) (llm.Document, error) {
	a, err := d.Of.Artifact(ctx, tenant, in, id)
	if err != nil {
		return llm.Document{}, err
	}
	kind := mimeTypes[a.Type]
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(a.Name)))
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	return llm.Document{
		Name: a.Name, MIME: kind, URI: a.StorageURI, Size: a.Size, SHA256: "sha256:" + a.SHA256,
		Open: func() (io.ReadCloser, error) { return d.Of.Open(ctx, tenant, in, a.ID) },
	}, nil
}
