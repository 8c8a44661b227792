package draw_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/draw"
)

// rounds are true ones of Quicknet, as its relays serve them.
var rounds = map[uint64]string{
	1000:   "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
	1001:   "b33bf3667cbd5a82de3a24b4e0e9fe5513cc1a0e840368c6e31f5fcfa79bea03f73896b25883abf2853d10337fb8fa41",
	1002:   "ab066f9c12dd6de1336fca0f925192fb0c72a771c3e4c82ede1fd362c1a770f9eb05843c6308ce2530b53a99c0281a6e",
	1003:   "b104c82771698f45fd8dcfead083d482694c31ab519bcef077f126f3736fe98c8392fd5d45d88aeb76b56ccfcb0296d7",
	657413: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
}

func signatureOf(t *testing.T, round uint64) []byte {
	t.Helper()
	raw, err := hex.DecodeString(rounds[round])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestARoundIsVerifiedOffline(t *testing.T) {
	t.Parallel()
	for round := range rounds {
		if _, err := draw.Verify(round, signatureOf(t, round)); err != nil {
			t.Error(err)
		}
	}
	for round, want := range map[uint64]string{
		1000:   "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd",
		657413: "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587",
	} {
		if got, err := draw.Verify(round, signatureOf(t, round)); err != nil || fmt.Sprintf("%x", got) != want {
			t.Errorf("round %d: %x, %v", round, got, err)
		}
	}
}

func TestAFalseRoundIsRefused(t *testing.T) {
	t.Parallel()
	of := signatureOf(t, 1000)
	flipped := bytes.Clone(of)
	flipped[0] ^= 0x20 // the other point with this x
	uncompressed, err := hex.DecodeString("144679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39" +
		"11f92e4521ef54f047b64b85fa98db2d46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		round     uint64
		signature []byte
	}{
		"another round":                 {1001, of},
		"the signature of another":      {1000, signatureOf(t, 1001)},
		"the negated point":             {1000, flipped},
		"the uncompressed encoding":     {1000, uncompressed},
		"bytes after it":                {1000, append(bytes.Clone(of), 0)},
		"the point at infinity":         {1000, append([]byte{0xc0}, make([]byte, 47)...)},
		"a point that is none":          {1000, bytes.Repeat([]byte{0x9f}, 48)},
		"nothing":                       {1000, nil},
		"half of it":                    {1000, of[:24]},
		"round 0 with a true signature": {0, of},
	} {
		if _, err := draw.Verify(c.round, c.signature); !errors.Is(err, draw.ErrFalseRound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTheRoundOfADrawIsAfterItsRoot(t *testing.T) {
	t.Parallel()
	genesis := draw.RoundTime(1)
	if genesis.Unix() != 1692803367 || draw.RoundTime(1000).Unix() != 1692806364 {
		t.Errorf("round 1 at %v, round 1000 at %v", genesis, draw.RoundTime(1000))
	}
	for _, c := range []struct {
		after time.Duration
		want  uint64
	}{{-time.Hour, 1}, {-1, 1}, {0, 2}, {1, 2}, {3*time.Second - 1, 2}, {3 * time.Second, 3}, {4 * time.Second, 3}} {
		if got := draw.RoundAfter(genesis.Add(c.after)); got != c.want {
			t.Errorf("%v after round 1: round %d, want %d", c.after, got, c.want)
		}
	}
	for _, at := range []time.Time{genesis, genesis.Add(time.Second), time.Unix(1_900_000_000, 0)} {
		round := draw.RoundFor(at)
		if wait := draw.RoundTime(round).Sub(at); wait <= draw.Lead || wait > draw.Lead+3*time.Second {
			t.Errorf("a root of %v waits %v", at, wait)
		}
	}
}

// relay serves answers over TLS.
func relay(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func TestRelaysThatLieOrHangAreSkipped(t *testing.T) {
	t.Parallel()
	answer := func(round uint64, signature string) string {
		return fmt.Sprintf(`{"round":%d,"randomness":"00","signature":"%s"}`, round, signature)
	}
	false1000 := strings.Replace(rounds[1000], "b4", "94", 1)
	bad := map[string]http.HandlerFunc{
		"another round":            says(answer(1001, rounds[1001])),
		"another's signature":      says(answer(1000, rounds[1001])),
		"a false signature":        says(answer(1000, false1000)),
		"no hexadecimal":           says(answer(1000, "x")),
		"no JSON":                  says("<html>"),
		"an endless answer":        says(strings.Repeat(" ", 1<<20) + answer(1000, rounds[1000])),
		"not yet":                  func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"silence":                  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a connection that breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	var addresses []string
	for _, handler := range bad {
		addresses = append(addresses, relay(t, handler).URL)
	}
	good := relay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/1000" {
			http.NotFound(w, r)
			return
		}
		says(answer(1000, rounds[1000]))(w, r)
	})
	var log bytes.Buffer
	relays, err := draw.NewRelays(draw.Quicknet(), append(addresses, good.URL+"/prefix/"), good.Client(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	relays.SetTimeout(time.Second)
	signature, err := relays.Fetch(t.Context(), 1000)
	if err != nil || hex.EncodeToString(signature) != rounds[1000] {
		t.Errorf("%x, %v", signature, err)
	}
	if skipped := strings.Count(log.String(), "skipped"); skipped != len(bad) {
		t.Errorf("%d relays of %d are in the log:\n%s", skipped, len(bad), &log)
	}
	if lied := strings.Count(log.String(), "lied=true"); lied != 4 {
		t.Errorf("%d lies are in the log:\n%s", lied, &log)
	}
	if signature, err := relays.Fetch(t.Context(), 1002); err == nil {
		t.Errorf("no relay has round 1002, got %x", signature)
	}
}

func TestRelaysAreAskedOverTLSAlone(t *testing.T) {
	t.Parallel()
	for _, addresses := range [][]string{nil, {"http://api.drand.sh"}, {"https://"}, {"api.drand.sh"}, {"https://api.drand.sh", "ftp://x"}} {
		if _, err := draw.NewRelays(draw.Quicknet(), addresses, &http.Client{}, slog.Default()); err == nil {
			t.Errorf("%q are relays", addresses)
		}
	}
}
