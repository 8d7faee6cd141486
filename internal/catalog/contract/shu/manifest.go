// Package shu reads manifests of Shu, prepares calls of its plugins, and spells
// the answers.
package shu

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "shu"

// Contract is the contract of Shu.
type Contract struct{}

var (
	_ contract.FileOwner = Contract{}
	_ contract.Bundler   = Contract{}
	_ contract.Merger    = Contract{}
	_ contract.Facter    = Contract{}
	_ contract.Preparer  = Contract{}
	_ contract.Enveloper = Contract{}
)

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Form implements [contract.Reader].
func (Contract) Form() string { return "of Shu (module or entrypoints)" }

// Recognizes implements [contract.Reader].
func (Contract) Recognizes(top contract.Value) bool {
	return top.Has("entrypoints") || top.Has("module")
}

// Facts implements [contract.Facter].
func (Contract) Facts() plugin.Contract {
	return plugin.Contract{
		MaxInput: 256 << 10, MaxOutput: 1 << 20, // input_too_large, output_too_large
		Shim: "shu", ShimManifest: true, AnyRelease: true,
		SchemaLast: true, Verbatim: true, PartialData: true, ShimLimits: true,
		HostMember: HostMember, ScheduleMember: "__schedule_id", ResetMember: "reset_cursor", AtOnce: true,
		ListsTools: true, OwnAccountsOnly: true, SecretsByCapability: true, DocumentsByHash: true,
	}
}

// The contract of Shu, by its own words: which keys a manifest has, and what may
// stand there.
var (
	knownKeys = []string{"name", "version", "module", "entrypoints", "capabilities", "secrets", "display_name", "description",
		"default_feed_op", "allowed_feed_ops", "chat_callable_ops", "required_identities", "op_auth"}
	authKeys = []string{"provider", "mode", "allowed_modes", "scopes", "subject_hint", "optional", "secrets"}
)

// services are the services that a Shu plugin may ask for, each with the
// effect that an operation of it may have by it; "" for none.
var services = map[string]string{
	"cache": "", "identity": "", "auth": "", "rate_limit": "", "ocr": "", "query": "", "audit": "",
	"kb": "kb_write", "storage": "storage_write", "cursor": "cursor_write",
	"http": "http_write", "secrets": "secret_write", "scheduler": "schedule_write",
}

// always are the services that every Shu plugin has without asking.
var always = []string{"log", "logger", "utils"}

// OnlyOperation is what the operation of a Shu plugin is called that has none of
// its own.
const OnlyOperation = "execute"

// moduleForm is "package.module:Class".
var moduleForm = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$`)

// Read implements [contract.Reader]. It is lenient, since published manifests depart
// from their contract: what cannot be understood or trusted is a problem, every
// other departure a note. The operations are those that its keys name; the code
// may have more, and has the schemas.
func (Contract) Read(top contract.Value) *plugin.Manifest {
	checkKeys(top)
	m := &plugin.Manifest{
		Name:        nameOf(top.Get("name").Of("SH-08").Required()),
		Version:     versionOf(top.Get("version").Of("SH-08")),
		DisplayName: top.Get("display_name").Of("SH-08").LooseText(),
		Description: top.Get("description").Of("SH-08").LooseText(),
		Dialect:     Name,
		Isolation:   plugin.IsolationTenant,
		Runner:      plugin.Runner{Kind: contract.ProcessRunner, Protocol: "2"},
		Identities:  identitiesOf(top.Get("required_identities").Of("SH-28")),
	}
	if text, isText := textOfVersion(top.Get("version").Is); isText && text != m.Version && m.Version != "" {
		m.VersionText = text
	} else if !top.Has("version") {
		m.VersionText = noVersion
	}
	m.Runner.Entry, m.Runner.Module, m.Runner.Class = moduleOf(top, m.Name)
	m.Capabilities = capabilitiesOf(top.Get("capabilities").Of("SH-08"))
	m.Feed = plugin.Feed{
		Default: top.Get("default_feed_op").Of("SH-26").LooseText(),
		Allowed: top.Get("allowed_feed_ops").Of("SH-26").LooseWords(),
	}
	if d := m.Feed.Default; d != "" && len(m.Feed.Allowed) > 0 && !slices.Contains(m.Feed.Allowed, d) {
		top.Get("default_feed_op").Of("SH-26").Note("%q is none of allowed_feed_ops, so no feed can call it", contract.Clip(d))
	}
	m.Operations = operationsOf(top, m)
	addresses := guard(top.Page)
	if slices.Contains(m.Capabilities, "http") {
		m.HTTP.Hosts = hostsOf(addresses)
		if len(m.HTTP.Hosts) == 0 {
			top.Get("capabilities").Of("SH-18").Note("it asks for http, and no address stands in its code: an administrator has to say which hosts it may reach")
		}
	}
	return m
}

// checkKeys notes the keys that the contract does not have.
func checkKeys(v contract.Value) {
	for _, key := range v.Keys() {
		if slices.Contains(knownKeys, key) {
			continue
		}
		if meant, near := contract.Nearest(key, knownKeys); near && !v.Has(meant) {
			v.Get(key).Of("SH-08").Note("the contract has no such key, so nothing reads it; did you mean %s?", meant)
		} else {
			v.Get(key).Of("SH-08").Note("the contract has no such key")
		}
	}
}

// nameOf returns the name here. Some names are the original host's own.
func nameOf(v contract.Value) string {
	name, isText := v.Is.(string)
	switch {
	case !v.There: // the problem is noted
	case !isText:
		v.Problem("text belongs here, not %s: a plugin is not called by a number", v.Kind())
	case name == "int":
		v.Problem("%q is reserved: give the plugin another name", name)
	case strings.HasPrefix(name, "mcp-"):
		v.Problem("%q begins with mcp-, which names of another kind of plugin do: give it another name", contract.Clip(name))
	case strings.Contains(name, ":"):
		v.Problem("%q holds a colon, which names of operations and sources are made with: give the plugin another name", contract.Clip(name))
	case !contract.Referable(name):
		v.Problem("%q is no name: %s", contract.Clip(name), contract.NameRule)
	default:
		return name
	}
	return ""
}

// textOfVersion returns a version as it is given; a number is its own text.
func textOfVersion(is any) (text string, isText bool) {
	if n, isNumber := is.(contract.Number); isNumber {
		return string(n), true
	}
	text, isText = is.(string)
	return text, isText
}

// noVersion is the version of a plugin that says none.
const noVersion = "0"

// versionOf returns the version here as a semantic one. The contract takes any
// text: what cannot be read as a version is one before all others.
func versionOf(v contract.Value) string {
	if n, isNumber := v.Is.(contract.Number); isNumber {
		v.Note("text belongs here, not %s: it is taken for the text %q", v.Kind(), string(n))
		v.Is = string(n)
	}
	text, isText := v.Is.(string)
	switch {
	case !v.There:
		v.Note("it is missing: it is taken for %s", noVersion)
		return "0.0.0"
	case !isText:
		return v.LooseVersion()
	}
	if _, err := semver.NewVersion(text); err == nil {
		return v.LooseVersion()
	}
	word := strings.Trim(notInVersions.ReplaceAllString(text, "-"), "-")
	if word == "" || len(word) > 64 {
		v.Problem("%q is no version, such as 1.2.0", contract.Clip(text))
		return ""
	}
	made := "0.0.0-v" + word
	if _, err := semver.StrictNewVersion(made); err != nil {
		v.Problem("%q is no version, such as 1.2.0", contract.Clip(text))
		return ""
	}
	v.Note("%q is no semantic version: it is taken for %s", contract.Clip(text), made)
	return made
}

var notInVersions = pattern.New(`[^0-9A-Za-z]+`)

// published is the form of the modules that published hosts load: below the directory of their
// package in plugins.
var published = pattern.New(`^plugins\.[A-Za-z_][A-Za-z0-9_]*\.`)

// moduleOf returns the file of the module that holds the plugin's class, the
// module's name and the class.
func moduleOf(v contract.Value, name string) (entry, module, class string) {
	place := v.Get("module").Of("SH-08")
	if !place.There {
		found := false
		if place, found = entrypointOf(v.Get("entrypoints").Of("SH-09"), name); !found {
			return "", "", ""
		}
	}
	text := place.Word()
	if text == "" {
		return "", "", "" // the problem is noted
	}
	if !moduleForm.MatchString(text) {
		place.Problem("%q has not the form package.module:Class", contract.Clip(text))
		return "", "", ""
	}
	module, class, _ = strings.Cut(text, ":")
	if v.Has("module") && !published.MatchString(module) {
		place.Note("%q is not below plugins.DIRECTORY, where published hosts look for it: write plugins.DIRECTORY.%s", contract.Clip(module), contract.Clip(text))
	}
	// plugins is a namespace that this package is in, whatever its directory is called.
	parts := strings.Split(module, ".")
	if parts[0] == "plugins" && len(parts) > 1 {
		parts = parts[2:]
	}
	base := strings.Join(parts, "/")
	files := []string{base + ".py", path.Join(base, "__init__.py")}
	if base == "" {
		files = files[1:] // the package itself
	}
	for _, entry = range files {
		if _, err := v.Page.Files.Regular(entry); err == nil {
			return entry, module, class
		}
	}
	place.Problem("there is no %s in the package", strings.Join(files, " and no "))
	return "", module, class
}

// entrypointOf returns the one entry that is the plugin's: the one of its name, or
// the only one.
func entrypointOf(v contract.Value, name string) (entry contract.Value, found bool) {
	switch keys := v.Keys(); {
	case !v.There:
		v.Problem("neither module nor entrypoints says which class the plugin is")
	case !v.Mapping(): // the problem is noted
	case v.Has(name):
		return v.Get(name), true
	case len(keys) == 1:
		v.Get(keys[0]).Note("it is called otherwise than the plugin")
		return v.Get(keys[0]), true
	default:
		v.Problem("none of its entries is called %q, like the plugin", contract.Clip(name))
	}
	return contract.Value{}, false
}

// capabilitiesOf returns the services that the plugin asks for, in order.
func capabilitiesOf(v contract.Value) []string {
	var asked []string
	for _, item := range v.LooseItems() {
		word := item.Is.(string)
		if word == "rate" {
			word = "rate_limit"
		}
		_, known := services[word]
		switch {
		case known && !slices.Contains(asked, word):
			asked = append(asked, word)
		case known, slices.Contains(always, word):
		default:
			item.Note("there is no service %q: the plugin does without it", contract.Clip(word))
		}
	}
	if slices.Contains(asked, "kb") && !slices.Contains(asked, "cursor") {
		asked = append(asked, "cursor")
	}
	slices.Sort(asked)
	return asked
}

// effectsOf are the effects that operations of a plugin may have by the
// services that it asks for.
func effectsOf(capabilities []string) []string {
	var effects []string
	for _, name := range capabilities {
		if effect := services[name]; effect != "" {
			effects = append(effects, effect)
		}
	}
	slices.Sort(effects)
	return effects
}

// operationsOf returns one operation for each that a key names.
func operationsOf(v contract.Value, m *plugin.Manifest) []*plugin.Operation {
	byName, folded := map[string]*plugin.Operation{}, map[string]string{}
	add := func(place contract.Value, name string) *plugin.Operation {
		if op := byName[name]; op != nil {
			return op
		}
		if !contract.ValidName(name) {
			place.Problem("%q is no name: %s", contract.Clip(name), contract.NameRule)
			return nil
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			place.Problem("%s differs from %s in letter case only", name, other)
			return nil
		}
		folded[strings.ToLower(name)] = name
		byName[name] = newOperation(m, name)
		m.Operations = append(m.Operations, byName[name])
		return byName[name]
	}
	chat := v.Get("chat_callable_ops").Of("SH-08").LooseItems()
	for _, item := range chat { // the order in which they are shown: of chats, of feeds, all others
		if op := add(item, item.Is.(string)); op != nil {
			op.AutoInvoke = true
		}
	}
	for _, name := range m.Feed.Allowed {
		add(v.Get("allowed_feed_ops").Of("SH-26"), name)
	}
	shared := sharedSecretsOf(v.Get("secrets").Of("SH-08"))
	auths := v.Get("op_auth").Of("SH-28")
	if auths.Mapping() {
		for _, name := range auths.Keys() {
			if op := add(auths.Get(name), name); op != nil {
				op.Auth, op.Secrets = authOf(auths.Get(name))
			}
		}
	}
	if m.Feed.Default != "" {
		add(v.Get("default_feed_op").Of("SH-26"), m.Feed.Default)
	}
	if len(byName) == 0 {
		add(v, OnlyOperation)
	}
	for _, op := range m.Operations {
		op.Secrets = withShared(op.Secrets, shared)
	}
	return m.Operations
}

// newOperation returns an operation of a plugin, of which only the name is known.
func newOperation(m *plugin.Manifest, name string) *plugin.Operation {
	return &plugin.Operation{
		Name:     name,
		Kind:     plugin.Operator,
		Effects:  effectsOf(m.Capabilities),
		Timeout:  contract.Timeouts["slow"],
		Brokered: true, // it has nothing but the host's services
	}
}

// sharedSecretsOf returns the secrets that any operation may read and none needs.
func sharedSecretsOf(v contract.Value) map[string]plugin.SecretNeed {
	shared := map[string]plugin.SecretNeed{}
	for _, name := range v.LooseWords() {
		shared[name] = plugin.SecretNeed{AllowedScope: plugin.SecretOfSystemOrUser, Optional: true}
	}
	return shared
}

// withShared adds to the secrets of an operation those that all have.
func withShared(own, shared map[string]plugin.SecretNeed) map[string]plugin.SecretNeed {
	for name, need := range shared {
		if _, has := own[name]; has {
			continue
		}
		if own == nil {
			own = map[string]plugin.SecretNeed{}
		}
		own[name] = need
	}
	return own
}

// identitiesOf returns the accounts that the caller has to have connected.
func identitiesOf(v contract.Value) []plugin.Auth {
	var all []plugin.Auth
	for _, item := range v.List() {
		if auth, _ := authOf(item); auth != nil {
			all = append(all, *auth)
		}
	}
	return all
}

// authOf returns the account and the secrets that stand here.
func authOf(v contract.Value) (*plugin.Auth, map[string]plugin.SecretNeed) {
	if !v.Mapping() {
		return nil, nil
	}
	for _, key := range v.Keys() {
		if !slices.Contains(authKeys, key) {
			v.Get(key).Note("the contract has no such key, so nothing reads it")
		}
	}
	secrets := v.Get("secrets").Of("SH-29").SecretNeeds()
	auth := plugin.Auth{
		Provider:     v.Get("provider").LooseText(),
		Mode:         modeOf(v.Get("mode")),
		AllowedModes: modesOf(v.Get("allowed_modes")),
		Scopes:       v.Get("scopes").LooseWords(),
		SubjectHint:  v.Get("subject_hint").LooseText(),
		Optional:     v.Get("optional").LooseTruth(),
	}
	if auth.Provider == "" {
		if len(secrets) == 0 || v.Has("mode") || v.Has("scopes") {
			v.Note("it names no provider, so no account is meant")
		}
		return nil, secrets
	}
	return &auth, secrets
}

// modeOf reads the mode in which a user authenticates with a provider.
func modeOf(v contract.Value) string {
	mode := v.LooseText()
	if mode != "" && !slices.Contains(contract.AuthModes, mode) {
		v.Note("%q is none of %s", contract.Clip(mode), strings.Join(contract.AuthModes, ", "))
	}
	return mode
}

func modesOf(v contract.Value) []string {
	items := v.LooseItems()
	for _, item := range items {
		modeOf(item)
	}
	return contract.Texts(items)
}

// Bundled implements [contract.Bundler].
func (c Contract) Bundled(dir string) bool { return Holds(dir) }

// Holds reports whether dir holds a manifest of Shu, good or bad.
func Holds(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	if (Contract{}).Owns(contract.Files{Root: root}) {
		return true
	}
	reading, _ := contract.Inspect(dir)
	return reading != nil && reading.Manifest != nil && reading.Manifest.Dialect == Name
}
