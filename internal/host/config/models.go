package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Models are the language models that plugins may ask, by tier, and what that
// may cost.
type Models struct {
	Light     []Model    `yaml:"light" json:"light"`                   // for most queries, the first that can before the others
	Heavy     []Model    `yaml:"heavy" json:"heavy"`                   // for reasoning and long answers
	Embedding *Embedding `yaml:"embedding" json:"embedding,omitempty"` // what makes vectors of passages; none if it is not written
	Allow     []string   `yaml:"allow" json:"allow"`                   // plugins that may ask: names, or beginnings that end in *
	Budget    Budget     `yaml:"budget" json:"budget"`                 // what may be spent
	PerMinute int        `yaml:"per_minute" json:"per_minute"`         // queries of a tenant; 0 is no bound
	AtOnce    int        `yaml:"at_once" json:"at_once"`               // queries under way
	Timeout   Duration   `yaml:"timeout" json:"timeout"`               // of one attempt
	Required  string     `yaml:"required" json:"required"`             // what a tool that asks for a model does without one: run, refuse
	Keep      bool       `yaml:"keep" json:"keep"`                     // whether the ledger keeps what was asked and answered, or its hashes alone
}

// What a tool that asks for a model does where none is connected.
const (
	RequiredRun    = "run"    // it runs and is told that there is none
	RequiredRefuse = "refuse" // it does not run
)

// Budget is dollars; 0 is no limit.
type Budget struct {
	Query   float64 `yaml:"query" json:"query"`
	Call    float64 `yaml:"call" json:"call"`       // all queries of one call
	Session float64 `yaml:"session" json:"session"` // all calls of one session
	Day     float64 `yaml:"day" json:"day"`         // all of the tenant, from midnight to midnight UTC
}

// A Model is one of a tier. Its key is never written here: the file says where
// it is.
type Model struct {
	Name        string   `yaml:"name" json:"name"`         // what plugins see; model where it is empty
	Provider    string   `yaml:"provider" json:"provider"` // openai, anthropic, gemini
	Model       string   `yaml:"model" json:"model"`       // the provider's name of it
	BaseURL     string   `yaml:"base_url" json:"base_url,omitempty"`
	KeyEnv      string   `yaml:"api_key_env" json:"api_key_env,omitempty"`   // a variable of the host's environment
	KeyFile     string   `yaml:"api_key_file" json:"api_key_file,omitempty"` // a file that only its owner may read; a relative one is below the configuration file's directory
	Vision      bool     `yaml:"vision" json:"vision"`
	JSON        bool     `yaml:"json" json:"json"`           // it has a JSON mode
	Documents   []string `yaml:"documents" json:"documents"` // MIME types that it reads by itself
	URIs        []string `yaml:"uris" json:"uris"`           // schemes from which its provider fetches documents: gs
	Context     int      `yaml:"context" json:"context"`     // tokens; 128000 where it is 0
	MaxOutput   int      `yaml:"max_output" json:"max_output,omitempty"`
	MaxInline   Bytes    `yaml:"max_inline" json:"max_inline,omitempty"` // of a document that is sent along; by provider where it is 0
	InputPrice  *float64 `yaml:"input_price" json:"input_price"`         // dollars for a million tokens
	OutputPrice *float64 `yaml:"output_price" json:"output_price"`
}

// An Embedding is the model that makes vectors of the passages of knowledge bases.
type Embedding struct {
	Name       string   `yaml:"name" json:"name"`         // model where it is empty
	Provider   string   `yaml:"provider" json:"provider"` // openai, gemini
	Model      string   `yaml:"model" json:"model"`       // the provider's name of it
	BaseURL    string   `yaml:"base_url" json:"base_url,omitempty"`
	KeyEnv     string   `yaml:"api_key_env" json:"api_key_env,omitempty"`
	KeyFile    string   `yaml:"api_key_file" json:"api_key_file,omitempty"`
	Dimensions int      `yaml:"dimensions" json:"dimensions,omitempty"` // of the vectors; the model's own where it is 0
	Batch      int      `yaml:"batch" json:"batch,omitempty"`           // passages of one request; 64 where it is 0
	InputPrice *float64 `yaml:"input_price" json:"input_price"`         // dollars for a million tokens
}

// asModel is what of it every model has.
func (e *Embedding) asModel() *Model {
	free := 0.0
	return &Model{Name: e.Name, Provider: e.Provider, Model: e.Model, BaseURL: e.BaseURL, KeyEnv: e.KeyEnv, KeyFile: e.KeyFile, InputPrice: e.InputPrice, OutputPrice: &free}
}

func (e *Embedding) check() (problems []string) {
	problems = e.asModel().check()
	if e.Provider == "anthropic" {
		problems = append(problems, "anthropic has no models of embeddings; openai (and whatever speaks its embeddings) and gemini have")
	}
	if e.Dimensions < 0 || e.Dimensions > 8192 {
		problems = append(problems, fmt.Sprintf("dimensions is %d; it is 0 to 8192, and 0 for the model's own", e.Dimensions))
	}
	if e.Batch < 0 || e.Batch > 1024 {
		problems = append(problems, fmt.Sprintf("batch is %d; it is 0 to 1024", e.Batch))
	}
	return problems
}

// maxModels is how many a tier may have.
const maxModels = 16

// providers are those there are, with the largest document that each takes
// within a request.
var providers = map[string]Bytes{"openai": 24 << 20, "anthropic": 22 << 20, "gemini": 14 << 20}

func defaultModels() Models {
	return Models{Allow: []string{"*"}, Budget: Budget{Day: 10}, PerMinute: 120, AtOnce: 16, Timeout: Duration(5 * time.Minute), Required: RequiredRun, Keep: true}
}

// complete fills up what a model leaves to its provider.
func (m *Models) complete(dir string) {
	if e := m.Embedding; e != nil {
		if e.Name == "" {
			e.Name = e.Model
		}
		if dir != "" && e.KeyFile != "" && !filepath.IsAbs(e.KeyFile) {
			e.KeyFile = filepath.Join(dir, e.KeyFile)
		}
	}
	for _, tier := range [][]Model{m.Light, m.Heavy} {
		for i := range tier {
			model := &tier[i]
			if model.Name == "" {
				model.Name = model.Model
			}
			if model.Context == 0 {
				model.Context = 128000
			}
			if model.MaxInline == 0 {
				model.MaxInline = providers[model.Provider]
			}
			if dir != "" && model.KeyFile != "" && !filepath.IsAbs(model.KeyFile) {
				model.KeyFile = filepath.Join(dir, model.KeyFile)
			}
		}
	}
}

func (m *Models) check() []error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	seen := map[string]bool{}
	for tier, models := range map[string][]Model{"light": m.Light, "heavy": m.Heavy} {
		if len(models) > maxModels {
			refuse("models.%s has %d models; it has at most %d", tier, len(models), maxModels)
		}
		for i := range models {
			model := &models[i]
			for _, problem := range model.check() {
				refuse("models.%s, number %d: %s", tier, i+1, problem)
			}
			if name := model.Name; seen[name] && name != "" {
				refuse("models.%s, number %d: there is another model %q; give one of them a name", tier, i+1, name)
			}
			seen[model.Name] = true
		}
	}
	if m.Embedding != nil {
		for _, problem := range m.Embedding.check() {
			refuse("models.embedding: %s", problem)
		}
	}
	for _, name := range m.Allow {
		if strings.TrimSpace(name) == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			refuse("models.allow: %q is no plugin; write a name, or its beginning and *", name)
		}
	}
	for key, dollars := range map[string]float64{"query": m.Budget.Query, "call": m.Budget.Call, "session": m.Budget.Session, "day": m.Budget.Day} {
		if !(dollars >= 0 && dollars <= 1e6) {
			refuse("models.budget.%s is %v; it is 0 to 1000000 dollars, and 0 for no limit", key, dollars)
		}
	}
	if m.PerMinute < 0 || m.PerMinute > 1e6 {
		refuse("models.per_minute is %d; it is 0 to 1000000, and 0 for no bound", m.PerMinute)
	}
	if m.AtOnce < 1 || m.AtOnce > 1024 {
		refuse("models.at_once is %d; it is 1 to 1024", m.AtOnce)
	}
	if m.Required != RequiredRun && m.Required != RequiredRefuse {
		refuse("models.required is %q; it is %s, which tells a tool that asks for a model that there is none, or %s", m.Required, RequiredRun, RequiredRefuse)
	}
	if t := time.Duration(m.Timeout); t < time.Second || t > time.Hour {
		refuse("models.timeout is %s; it is 1s to 1h", t)
	}
	return errs
}

var variable = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (m *Model) check() (problems []string) {
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if _, known := providers[m.Provider]; !known {
		refuse("the provider is %q; it is openai (and whatever speaks its chat completions), anthropic or gemini", m.Provider)
	}
	if m.Model == "" || len(m.Model) > 200 || strings.ContainsFunc(m.Model, func(r rune) bool { return r <= ' ' || r > '~' }) {
		refuse("model is %q; it is the provider's name of the model", m.Model)
	}
	if len(m.Name) > 200 {
		refuse("the name is longer than 200 bytes")
	}
	switch {
	case m.KeyEnv != "" && m.KeyFile != "":
		refuse("it has both api_key_env and api_key_file; the key is in one place")
	case m.KeyEnv != "" && !variable.MatchString(m.KeyEnv):
		refuse("api_key_env is not the name of a variable; the key itself has no place in this file") // what is there may be a key, so it is not shown
	case m.KeyEnv == "" && m.KeyFile == "" && (m.Provider != "openai" || m.BaseURL == ""):
		refuse("it has neither api_key_env nor api_key_file; say where the key is")
	}
	if problem := m.checkURL(); problem != "" {
		refuse("%s", problem)
	}
	for _, scheme := range m.URIs {
		if scheme != "gs" || m.Provider != "gemini" {
			refuse("uris: %q; gemini fetches gs, and no other provider fetches anything", scheme)
		}
	}
	for _, mime := range m.Documents {
		if kind, sub, found := strings.Cut(mime, "/"); !found || kind == "" || sub == "" || strings.ContainsAny(mime, " ;") {
			refuse("documents: %q is no MIME type; write one like application/pdf", mime)
		}
	}
	for key, n := range map[string]int{"context": m.Context, "max_output": m.MaxOutput} {
		if n < 0 || n > 100_000_000 {
			refuse("%s is %d; it is 0 to 100000000 tokens", key, n)
		}
	}
	if m.MaxInline > 100<<20 {
		refuse("max_inline is %s; it is at most 100MiB", m.MaxInline)
	}
	if (m.InputPrice == nil || m.OutputPrice == nil) && (m.Provider != "openai" || m.BaseURL == "") {
		refuse("it has no input_price and output_price, dollars for a million tokens, without which no budget holds")
	}
	for _, price := range []*float64{m.InputPrice, m.OutputPrice} {
		if price != nil && !(*price >= 0 && *price <= 1e5) {
			refuse("a price is %v; it is 0 to 100000 dollars for a million tokens", *price)
		}
	}
	return problems
}

// checkURL refuses where no provider can be, or a key would travel in the open.
func (m *Model) checkURL() string {
	if m.BaseURL == "" {
		return ""
	}
	u, err := url.Parse(m.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || !slices.Contains([]string{"http", "https"}, u.Scheme):
		return "base_url is no address; write one like https://models.example.com/v1"
	case u.User != nil:
		return "base_url has a user in it; say where the key is with api_key_env or api_key_file"
	case u.Scheme == "http" && m.KeyEnv+m.KeyFile != "" && !loopback(u.Hostname()):
		return "base_url is http, over which the key would travel readably; write https"
	}
	return ""
}

func loopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return net.IP(addr.AsSlice()).IsLoopback()
	}
	return host == "localhost"
}
