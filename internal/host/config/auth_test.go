package config

import (
	"strings"
	"testing"
)

func TestProvidersOfAccounts(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte(`
auth:
  providers:
    google: {client_id: id.apps, client_secret_env: GOOGLE_SECRET, service_account: {key_file: robot.json, subjects: ["*@example.com", ann@example.org]}}
    work: {client_id: id, issuer: "https://login.example.com"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Auth.Providers["google"].Kind != "google" || c.Auth.Providers["work"].Kind != "oidc" {
		t.Errorf("got %+v", c.Auth.Providers)
	}
	for text, says := range map[string]string{
		"work: {client_id: id}": "neither an issuer",
		"google: {}":            "neither client_id nor service_account",
		"Work: {client_id: id, issuer: 'https://x.example'}":                                              "no name of a provider",
		"work: {client_id: id, issuer: 'http://login.example.com'}":                                       "https address",
		"work: {client_id: id, issuer: 'https://u:p@login.example.com'}":                                  "https address",
		"google: {client_id: id, client_secret_env: 'the secret itself'}":                                 "no place in this file",
		"google: {client_id: id, client_secret_env: A, client_secret_name: b}":                            "name one of them",
		"google: {service_account: {subjects: []}}":                                                       "say where its key is",
		"google: {service_account: {key_env: K, subjects: ['*']}}":                                        "neither an address",
		"google: {service_account: {key_env: K, subjects: ['a*@example.com']}}":                           "neither an address",
		"google: {service_account: {key_env: K, subjects: ['*@*']}}":                                      "neither an address",
		"google: {kind: facebook, client_id: id}":                                                         "the kind is",
		"google: {client_id: id, scopes: ['two words']}":                                                  "no scope",
		"google: {client_id: id, redirect_port: 70000}":                                                   "redirect_port",
		"google: {client_id: id, client_secret: what-it-is}":                                              "client_secret",
		"work: {client_id: id, authorize_url: 'https://x.example/a', token_url: 'ftp://x.example/token'}": "token_url",
	} {
		_, err := Parse([]byte("auth:\n  providers:\n    " + text + "\n"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "the secret itself\"") {
			t.Errorf("%s: the error shows it: %v", text, err)
		}
	}
}
