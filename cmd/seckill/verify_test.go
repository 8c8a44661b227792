package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
)

// prints runs a command and wants an exit code and a text on either output.
func prints(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	got := command(t, nil, args...)
	got.wants(t, code)
	if !strings.Contains(got.stdout+got.stderr, text) {
		t.Errorf("%q lacks %q", got.stdout+got.stderr, text)
	}
}

func TestADrawIsVerifiedFromItsPublicValues(t *testing.T) {
	t.Parallel()
	seed := sale.DrawSeed(strings.Repeat("s", 32))
	arguments := func(change func(map[string]string)) []string {
		flags := map[string]string{"--commitment": seed.Commitment(), "--seed": seed.Hex(), "--nonce": "a nonce of a client", "--number": "0"}
		flags["--number"] = strconv.FormatUint(seed.Number(flags["--nonce"]), 10)
		change(flags)
		out := []string{"verify", "draw"}
		for flag, value := range flags {
			out = append(out, flag, value)
		}
		return out
	}
	prints(t, exitOK, "follows from the seed", arguments(func(map[string]string) {})...)
	for flag, c := range map[string]struct {
		value, says string
		code        int
	}{
		"--commitment": {strings.Repeat("0", 64), "another seed", exitFinding},
		"--nonce":      {"another nonce 16", "should be", exitFinding},
		"--number":     {"1", "should be", exitFinding},
		"--seed":       {"00", "32 bytes in hexadecimal", exitUnfit},
	} {
		prints(t, c.code, c.says, arguments(func(flags map[string]string) { flags[flag] = c.value })...)
	}
}

func TestAReceiptIsVerifiedWithTheKeysOfTheShop(t *testing.T) {
	t.Parallel()
	signer, err := acceptance.NewSigner("", [][]byte{[]byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := signer.Sign(&order.Task{Quantity: 7, CreatedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/keys" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(signer.KeySet())
	}))
	t.Cleanup(shop.Close)
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, signer.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, exitOK, `"quantity": 7`, "verify", "receipt", receipt, "--keys", shop.URL+"/keys")
	prints(t, exitOK, "tsk_", "verify", "receipt", receipt, "--keys", file)
	prints(t, exitFinding, "not valid", "verify", "receipt", receipt+"x", "--keys", file)
	prints(t, exitUnfit, "404", "verify", "receipt", receipt, "--keys", shop.URL+"/elsewhere")
}
