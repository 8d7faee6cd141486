package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// startReceiver starts the other side in a process of its own.
func startReceiver(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "receiver")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// receive is the other side: it takes orders and counts them. Where a request
// has a key it has seen, it gives its first answer and counts nothing.
func receive() {
	var mu sync.Mutex
	counts, answers := map[string]int{}, map[string]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /effects", func(w http.ResponseWriter, r *http.Request) {
		var order struct {
			Key string `json:"key"`
			N   int    `json:"n"`
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &order); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		key := r.Header.Get("Idempotency-Key")
		text, seen := answers[key]
		if key == "" || !seen {
			which := fmt.Sprintf("%s/%d", order.Key, order.N)
			counts[which]++
			text = fmt.Sprintf(`{"number":%d}`, len(counts)*1000+counts[which])
			answers[key] = text
		}
		mu.Unlock()
		if strings.HasPrefix(order.Key, "slow") {
			<-time.After(200 * time.Millisecond)
		}
		testwait.RandomMoment(4 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	})
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(counts)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, mux))
}
