// Command call executes one operation with the client that oapi-codegen writes.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/mortise-dev/mortise/test/clients/testdata/go/api"
)

func main() {
	server, token := os.Args[1], os.Args[2]
	signed := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := api.NewClientWithResponses(server, api.WithRequestEditorFn(signed))
	if err != nil {
		fail(err)
	}
	key := "go-1"
	done, err := client.ExecuteOperationWithResponse(context.Background(), "desk", "upper", &api.ExecuteOperationParams{IdempotencyKey: &key},
		api.ExecutionBody{Input: map[string]any{"text": "from go"}})
	if err != nil {
		fail(err)
	}
	if done.JSON200 == nil {
		fail(fmt.Errorf("%s: %s", done.Status(), done.Body))
	}
	refused, err := client.ExecuteOperationWithResponse(context.Background(), "desk", "absent", nil, api.ExecutionBody{})
	if err != nil {
		fail(err)
	}
	if refused.ApplicationproblemJSONDefault == nil {
		fail(fmt.Errorf("a refusal is %s: %s", refused.Status(), refused.Body))
	}
	fmt.Println(done.JSON200.Status, done.JSON200.Data, refused.ApplicationproblemJSONDefault.Code)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
