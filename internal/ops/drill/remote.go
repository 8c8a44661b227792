package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
)

const (
	drillPath = "/drill" // on the admin listener of the demo
	maxInput  = 1 << 12  // bytes of an Input
	maxResult = 64 << 20 // bytes of a seed.Result with MaxBuyers users
	// prepareTimeout bounds one call of a Remote; the embedded database writes 20,000
	// users in less.
	prepareTimeout = time.Minute
)

// Handler serves a target to a Remote. It is for the admin listener of the demo: every
// client that reaches it gets accounts. Requests need the content type of JSON, which pages of other
// sites cannot send without asking.
func Handler(t Target) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+drillPath, func(w http.ResponseWriter, r *http.Request) {
		var in Input
		switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxInput)).Decode(&in); {
		case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			http.Error(w, "send JSON", http.StatusUnsupportedMediaType)
			return
		case err != nil || in.Users < 1 || in.Users > MaxBuyers:
			http.Error(w, "not the input of a drill", http.StatusBadRequest)
			return
		}
		made, err := t.Prepare(r.Context(), in)
		reply(w, made, err)
	})
	mux.HandleFunc("GET "+drillPath+"/{sale}", func(w http.ResponseWriter, r *http.Request) {
		report, err := t.Audit(r.Context(), r.PathValue("sale"))
		reply(w, report, err)
	})
	return mux
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// Remote is the target of a running demo, at the address of its admin listener.
type Remote struct{ URL string }

// Prepare makes buyers, and a sale unless in names one.
func (t Remote) Prepare(ctx context.Context, in Input) (*seed.Result, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var made seed.Result
	return &made, t.call(ctx, http.MethodPost, drillPath, body, &made)
}

// Audit checks the invariants of a sale.
func (t Remote) Audit(ctx context.Context, sale string) (*audit.Report, error) {
	var report audit.Report
	return &report, t.call(ctx, http.MethodGet, drillPath+"/"+sale, nil, &report)
}

func (t Remote) call(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(t.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no demo at %s: start `seckill demo`, or give the settings of a server: %w", t.URL, err)
	}
	defer func() { _ = response.Body.Close() }() // read whole
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResult))
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusNotFound:
		return errors.New("the server at " + t.URL + " is no demo: give its settings, such as SECKILL_DATABASE_URL")
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("demo: %s", bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, into)
}
