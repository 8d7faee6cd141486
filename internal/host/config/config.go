// Package config reads the host's one configuration file, mortise.yaml.
//
// Every key is optional, an unknown one is refused with its line, and what is
// not written has the default that [Default] shows. The file is read from the
// data directory, never from the working directory: write access to it decides
// what may happen.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/protocol"
)

// FileName is the name of the configuration file in the data directory.
const FileName = "mortise.yaml"

// maxFile is the largest configuration file that is read.
const maxFile = 1 << 20

// A Config is what the file says, filled up with defaults.
type Config struct {
	Tenant       string        `yaml:"tenant" json:"tenant"`             // whose calls the command line makes
	Principal    string        `yaml:"principal" json:"principal"`       // who is asking at the command line
	Database     Database      `yaml:"database" json:"database"`         // where the state is: SQLite in the data directory, or a URL
	Blobs        string        `yaml:"blobs" json:"blobs"`               // where the bytes of artifacts are: in the data directory, or an absolute path, or a bucket
	Policy       Policy        `yaml:"policy" json:"policy"`             // what may happen
	Approvals    Approvals     `yaml:"approvals" json:"approvals"`       // how people agree to what waits for them
	Ledger       Ledger        `yaml:"ledger" json:"ledger"`             // how entries are written
	Agents       Agents        `yaml:"agents" json:"agents"`             // for how long what is of agents is kept
	Intents      Intents       `yaml:"intents" json:"intents"`           // agents by what is wanted of them from outside
	Limits       Limits        `yaml:"limits" json:"limits"`             // of one call
	Quotas       Quotas        `yaml:"quotas" json:"quotas"`             // how many calls principals may make
	Processes    Processes     `yaml:"processes" json:"processes"`       // how plugin processes live
	Sandbox      string        `yaml:"sandbox" json:"sandbox"`           // what plugins may start without: required is nothing, best-effort what the machine lacks, off everything
	Plugins      Plugins       `yaml:"plugins" json:"plugins"`           // bounds of one plugin process and all that it starts
	Workers      int           `yaml:"workers" json:"workers"`           // how much mortise serve does at a time of each kind of work that waits
	Drain        Duration      `yaml:"drain" json:"drain"`               // how long it waits, when it is to stop, for what was begun
	Server       Server        `yaml:"server" json:"server"`             // what is answered on the network
	MCP          MCP           `yaml:"mcp" json:"mcp"`                   // how operations are shown to clients of the Model Context Protocol
	Interpreters Interpreters  `yaml:"interpreters" json:"interpreters"` // programs that run plugins
	Bindings     []Binding     `yaml:"bindings" json:"bindings"`         // plugins of the runtime protocol
	Egress       egress.Grants `yaml:"egress" json:"egress"`             // what plugins may reach beyond the public Internet
	Env          Env           `yaml:"env" json:"env"`                   // what plugins may ask for by name, with x-binding
	Settings     Settings      `yaml:"settings" json:"settings"`         // what investigation plugins find in context.config, by plugin
	Models       Models        `yaml:"models" json:"models"`             // language models that plugins may ask
	Auth         Auth          `yaml:"auth" json:"auth"`                 // with whom people may have accounts that plugins act with
	Secrets      Secrets       `yaml:"secrets" json:"secrets"`           // where the master key of secrets is
	Telemetry    Telemetry     `yaml:"telemetry" json:"telemetry"`       // what those hear who watch it
	Retention    Retention     `yaml:"retention" json:"retention"`       // after which time data is removed
	Backups      Backups       `yaml:"backups" json:"backups"`           // when a host that serves backs itself up
	Log          Log           `yaml:"log" json:"log"`                   // the host's own log, on standard error
}

// Policy says what may happen. Rules and files add to its default.
type Policy struct {
	Default string `yaml:"default" json:"default"` // what needs no rule: tools, which have no effects, or none

	Files  []string            `yaml:"files" json:"files"`   // Cedar policies: files, directories or patterns; relative ones are below the configuration file's directory
	Allow  []policy.Rule       `yaml:"allow" json:"allow"`   // the allow-list, which the files may forbid from
	Groups map[string][]string `yaml:"groups" json:"groups"` // principals by the group they are in
	Roles  map[string][]string `yaml:"roles" json:"roles"`   // principals by the role they have

	Consent   map[string][]string `yaml:"consent" json:"consent"`     // effects by the principal who has agreed to them
	Configure []string            `yaml:"configure" json:"configure"` // who may register, switch and delete plugins, and change stored policies; the configured principal where it is not written
}

// The values of policy.default.
const (
	DefaultTools = "tools"
	DefaultNone  = "none"
)

// Approvals says how people agree to what waits for them.
type Approvals struct {
	By      []string `yaml:"by" json:"by"`             // who may agree to anything, where no policy of a file says who may; the configured principal where it is not written
	Self    bool     `yaml:"self" json:"self"`         // whether the sole owner, at a terminal, may agree to their own call
	TrustAs bool     `yaml:"trust_as" json:"trust_as"` // whether one user of the operating system may approve under one name, with --as, what they asked for under another
	Expire  Duration `yaml:"expire" json:"expire"`     // how long a call waits
	Notify  []string `yaml:"notify" json:"notify"`     // a command that hears of each, as one JSON object on its standard input; relative programs as in a binding
}

// Ledger says how entries are written.
type Ledger struct {
	Tools string   `yaml:"tools" json:"tools"` // behind: entries of tools follow within 50 ms; durable: a call waits for its entry
	Keep  Duration `yaml:"keep" json:"keep"`   // how long the answers of keyed calls are kept; 0 is for good
}

// Limits bound one call.
type Limits struct {
	InputBytes  int `yaml:"input_bytes" json:"input_bytes"`
	OutputBytes int `yaml:"output_bytes" json:"output_bytes"`
	FrameBytes  int `yaml:"frame_bytes" json:"frame_bytes"` // the longest line of protocol 2
	Calls       int `yaml:"calls" json:"calls"`             // of each tenant, at work at a time; beyond them a call is refused with overloaded

	ArtifactBytes        int `yaml:"artifact_bytes" json:"artifact_bytes"`                 // of one artifact
	CallArtifactBytes    int `yaml:"call_artifact_bytes" json:"call_artifact_bytes"`       // of all that one call registers
	SessionArtifactBytes int `yaml:"session_artifact_bytes" json:"session_artifact_bytes"` // of all artifacts of a session
	TenantArtifactBytes  int `yaml:"tenant_artifact_bytes" json:"tenant_artifact_bytes"`   // of all sessions of a tenant

	// How many of these one principal may have; 0 is any number.
	PrincipalSessions  int `yaml:"principal_sessions" json:"principal_sessions"` // that are open
	PrincipalFeeds     int `yaml:"principal_feeds" json:"principal_feeds"`
	PrincipalKnowledge int `yaml:"principal_knowledge" json:"principal_knowledge"` // knowledge bases
	PrincipalSecrets   int `yaml:"principal_secrets" json:"principal_secrets"`
	PrincipalTokens    int `yaml:"principal_tokens" json:"principal_tokens"` // in force
}

// Processes says how plugin processes live.
type Processes struct {
	Max         int      `yaml:"max" json:"max"`               // at a time
	PerTenant   int      `yaml:"per_tenant" json:"per_tenant"` // of one package; 0 is the number of processors
	Idle        Duration `yaml:"idle" json:"idle"`
	SessionIdle Duration `yaml:"session_idle" json:"session_idle"`
	Handshake   Duration `yaml:"handshake" json:"handshake"`
	CancelGrace Duration `yaml:"cancel_grace" json:"cancel_grace"`
}

// Interpreters are programs that run plugins; empty is what is found on PATH.
type Interpreters struct {
	Python string `yaml:"python" json:"python"`
	Node   string `yaml:"node" json:"node"`
}

// A Binding lets a plugin of the runtime protocol in, under the host's terms.
type Binding struct {
	PluginID        string            `yaml:"plugin_id" json:"plugin_id"`
	Version         string            `yaml:"version" json:"version,omitempty"`
	Description     string            `yaml:"description" json:"description,omitempty"`
	Command         []string          `yaml:"command" json:"command"` // a program's relative path, and an argument that begins with ./, are below the configuration file's directory
	ProtocolVersion string            `yaml:"protocol_version" json:"protocol_version,omitempty"`
	Tools           []string          `yaml:"tools" json:"tools"`
	Capabilities    []string          `yaml:"capabilities" json:"capabilities,omitempty"` // the allow-list
	Context         map[string]string `yaml:"context" json:"context,omitempty"`
	Effects         []string          `yaml:"effects" json:"effects,omitempty"`
	PolicyTags      []string          `yaml:"policy_tags" json:"policy_tags,omitempty"`
	Permissions     []string          `yaml:"permissions" json:"permissions,omitempty"`
	Timeout         Duration          `yaml:"timeout" json:"timeout,omitzero"`
}

// Log says what the host writes of itself.
type Log struct {
	Level  string `yaml:"level" json:"level"`   // debug, info, warning, error
	Format string `yaml:"format" json:"format"` // text, json
}

// A Duration is written as Go writes it: 90s, 5m, 1h30m.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(raw []byte) error {
	var text string
	if err := yaml.Unmarshal(raw, &text); err != nil {
		return err
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return fmt.Errorf("%q is no duration; write one like 90s or 5m", text)
	}
	*d = Duration(value)
	return nil
}

// MarshalJSON writes a duration as it is read.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// Default returns what holds where nothing is configured.
func Default() Config {
	c := Config{
		Tenant:    "local",
		Principal: "local:owner",
		Policy:    Policy{Default: DefaultTools, Configure: []string{"local:owner"}},
		Approvals: Approvals{By: []string{"local:owner"}, Expire: Duration(24 * time.Hour)},
		Agents:    Agents{Idle: Duration(24 * time.Hour), Deliveries: Duration(90 * 24 * time.Hour)},
		Ledger:    Ledger{Tools: "behind"},
		Limits: Limits{InputBytes: 4 << 20, OutputBytes: 4 << 20, FrameBytes: protocol.MaxFrame2, Calls: 4096, ArtifactBytes: 8 << 30,
			CallArtifactBytes: 1 << 30, SessionArtifactBytes: 16 << 30, TenantArtifactBytes: 64 << 30,
			PrincipalSessions: 10_000, PrincipalFeeds: 1000, PrincipalKnowledge: 1000, PrincipalSecrets: 1000, PrincipalTokens: 500},
		Quotas: Quotas{Principals: map[string]Quota{}, Plugins: map[string]Quota{}, Providers: map[string]int{}},
		Processes: Processes{
			Max: 64, Idle: Duration(5 * time.Minute), SessionIdle: Duration(30 * time.Minute),
			Handshake: Duration(10 * time.Second), CancelGrace: Duration(2 * time.Second),
		},
		Sandbox: defaultSandbox(runtime.GOOS),
		Plugins: Plugins{Memory: 1 << 30, Processes: 256, OpenFiles: 1024, FileSize: 256 << 20, Scratch: 256 << 20, Environments: defaultEnvironments(), Subscribe: []string{}, Trust: signed.Trust{Publishers: []signed.Publisher{}}},
		Workers: 8, Drain: Duration(30 * time.Second), Server: Server{Rate: 50, Burst: 200},
		Models:    defaultModels(),
		Telemetry: Telemetry{Sample: 1},
		Backups:   Backups{Name: "mortise", Keep: 7, Recipients: []string{}},
		Log:       Log{Level: "warning", Format: "text"},
	}
	return c
}

// defaultSandbox is required where there are sandboxes.
func defaultSandbox(system string) string {
	if system == "linux" {
		return "required"
	}
	return "best-effort"
}

// Load reads the file at path. A missing file is [fs.ErrNotExist].
func Load(path string) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return Config{}, fmt.Errorf("%s: not a regular file of at most %d bytes", path, maxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(raw)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Config{}, err
	}
	for i := range c.Bindings {
		beside(dir, c.Bindings[i].Command)
	}
	beside(dir, c.Approvals.Notify)
	beside(dir, c.Secrets.KeyCommand)
	c.Secrets.complete(dir)
	c.Models.complete(dir)
	c.Auth.complete(dir)
	c.Server.complete(dir)
	if wheels := c.Plugins.Environments.Wheels; wheels != "" && !filepath.IsAbs(wheels) {
		c.Plugins.Environments.Wheels = filepath.Join(dir, wheels)
	}
	if file := c.Egress.CAFile; file != "" && !filepath.IsAbs(file) {
		c.Egress.CAFile = filepath.Join(dir, file)
	}
	return c, nil
}

// beside makes the program of a command absolute where it is a relative path.
func beside(dir string, command []string) {
	if len(command) > 0 && !filepath.IsAbs(command[0]) && filepath.Base(command[0]) != command[0] {
		command[0] = filepath.Join(dir, command[0])
	}
}

// Parse reads the text of a configuration. The error names line and column
// where the text is at fault, and all values that are out of bounds at once.
func Parse(raw []byte) (Config, error) {
	c := Default()
	var anything any
	if err := yaml.Unmarshal(raw, &anything); err == nil && anything == nil {
		return c, nil // only comments, or nothing at all
	}
	c.Policy.Configure, c.Approvals.By = nil, nil
	if err := yaml.UnmarshalWithOptions(raw, &c, yaml.Strict()); err != nil {
		return Config{}, errors.New(hide(strings.TrimSpace(yaml.FormatError(err, false, true))))
	}
	for _, list := range []*[]string{&c.Policy.Configure, &c.Approvals.By} {
		if *list == nil {
			*list = []string{c.Principal}
		}
	}
	c.Models.complete("")
	c.Auth.complete("")
	return c, c.check()
}

// check refuses values that cannot be meant.
func (c *Config) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(key, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			refuse("%s is %q; it is one of %q", key, value, allowed)
		}
	}
	within := func(key string, value, low, high int) {
		if value < low || value > high {
			refuse("%s is %d; it is %d to %d", key, value, low, high)
		}
	}
	if c.Tenant == "" || c.Principal == "" {
		refuse("tenant and principal are not empty")
	}
	if err := c.Database.Check(); err != nil {
		errs = append(errs, err)
	}
	oneOf("policy.default", c.Policy.Default, DefaultTools, DefaultNone)
	oneOf("ledger.tools", c.Ledger.Tools, "behind", "durable")
	if c.Sandbox == "auto" {
		refuse("sandbox: auto is gone, as it started plugins behind fewer walls without saying so; write required (a complete sandbox or no plugin, " +
			"the default on Linux) or best-effort (what this machine can enforce, which each run then says)")
	} else {
		oneOf("sandbox", c.Sandbox, "required", "best-effort", "off")
	}
	errs = append(errs, c.Plugins.check()...)
	oneOf("log.level", c.Log.Level, "debug", "info", "warning", "error")
	oneOf("log.format", c.Log.Format, "text", "json")
	within("limits.input_bytes", c.Limits.InputBytes, 1, protocol.MaxFrame)
	within("limits.output_bytes", c.Limits.OutputBytes, 1, protocol.MaxFrame)
	within("limits.frame_bytes", c.Limits.FrameBytes, 1<<10, protocol.MaxFrame)
	within("limits.calls", c.Limits.Calls, 1, 1_000_000)
	within("limits.artifact_bytes", c.Limits.ArtifactBytes, 1, 1<<40)
	within("limits.call_artifact_bytes", c.Limits.CallArtifactBytes, 1, 1<<50)
	within("limits.session_artifact_bytes", c.Limits.SessionArtifactBytes, 1, 1<<50)
	within("limits.tenant_artifact_bytes", c.Limits.TenantArtifactBytes, 1, 1<<50)
	for name, most := range map[string]int{"sessions": c.Limits.PrincipalSessions, "feeds": c.Limits.PrincipalFeeds, "knowledge": c.Limits.PrincipalKnowledge, "secrets": c.Limits.PrincipalSecrets, "tokens": c.Limits.PrincipalTokens} {
		within("limits.principal_"+name, most, 0, 1_000_000)
	}
	within("processes.max", c.Processes.Max, 1, 4096)
	within("processes.per_tenant", c.Processes.PerTenant, 0, 256)
	within("workers", c.Workers, 1, 256)
	if c.Drain > Duration(24*time.Hour) {
		refuse("drain is longer than a day")
	}
	for key, d := range map[string]Duration{
		"processes.idle": c.Processes.Idle, "processes.session_idle": c.Processes.SessionIdle,
		"processes.handshake": c.Processes.Handshake, "processes.cancel_grace": c.Processes.CancelGrace,
	} {
		if d <= 0 {
			refuse("%s is not positive", key)
		}
	}
	if err := policy.CheckRules(c.Policy.Allow); err != nil {
		errs = append(errs, err)
	}
	for _, file := range c.Policy.Files {
		if strings.TrimSpace(file) == "" {
			refuse("policy.files has an empty name")
		}
	}
	errs = append(errs, c.checkPeople()...)
	errs = append(errs, c.Intents.check()...)
	errs = append(errs, c.Quotas.check()...)
	errs = append(errs, c.Retention.check()...)
	errs = append(errs, c.Backups.check()...)
	errs = append(errs, c.Agents.check()...)
	errs = append(errs, c.Models.check()...)
	errs = append(errs, c.Auth.check()...)
	errs = append(errs, c.Server.check(c.Principal, c.Policy.Groups)...)
	errs = append(errs, c.MCP.check()...)
	errs = append(errs, c.Telemetry.check()...)
	errs = append(errs, c.Secrets.check()...)
	errs = append(errs, c.Env.check()...)
	errs = append(errs, c.Settings.check()...)
	if err := c.Egress.Check(); err != nil {
		errs = append(errs, err)
	}
	seen := map[string]bool{}
	for i, b := range c.Bindings {
		if seen[b.PluginID] {
			refuse("bindings, number %d: %s is bound twice", i+1, b.PluginID)
		}
		seen[b.PluginID] = true
	}
	return errors.Join(errs...)
}

// YAML returns the configuration as the file would have it.
func (c Config) YAML() ([]byte, error) { return yaml.Marshal(c) }

// MarshalYAML writes a duration as it is read.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
