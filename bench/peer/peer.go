// Package peer is the echo that HashiCorp's go-plugin serves, over net/rpc and
// over gRPC, as both of its ends need it.
package peer

import (
	"context"
	"encoding/json"
	"net/rpc"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Handshake is what both ends agree on before they speak.
var Handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "MORTISE_BENCH", MagicCookieValue: "echo"}

// NetRPC and GRPC are the plugin sets of the two transports.
var (
	NetRPC = plugin.PluginSet{"echo": &netRPC{}}
	GRPC   = plugin.PluginSet{"echo": &overGRPC{}}
)

// An Echo answers bytes with the same bytes. Maps is the same with the bytes
// decoded into a map and encoded again at the plugin's end.
type Echo interface {
	Bytes(in []byte) ([]byte, error)
	Maps(in []byte) ([]byte, error)
}

func remap(in []byte) ([]byte, error) {
	var value map[string]any
	if err := json.Unmarshal(in, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

type netRPC struct{}

func (*netRPC) Server(*plugin.MuxBroker) (any, error)                  { return &rpcServer{}, nil }
func (*netRPC) Client(_ *plugin.MuxBroker, c *rpc.Client) (any, error) { return &rpcClient{c}, nil }

type rpcServer struct{}

// Bytes is called by net/rpc.
func (*rpcServer) Bytes(in []byte, out *[]byte) error { *out = in; return nil }

// Maps is called by net/rpc.
func (*rpcServer) Maps(in []byte, out *[]byte) (err error) { *out, err = remap(in); return err }

type rpcClient struct{ c *rpc.Client }

func (r *rpcClient) Bytes(in []byte) (out []byte, err error) {
	err = r.c.Call("Plugin.Bytes", in, &out)
	return out, err
}

func (r *rpcClient) Maps(in []byte) (out []byte, err error) {
	err = r.c.Call("Plugin.Maps", in, &out)
	return out, err
}

type overGRPC struct{ plugin.NetRPCUnsupportedPlugin }

func (*overGRPC) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&service, nil)
	return nil
}

func (*overGRPC) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return &grpcClient{c}, nil
}

type grpcClient struct{ c *grpc.ClientConn }

func (g *grpcClient) call(method string, in []byte) ([]byte, error) {
	var out wrapperspb.BytesValue
	err := g.c.Invoke(context.Background(), "/bench.Echo/"+method, wrapperspb.Bytes(in), &out)
	return out.GetValue(), err
}

func (g *grpcClient) Bytes(in []byte) ([]byte, error) { return g.call("Bytes", in) }
func (g *grpcClient) Maps(in []byte) ([]byte, error)  { return g.call("Maps", in) }

// service is what protoc would generate for two methods of BytesValue to BytesValue.
var service = grpc.ServiceDesc{
	ServiceName: "bench.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Bytes", Handler: handler(func(in []byte) ([]byte, error) { return in, nil })},
		{MethodName: "Maps", Handler: handler(remap)},
	},
}

func handler(echo func([]byte) ([]byte, error)) grpc.MethodHandler {
	return func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var in wrapperspb.BytesValue
		if err := decode(&in); err != nil {
			return nil, err
		}
		out, err := echo(in.GetValue())
		return wrapperspb.Bytes(out), err
	}
}
