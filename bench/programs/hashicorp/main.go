// Command hashicorp is the plugin's end of HashiCorp's go-plugin: with the
// argument grpc over gRPC, otherwise over net/rpc.
package main

import (
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/mortise-dev/mortise/bench/peer"
)

func main() {
	config := &plugin.ServeConfig{HandshakeConfig: peer.Handshake, Plugins: peer.NetRPC, Logger: hclog.NewNullLogger()}
	if len(os.Args) > 1 && os.Args[1] == "grpc" {
		config.Plugins, config.GRPCServer = peer.GRPC, plugin.DefaultGRPCServer
	}
	plugin.Serve(config)
}
