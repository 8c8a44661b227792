package draw

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// relayTimeout is the timeout of one relay: a round is asked for again until one has it.
	relayTimeout = 5 * time.Second
	// maxRelayAnswer bounds the answer of a relay, in bytes; a true one has about 300.
	maxRelayAnswer = 4 << 10
)

// Relays fetches rounds of a beacon over HTTPS. No relay is trusted: each answer is verified.
type Relays struct {
	chain  *Chain
	urls   []*url.URL
	client *http.Client
	log    *slog.Logger

	timeout time.Duration // of one relay
}

// NewRelays returns a client of relays, each of which is an https address such as
// https://api.drand.sh. It returns an error without any.
func NewRelays(chain *Chain, addresses []string, client *http.Client, log *slog.Logger) (*Relays, error) {
	r := &Relays{chain: chain, client: client, log: log, timeout: relayTimeout}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("relay: %w", err)
		}
		if u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("relay %q: give an https address", address)
		}
		r.urls = append(r.urls, u)
	}
	if len(r.urls) == 0 {
		return nil, errors.New("no relay of the beacon is configured")
	}
	return r, nil
}

// Fetch returns the signature of a round, from the first relay that has it. A relay that
// does not answer in time, or gives a false answer, is logged and the next one is asked.
func (r *Relays) Fetch(ctx context.Context, round uint64) (signature []byte, err error) {
	var errs []error
	for _, relay := range r.urls {
		signature, err := r.fetch(ctx, relay, round)
		if err == nil {
			return signature, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.log.WarnContext(ctx, "relay of the beacon skipped", slog.String("relay", relay.Host), slog.Uint64("round", round),
			slog.Bool("lied", errors.Is(err, ErrFalseRound)), slog.String("error", err.Error()))
		errs = append(errs, fmt.Errorf("%s: %w", relay.Host, err))
	}
	return nil, fmt.Errorf("fetch round %d: %w", round, errors.Join(errs...))
}

// fetch asks one relay.
func (r *Relays) fetch(ctx context.Context, relay *url.URL, round uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	address := relay.JoinPath(r.chain.hash, "public", strconv.FormatUint(round, 10)).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRelayAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxRelayAnswer {
		return nil, fmt.Errorf("answered more than %d bytes", maxRelayAnswer)
	}
	var answer struct {
		Round     uint64 `json:"round"`
		Signature string `json:"signature"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	if answer.Round != round {
		return nil, fmt.Errorf("%w: the answer is round %d", ErrFalseRound, answer.Round)
	}
	signature, err := hex.DecodeString(answer.Signature)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFalseRound, err)
	}
	if _, err := r.chain.Verify(round, signature); err != nil {
		return nil, err
	}
	return signature, nil
}
