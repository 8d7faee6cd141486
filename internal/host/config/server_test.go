package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestServer(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("server: {listen: '127.0.0.1:0', tls_cert: c.pem, tls_key: k.pem}"))
	if err != nil || c.Server.Listen != "127.0.0.1:0" || !c.Server.Encrypted() {
		t.Errorf("%+v, %v", c.Server, err)
	}
	for text, want := range map[string]string{
		"server: {listen: '8080'}":                 `server.listen is "8080"`,
		"server: {tls_cert: c.pem}":                "go together",
		"server: {tls_key: k.pem}":                 "go together",
		"server: {listen_on: ':80'}":               "listen_on",
		"server: {rate: 0}":                        "server.rate is 0",
		"server: {burst: -1}":                      "server.burst is -1",
		"server: {rate: 2000000}":                  "server.rate is 2000000",
		"server: {trusted_proxies: [proxy]}":       `server.trusted_proxies: "proxy" is not a network`,
		"server: {trusted_proxies: ['0.0.0.0/0']}": `server.trusted_proxies: "0.0.0.0/0" is every address`,
	} {
		if _, err := config.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if c := config.Default(); !reflect.DeepEqual(c.Server, config.Server{Rate: 50, Burst: 200}) {
		t.Errorf("by default %+v", c.Server)
	}
}
