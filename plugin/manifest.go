package plugin

import (
	"context"
	"encoding/json"
	"time"
)

// A Manifest is a plugin's description of itself, whatever contract it was
// written to: every dialect is read into this one form.
type Manifest struct {
	Name          string        `json:"name"`
	Version       string        `json:"version"`                // semantic version
	VersionText   string        `json:"version_text,omitempty"` // as its author wrote it, where that is another text
	DisplayName   string        `json:"display_name,omitempty"`
	Owner         string        `json:"owner,omitempty"`
	Description   string        `json:"description,omitempty"`
	Dialect       string        `json:"dialect"`          // the name of its contract: native, kernel, runtime, eventmill, shu, openhermit
	Pillar        string        `json:"pillar,omitempty"` // of an investigation plugin: network_forensics, log_analysis, ...
	Dir           string        `json:"dir,omitempty"`    // where it stands in its package, a slash path; empty is the package itself
	Runner        Runner        `json:"runner"`
	Isolation     Isolation     `json:"isolation"`
	Capabilities  []string      `json:"capabilities,omitempty"` // host services it asks for
	HTTP          HTTP          `json:"http,omitzero"`
	Feed          Feed          `json:"feed,omitzero"`
	Hooks         []Hook        `json:"hooks,omitempty"`      // the events it wants to hear of
	Default       Hook          `json:"default,omitzero"`     // what a hook has that its code says nothing of (plugins and hooks)
	Identities    []Auth        `json:"identities,omitempty"` // accounts its caller has to have connected
	Operations    []*Operation  `json:"operations"`           // sorted by name; of a Shu plugin those of chats and of feeds first, as they are declared
	Requires      Requires      `json:"requires,omitzero"`
	Observability Observability `json:"observability,omitzero"`

	Environment *Environment `json:"environment,omitempty"` // what an administrator had installed for it alone

	Contract Contract `json:"-"` // what the host has to know of its contract; derived from Dialect, and never stored
}

// An Environment is what an administrator had installed for one plugin alone: the wheels
// that its requirements name, unpacked beside its own files.
type Environment struct {
	Python string  `json:"python"` // the version they were chosen for, as 3.11
	From   string  `json:"from"`   // the index or the directory they came from
	Digest string  `json:"digest"` // sha256:<64 hex digits> over names, versions and hashes
	Wheels []Wheel `json:"wheels"` // by name
}

// A Wheel is one package for Python that was installed.
type Wheel struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
	SHA256  string `json:"sha256"` // of the file, in hexadecimal
}

// Operation returns the operation of that name, nil if there is none.
func (m *Manifest) Operation(name string) *Operation {
	for _, op := range m.Operations {
		if op.Name == name {
			return op
		}
	}
	return nil
}

// Bounds returns how many bytes the contract that m was written to gives an input
// and the data of a result; 0 where it does not say. The host's own limits hold
// beside them.
func (m *Manifest) Bounds() (input, output int) {
	return m.Contract.MaxInput, m.Contract.MaxOutput
}

// A Kind says what an operation is for: agents decide, operators do, tools
// compute, adapters translate (kernel contracts, 5.0).
type Kind string

// The four kinds.
const (
	Agent    Kind = "agent"
	Operator Kind = "operator"
	Tool     Kind = "tool"
	Adapter  Kind = "adapter"
)

// Known reports whether k is one of the four.
func (k Kind) Known() bool { return k == Agent || k == Operator || k == Tool || k == Adapter }

// An Isolation is how widely one process of a plugin may be shared.
type Isolation string

// From narrow to wide.
const (
	IsolationCall    Isolation = "call"    // a process for each call
	IsolationSession Isolation = "session" // one for each session
	IsolationAgent   Isolation = "agent"   // one for each agent instance
	IsolationTenant  Isolation = "tenant"  // a few for each tenant
)

// Known reports whether i is one of the four.
func (i Isolation) Known() bool {
	return i == IsolationCall || i == IsolationSession || i == IsolationAgent || i == IsolationTenant
}

// An Operation is one thing a plugin can do.
type Operation struct {
	Name        string          `json:"name"` // unique within the plugin
	Title       string          `json:"title,omitempty"`
	Kind        Kind            `json:"kind"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitzero"`  // JSON Schema; absent means anything
	Output      json.RawMessage `json:"output,omitzero"` // JSON Schema; absent means anything
	Effects     []string        `json:"effects,omitempty"`
	PolicyTags  []string        `json:"policy_tags,omitempty"`
	Permissions []string        `json:"permissions,omitempty"` // scopes the principal must hold
	Timeout     time.Duration   `json:"timeout"`               // nanoseconds, always positive
	Hidden      bool            `json:"hidden,omitzero"`       // kept out of lists; may be named
	NoCache     bool            `json:"no_cache,omitzero"`     // a tool whose results are not reused

	Auth    *Auth                 `json:"auth,omitempty"`    // the account it acts with elsewhere
	Secrets map[string]SecretNeed `json:"secrets,omitempty"` // the secrets it may read, by name

	Preview        bool     `json:"preview,omitzero"`          // it can show what it would do, without doing it
	Reconcile      bool     `json:"reconcile,omitzero"`        // it can find out how an earlier call of it ended
	Brokered       bool     `json:"brokered,omitzero"`         // all its effects go through host services, so that the journal has every one
	Labels         []string `json:"labels,omitempty"`          // what its answers are tainted with: untrusted, private
	AllowedActions []string `json:"allowed_actions,omitempty"` // of an agent: the operations it may propose, name[/op][@range]

	Facets     []string  `json:"facets,omitempty"`          // what it is about, for routing: operation:search, entity:ip (Event Mill: capabilities)
	Tags       []string  `json:"tags,omitempty"`            // words that it is known by (Event Mill)
	Consumes   []string  `json:"consumes,omitempty"`        // types of artifacts it reads
	Produces   []string  `json:"produces,omitempty"`        // types of artifacts it makes
	ChainsTo   []string  `json:"chains_to,omitempty"`       // plugins that go on with what it makes
	ChainsFrom []string  `json:"chains_from,omitempty"`     // plugins whose work it goes on with
	Stability  Stability `json:"stability,omitempty"`       // how far it may be relied on; empty where its contract has no word for that
	Cost       string    `json:"cost,omitempty"`            // low, moderate, high
	AutoInvoke bool      `json:"auto_invoke,omitzero"`      // a model may use it without a person
	NeedsModel bool      `json:"needs_model,omitzero"`      // it can do nothing without a model
	Advisory   bool      `json:"advisory_schemas,omitzero"` // its schemas describe and do not bind: its code decides (Event Mill)

	// Hints are what the server that the operation is mounted from says of the tool beside its
	// texts and schemas: annotations, icons and _meta. People see them when they change; they
	// decide nothing.
	Hints json.RawMessage `json:"hints,omitzero"`

	MCP *MCP `json:"mcp,omitempty"` // how clients of the Model Context Protocol see it, where not as a plain tool

	Mapped *Mapping `json:"mapped,omitempty"` // an administrator's word, which stands above in place of what is declared
}

// An MCP says how clients of the Model Context Protocol see an operation. It gives no right:
// what they see is a call of the operation, as a tool is.
type MCP struct {
	Prompt   bool   `json:"prompt,omitzero"`     // it renders a prompt from its input
	Resource string `json:"resource,omitempty"`  // it reads the resource of this URI, or those that fit this template: notes://{id}
	MIMEType string `json:"mime_type,omitempty"` // of the resource
	Content  bool   `json:"content,omitzero"`    // the data of its result is a list of content blocks: text, images, audio, resources
	Asks     bool   `json:"asks,omitzero"`       // it may return questions in place of its answer, and is called again with what the user says
}

// The members of the input of an operation that asks, which only the host fills in.
const (
	AskAnswers = "answers" // by the name of the question
	AskState   = "state"   // what it returned beside its questions
)

// TagRequiresApproval is the policy tag of an operation whose author wants a
// person to agree each time (Shu: requires_approval of an action). Where policy
// allows such a call, it waits for one.
const TagRequiresApproval = "requires_approval"

// A Stability is how far an operation may be relied on (Event Mill, Stability
// Classes).
type Stability string

// The stabilities.
const (
	Experimental Stability = "experimental" // hidden unless it is named
	Verified     Stability = "verified"     // visible, never used by a model on its own
	Core         Stability = "core"         // visible, and used by a model where it may be
	Deprecated   Stability = "deprecated"   // hidden unless it is named
)

// RunnerReported is the kind of the runner of tools that another program runs: the host
// decides about them, and is told how they ended.
const RunnerReported = "reported"

// A Runner says how a plugin's code is reached.
type Runner struct {
	Kind     string   `json:"kind"`              // process, script, webhook, mcp
	Entry    string   `json:"entry,omitempty"`   // a source file in the package: .py .ts .js .mjs
	Module   string   `json:"module,omitempty"`  // the dotted name of that file, for contracts that give one: plugins.mail.plugin
	Class    string   `json:"class,omitempty"`   // the class in it that is the plugin, for contracts that name one
	Command  []string `json:"command,omitempty"` // or a program and its arguments; ./x is inside the package
	Protocol string   `json:"protocol"`          // "1" or "2"
	URL      string   `json:"url,omitempty"`     // of a webhook, or of a server that speaks the Model Context Protocol
	Secret   string   `json:"secret,omitempty"`  // the name of the secret that what is sent there is signed with
	Binding  *Binding `json:"binding,omitempty"` // only for the runtime-protocol dialect

	Env   map[string]Variable `json:"env,omitempty"`   // of a mounted server that the host starts
	OAuth *OAuth              `json:"oauth,omitempty"` // of one at a URL that someone signs in to
}

// OAuth says how someone signs in to a mounted server.
type OAuth struct {
	ClientID     string   `json:"client_id,omitempty"`     // registered beforehand, or the URL of a client's metadata; "" to register one
	ClientSecret string   `json:"client_secret,omitempty"` // the name of the secret of a client that was registered
	Scopes       []string `json:"scopes,omitempty"`        // those that the server names where there are none
}

// A Variable is what a variable of an environment holds: a text, or a secret.
type Variable struct {
	Text   string `json:"text,omitempty"`
	Secret string `json:"secret,omitempty"` // its name
}

// A Binding is what the host's own configuration says of a plugin of the
// runtime protocol. The plugin can neither change nor widen it.
type Binding struct {
	ProtocolVersion string            `json:"protocol_version"`
	Capabilities    []string          `json:"capabilities,omitempty"` // the core-owned allow-list
	Context         map[string]string `json:"context,omitempty"`      // workspace_id, repo_root, ...
}

// Requires is what a plugin needs of others.
type Requires struct {
	Tools         []string `json:"tools,omitempty"`        // name[/op][@range]
	Capabilities  []string `json:"capabilities,omitempty"` // host services; Manifest.Capabilities has them too
	ContextFields []string `json:"context_fields,omitempty"`
}

// IsZero reports whether nothing is required.
func (r Requires) IsZero() bool {
	return len(r.Tools) == 0 && len(r.Capabilities) == 0 && len(r.ContextFields) == 0
}

// HTTP is what a plugin with the capability http may ask for.
type HTTP struct {
	// Hosts it may reach, on ports 443 and 80 unless it says which:
	// api.example.com, .example.com for all below, api.example.com:8443.
	Hosts []string `json:"hosts,omitempty"`

	// Idempotency names, by host as it stands in Hosts, the header in which that
	// host takes a key by which it tells a repeated request from a second one.
	Idempotency map[string]string `json:"idempotency,omitempty"`

	// Inject are credentials that the host puts into requests itself, so that the
	// plugin does not hold them.
	Inject []Injection `json:"inject,omitempty"`
}

// IsZero reports whether nothing is declared.
func (h HTTP) IsZero() bool {
	return len(h.Hosts) == 0 && len(h.Idempotency) == 0 && len(h.Inject) == 0
}

// An Injection is a credential of one host: a secret, or the token of an
// account. The host puts it into a header or a parameter of the query; where
// neither is named, the plugin says in which header, by reference.
type Injection struct {
	Host   string `json:"host"`             // as it stands in Hosts
	Header string `json:"header,omitempty"` // in which the credential is sent
	Query  string `json:"query,omitempty"`  // or: the parameter
	Format string `json:"format,omitempty"` // what is sent, with {} where the credential stands; the credential alone where it is empty

	Secret       string `json:"secret,omitempty"`        // its name
	AllowedScope string `json:"allowed_scope,omitempty"` // of the secret: user, system, system_or_user
	Optional     bool   `json:"optional,omitzero"`       // requests are made without it where the secret is not there
	Account      string `json:"account,omitempty"`       // or: the provider of the account, which an operation declares
}

// Observability is how much of its own log a plugin wants kept (kernel contracts, 5.1.1).
type Observability struct {
	LogLevel    string `json:"log_level,omitempty"`   // debug, info, warning, error: records below it are left out of the host's log
	EmitSamples bool   `json:"emit_samples,omitzero"` // compared when the plugin changes; no inputs or results are ever logged
}

// A Schema accepts or refuses a JSON value.
type Schema interface {
	// Check returns nil if value fits, and otherwise an error whose text names
	// the place by JSON pointer and says why. Its work is bounded by the size of
	// the value, and ends with ctx.
	Check(ctx context.Context, value []byte) error
}

// A Target is what a call's operation was resolved to: one operation of one
// version of one plugin, in one exact package.
type Target struct {
	Manifest  *Manifest
	Operation *Operation
	Package   Package
	Input     Schema
	Output    Schema

	names names // of an operation that NewTarget returned
}

// NewTarget returns an operation with its schemas, which gives its name without putting it
// together each time.
func NewTarget(m *Manifest, op *Operation, pkg Package, input, output Schema) *Target {
	return &Target{Manifest: m, Operation: op, Package: pkg, Input: input, Output: output, names: names{m, op, m.Name + "/" + op.Name}}
}

// names are the name of an operation and what it is the name of.
type names struct {
	manifest  *Manifest
	operation *Operation
	name      string
}

// Name returns the stored form of the operation's name, plugin/operation.
func (t *Target) Name() string {
	if t.names.manifest == t.Manifest && t.names.operation == t.Operation && t.names.name != "" {
		return t.names.name
	}
	return t.Manifest.Name + "/" + t.Operation.Name
}

// A Package is an installed set of files: the unit of trust.
type Package struct {
	Digest string `json:"digest"` // sha256:<64 hex digits> of its files
	Dir    string `json:"dir"`    // where they are; absolute
	Dev    bool   `json:"dev"`    // linked to the author's files, which may change at any time
}

// A Feed says what a plugin may do on a schedule, unattended.
type Feed struct {
	Default string   `json:"default,omitempty"` // the operation of a schedule that names none
	Allowed []string `json:"allowed,omitempty"` // the only ones that may be scheduled; empty: those without effects
}

// IsZero reports whether nothing is declared.
func (f Feed) IsZero() bool { return f.Default == "" && len(f.Allowed) == 0 }

// An Auth is the account of some provider that a plugin, or one operation of
// it, acts with.
type Auth struct {
	Provider     string   `json:"provider"`                // google, ...
	Mode         string   `json:"mode,omitempty"`          // user, service_account, domain_delegate
	AllowedModes []string `json:"allowed_modes,omitempty"` // that the host may choose instead
	Scopes       []string `json:"scopes,omitempty"`        // in the provider's own words
	SubjectHint  string   `json:"subject_hint,omitempty"`  // whom to act for: identity:google_email
	Optional     bool     `json:"optional,omitzero"`       // it does without
}

// A SecretNeed is a secret that an operation reads. It does not run while one
// is missing, unless that is optional.
type SecretNeed struct {
	AllowedScope string `json:"allowed_scope"`     // user, system, system_or_user
	Optional     bool   `json:"optional,omitzero"` // it does without
}

// The scopes of a secret: whose it may be.
const (
	SecretOfUser         = "user"
	SecretOfSystem       = "system"
	SecretOfSystemOrUser = "system_or_user" // the user's own first
)
