package config

import (
	"reflect"
	"strings"
	"testing"
)

// What a tenant has of a key of the configuration.
const (
	ofTheTenant = "tenant" // its own file says it, or its name does
	ofTheSite   = "site"   // the same as the site's: machinery that all tenants share
	ofNone      = "none"   // the default: what the site's file says of it is not for tenants
)

// keys are all keys of the configuration, with what a tenant has of each. A key that holds for
// all its members stands for them.
var tenantKeys = map[string]string{
	"tenant": ofTheTenant, "principal": ofTheTenant, "quotas": ofTheTenant,
	"policy.default": ofTheSite, "policy.files": ofTheTenant, "policy.allow": ofTheTenant, "policy.groups": ofTheTenant,
	"policy.roles": ofTheTenant, "policy.consent": ofTheTenant, "policy.configure": ofTheTenant,
	"approvals.by": ofTheTenant, "approvals.expire": ofTheTenant, "approvals.self": ofNone, "approvals.trust_as": ofNone, "approvals.notify": ofNone,

	"database": ofTheSite, "blobs": ofTheSite, "secrets": ofTheSite, "ledger": ofTheSite, "agents": ofTheSite, "limits": ofTheSite, "retention": ofTheSite,
	"processes": ofTheSite, "sandbox": ofTheSite, "interpreters": ofTheSite, "models": ofTheSite,
	"plugins.memory": ofTheSite, "plugins.processes": ofTheSite, "plugins.cpu": ofTheSite, "plugins.open_files": ofTheSite, "plugins.file_size": ofTheSite,
	"plugins.scratch": ofTheSite, "plugins.environments": ofTheSite, "plugins.trust": ofTheSite, "plugins.subscribe": ofNone,
	"egress.ca_file": ofTheSite, "egress.loopback": ofNone, "egress.map": ofNone, "egress.hosts": ofNone,
	"mcp.recheck": ofTheSite, "mcp.list": ofNone, "mcp.for": ofNone, "mcp.profiles": ofNone,
	"server.sign_in_age": ofTheSite, "server.listen": ofNone, "server.tls_cert": ofNone, "server.tls_key": ofNone, "server.rate": ofNone, "server.burst": ofNone,
	"server.public_url": ofNone, "server.trusted_proxies": ofNone, "server.sign_in": ofNone, "server.machines": ofNone,

	"auth": ofNone, "bindings": ofNone, "env": ofNone, "settings": ofNone, "intents": ofNone,
	"workers": ofNone, "drain": ofNone, "telemetry": ofNone, "backups": ofNone, "log": ofNone,
}

// A tenant has of the site's configuration only what the table says: a key that is added to the
// configuration is not a tenant's before it has a row here.
func TestWhatATenantHasOfTheSite(t *testing.T) {
	var site Config
	fillValue(reflect.ValueOf(&site).Elem(), 0)
	got, base := ofSite(site), Default()
	seen := map[string]bool{}
	var walk func(key string, got, site, base reflect.Value)
	walk = func(key string, got, site, base reflect.Value) {
		has, known := tenantKeys[key]
		if !known {
			if site.Kind() != reflect.Struct {
				t.Errorf("the key %s has no row here: say whether it is the site's or the tenant's", key)
				return
			}
			for i := range site.NumField() {
				name, _, _ := strings.Cut(site.Type().Field(i).Tag.Get("yaml"), ",")
				walk(strings.TrimPrefix(key+"."+name, "."), got.Field(i), site.Field(i), base.Field(i))
			}
			return
		}
		seen[key] = true
		want := base
		if has == ofTheSite {
			want = site
		}
		if !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s, which is %q, is %+v; want %+v", key, has, got.Interface(), want.Interface())
		}
	}
	walk("", reflect.ValueOf(got), reflect.ValueOf(site), reflect.ValueOf(base))
	for key := range tenantKeys {
		if !seen[key] {
			t.Errorf("there is no key %s", key)
		}
	}
}

// fillValue gives every part of a value something that is no default.
func fillValue(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key, depth+1)
		fillValue(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("of the site")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(77)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(77)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.77)
	}
}
