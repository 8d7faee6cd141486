package dialect

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mortise-dev/mortise/plugin"
)

// The contract of Shu, by its own words: which keys a manifest has, and what may
// stand there.
var (
	shuKeys = []string{"name", "version", "module", "entrypoints", "capabilities", "secrets", "display_name", "description",
		"default_feed_op", "allowed_feed_ops", "chat_callable_ops", "required_identities", "op_auth"}
	authKeys     = []string{"provider", "mode", "allowed_modes", "scopes", "subject_hint", "optional", "secrets"}
	authModes    = []string{"user", "service_account", "domain_delegate"}
	secretScopes = []string{plugin.SecretOfUser, plugin.SecretOfSystem, plugin.SecretOfSystemOrUser}
)

// shuServices are the services that a Shu plugin may ask for, each with the
// effect that an operation of it may have by it; "" for none.
var shuServices = map[string]string{
	"cache": "", "identity": "", "auth": "", "rate_limit": "", "ocr": "", "query": "", "audit": "",
	"kb": "kb_write", "storage": "storage_write", "cursor": "cursor_write",
	"http": "http_write", "secrets": "secret_write", "scheduler": "schedule_write",
}

// shuAlways are the services that every Shu plugin has without asking.
var shuAlways = []string{"log", "logger", "utils"}

// ShuOperation is what the operation of a Shu plugin is called that has none of
// its own.
const ShuOperation = "execute"

// moduleForm is "package.module:Class".
var moduleForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$`)

// shu reads a manifest of Shu. It is lenient, since published manifests depart
// from their contract: what cannot be understood or trusted is a problem, every
// other departure a note. The operations are those that its keys name; the code
// may have more, and has the schemas.
func (p *page) shu(top value) *plugin.Manifest {
	top.shuKeys()
	m := &plugin.Manifest{
		Name:        top.get("name").of("SH-08").required().shuName(),
		Version:     top.get("version").of("SH-08").shuVersion(),
		DisplayName: top.get("display_name").of("SH-08").looseText(),
		Description: top.get("description").of("SH-08").looseText(),
		Dialect:     Shu,
		Isolation:   plugin.IsolationTenant,
		Runner:      plugin.Runner{Kind: processRunner, Protocol: "2"},
		Identities:  top.get("required_identities").of("SH-28").identities(),
	}
	if text, isText := textOfVersion(top.get("version").is); isText && text != m.Version && m.Version != "" {
		m.VersionText = text
	} else if !top.has("version") {
		m.VersionText = noVersion
	}
	m.Runner.Entry, m.Runner.Module, m.Runner.Class = top.shuModule(m.Name)
	m.Capabilities = top.get("capabilities").of("SH-08").shuCapabilities()
	m.Feed = plugin.Feed{
		Default: top.get("default_feed_op").of("SH-26").looseText(),
		Allowed: top.get("allowed_feed_ops").of("SH-26").looseWords(),
	}
	if d := m.Feed.Default; d != "" && len(m.Feed.Allowed) > 0 && !slices.Contains(m.Feed.Allowed, d) {
		top.get("default_feed_op").of("SH-26").note("%q is none of allowed_feed_ops, so no feed can call it", clip(d))
	}
	m.Operations = top.shuOperations(m)
	addresses := p.guard()
	if slices.Contains(m.Capabilities, "http") {
		m.HTTP.Hosts = hostsOf(addresses)
		if len(m.HTTP.Hosts) == 0 {
			top.get("capabilities").of("SH-18").note("it asks for http, and no address stands in its code: an administrator has to say which hosts it may reach")
		}
	}
	return m
}

// shuKeys notes the keys that the contract does not have.
func (v value) shuKeys() {
	for _, key := range v.keys() {
		if slices.Contains(shuKeys, key) {
			continue
		}
		if meant, near := Nearest(key, shuKeys); near && !v.has(meant) {
			v.get(key).of("SH-08").note("the contract has no such key, so nothing reads it; did you mean %s?", meant)
		} else {
			v.get(key).of("SH-08").note("the contract has no such key")
		}
	}
}

// shuName returns the name here. Some names are the original host's own.
func (v value) shuName() string {
	name, isText := v.is.(string)
	switch {
	case !v.there: // the problem is noted
	case !isText:
		v.problem("text belongs here, not %s: a plugin is not called by a number", v.kind())
	case name == "int":
		v.problem("%q is reserved: give the plugin another name", name)
	case strings.HasPrefix(name, "mcp-"):
		v.problem("%q begins with mcp-, which names of another kind of plugin do: give it another name", clip(name))
	case strings.Contains(name, ":"):
		v.problem("%q holds a colon, which names of operations and sources are made with: give the plugin another name", clip(name))
	case !referable(name):
		v.problem("%q is no name: %s", clip(name), nameRule)
	default:
		return name
	}
	return ""
}

// textOfVersion returns a version as it is given; a number is its own text.
func textOfVersion(is any) (text string, isText bool) {
	if n, isNumber := is.(number); isNumber {
		return string(n), true
	}
	text, isText = is.(string)
	return text, isText
}

// noVersion is the version of a plugin that says none.
const noVersion = "0"

// shuVersion returns the version here as a semantic one. The contract takes any
// text: what cannot be read as a version is one before all others.
func (v value) shuVersion() string {
	if n, isNumber := v.is.(number); isNumber {
		v.note("text belongs here, not %s: it is taken for the text %q", v.kind(), string(n))
		v.is = string(n)
	}
	text, isText := v.is.(string)
	switch {
	case !v.there:
		v.note("it is missing: it is taken for %s", noVersion)
		return "0.0.0"
	case !isText:
		return v.looseVersion()
	}
	if _, err := semver.NewVersion(text); err == nil {
		return v.looseVersion()
	}
	word := strings.Trim(notInVersions.ReplaceAllString(text, "-"), "-")
	if word == "" || len(word) > 64 {
		v.problem("%q is no version, such as 1.2.0", clip(text))
		return ""
	}
	made := "0.0.0-v" + word
	if _, err := semver.StrictNewVersion(made); err != nil {
		v.problem("%q is no version, such as 1.2.0", clip(text))
		return ""
	}
	v.note("%q is no semantic version: it is taken for %s", clip(text), made)
	return made
}

var notInVersions = regexp.MustCompile(`[^0-9A-Za-z]+`)

// shuModule returns the file of the module that holds the plugin's class, the
// module's name and the class.
func (v value) shuModule(name string) (entry, module, class string) {
	place := v.get("module").of("SH-08")
	if !place.there {
		found := false
		if place, found = v.get("entrypoints").of("SH-09").entrypoint(name); !found {
			return "", "", ""
		}
	}
	text := place.word()
	if text == "" {
		return "", "", "" // the problem is noted
	}
	if !moduleForm.MatchString(text) {
		place.problem("%q has not the form package.module:Class", clip(text))
		return "", "", ""
	}
	module, class, _ = strings.Cut(text, ":")
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
		if _, err := v.page.files.regular(entry); err == nil {
			return entry, module, class
		}
	}
	place.problem("there is no %s in the package", strings.Join(files, " and no "))
	return "", module, class
}

// entrypoint returns the one entry that is the plugin's: the one of its name, or
// the only one.
func (v value) entrypoint(name string) (entry value, found bool) {
	switch keys := v.keys(); {
	case !v.there:
		v.problem("neither module nor entrypoints says which class the plugin is")
	case !v.mapping(): // the problem is noted
	case v.has(name):
		return v.get(name), true
	case len(keys) == 1:
		v.get(keys[0]).note("it is called otherwise than the plugin")
		return v.get(keys[0]), true
	default:
		v.problem("none of its entries is called %q, like the plugin", clip(name))
	}
	return value{}, false
}

// shuCapabilities returns the services that the plugin asks for, in order.
func (v value) shuCapabilities() []string {
	var asked []string
	for _, item := range v.looseItems() {
		word := item.is.(string)
		if word == "rate" {
			word = "rate_limit"
		}
		_, known := shuServices[word]
		switch {
		case known && !slices.Contains(asked, word):
			asked = append(asked, word)
		case known, slices.Contains(shuAlways, word):
		default:
			item.note("there is no service %q: the plugin does without it", clip(word))
		}
	}
	if slices.Contains(asked, "kb") && !slices.Contains(asked, "cursor") {
		asked = append(asked, "cursor")
	}
	slices.Sort(asked)
	return asked
}

// shuEffects are the effects that operations of a plugin may have by the
// services that it asks for.
func shuEffects(capabilities []string) []string {
	var effects []string
	for _, name := range capabilities {
		if effect := shuServices[name]; effect != "" {
			effects = append(effects, effect)
		}
	}
	slices.Sort(effects)
	return effects
}

// shuOperations returns one operation for each that a key names.
func (v value) shuOperations(m *plugin.Manifest) []*plugin.Operation {
	byName, folded := map[string]*plugin.Operation{}, map[string]string{}
	add := func(place value, name string) *plugin.Operation {
		if op := byName[name]; op != nil {
			return op
		}
		if !ValidName(name) {
			place.problem("%q is no name: %s", clip(name), nameRule)
			return nil
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			place.problem("%s differs from %s in letter case only", name, other)
			return nil
		}
		folded[strings.ToLower(name)] = name
		byName[name] = shuOperation(m, name)
		m.Operations = append(m.Operations, byName[name])
		return byName[name]
	}
	chat := v.get("chat_callable_ops").of("SH-08").looseItems()
	for _, item := range chat { // the order in which they are shown: of chats, of feeds, all others
		if op := add(item, item.is.(string)); op != nil {
			op.AutoInvoke = true
		}
	}
	for _, name := range m.Feed.Allowed {
		add(v.get("allowed_feed_ops").of("SH-26"), name)
	}
	shared := v.get("secrets").of("SH-08").sharedSecrets()
	auths := v.get("op_auth").of("SH-28")
	if auths.mapping() {
		for _, name := range auths.keys() {
			if op := add(auths.get(name), name); op != nil {
				op.Auth, op.Secrets = auths.get(name).opAuth()
			}
		}
	}
	if m.Feed.Default != "" {
		add(v.get("default_feed_op").of("SH-26"), m.Feed.Default)
	}
	if len(byName) == 0 {
		add(v, ShuOperation)
	}
	for _, op := range m.Operations {
		op.Secrets = withShared(op.Secrets, shared)
	}
	return m.Operations
}

// shuOperation returns an operation of a plugin, of which only the name is known.
func shuOperation(m *plugin.Manifest, name string) *plugin.Operation {
	return &plugin.Operation{
		Name:     name,
		Kind:     plugin.Operator,
		Effects:  shuEffects(m.Capabilities),
		Timeout:  timeouts["slow"],
		Brokered: true, // it has nothing but the host's services
	}
}

// sharedSecrets returns the secrets that any operation may read and none needs.
func (v value) sharedSecrets() map[string]plugin.SecretNeed {
	shared := map[string]plugin.SecretNeed{}
	for _, name := range v.looseWords() {
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

// identities returns the accounts that the caller has to have connected.
func (v value) identities() []plugin.Auth {
	var all []plugin.Auth
	for _, item := range v.list() {
		if auth, _ := item.opAuth(); auth != nil {
			all = append(all, *auth)
		}
	}
	return all
}

// opAuth returns the account and the secrets that stand here.
func (v value) opAuth() (*plugin.Auth, map[string]plugin.SecretNeed) {
	if !v.mapping() {
		return nil, nil
	}
	for _, key := range v.keys() {
		if !slices.Contains(authKeys, key) {
			v.get(key).note("the contract has no such key, so nothing reads it")
		}
	}
	secrets := v.get("secrets").of("SH-29").secretNeeds()
	auth := plugin.Auth{
		Provider:     v.get("provider").looseText(),
		Mode:         v.get("mode").authMode(),
		AllowedModes: v.get("allowed_modes").authModes(),
		Scopes:       v.get("scopes").looseWords(),
		SubjectHint:  v.get("subject_hint").looseText(),
		Optional:     v.get("optional").looseTruth(),
	}
	if auth.Provider == "" {
		if len(secrets) == 0 || v.has("mode") || v.has("scopes") {
			v.note("it names no provider, so no account is meant")
		}
		return nil, secrets
	}
	return &auth, secrets
}

// authMode reads the mode in which a user authenticates with a provider.
func (v value) authMode() string {
	mode := v.looseText()
	if mode != "" && !slices.Contains(authModes, mode) {
		v.note("%q is none of %s", clip(mode), strings.Join(authModes, ", "))
	}
	return mode
}

func (v value) authModes() []string {
	items := v.looseItems()
	for _, item := range items {
		item.authMode()
	}
	return texts(items)
}

// secretNeeds returns the secrets that an operation cannot do without.
func (v value) secretNeeds() map[string]plugin.SecretNeed {
	if !v.mapping() || len(v.keys()) == 0 {
		return nil
	}
	needs := map[string]plugin.SecretNeed{}
	for _, name := range v.keys() {
		place, need := v.get(name), plugin.SecretNeed{AllowedScope: plugin.SecretOfSystemOrUser}
		if reason := badWord(name); reason != "" {
			place.problem("%s", reason)
			continue
		}
		if _, isMapping := place.is.(*mapping); isMapping {
			if scope := place.get("allowed_scope"); scope.there {
				need.AllowedScope = scope.oneOf(plugin.SecretOfSystemOrUser, secretScopes...)
			}
		} else {
			place.note("a mapping with allowed_scope belongs here, not %s: it is taken for %s", place.kind(), need.AllowedScope)
		}
		needs[name] = need
	}
	return needs
}

// IsShu reports whether dir holds a manifest of Shu, good or bad.
func IsShu(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	if (files{root}).hasShuManifest() {
		return true
	}
	reading, _ := Inspect(dir)
	return reading != nil && reading.Manifest != nil && reading.Manifest.Dialect == Shu
}
