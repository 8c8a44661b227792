package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
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

// The signature is that of round 1000 of Quicknet.
func TestTheFileOfADrawSaleIsVerified(t *testing.T) {
	t.Parallel()
	signer, err := acceptance.NewSigner("", [][]byte{[]byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	dir, entry, nonce := t.TempDir(), id.New[id.Waitlist](), "5f2c17a0b4e94d0c"
	r := &draw.Record{
		Version: draw.Version, Sale: id.New[id.Sale]().Public(), Item: id.New[id.Item]().Public(), Count: 1,
		RootPublishedAt: draw.RoundTime(1000).Add(-draw.Lead).Unix() - 1, Leaves: [][32]byte{draw.LeafHash(entry, nonce)},
		Source: draw.SourceQuicknet, Round: 1000, Order: []int{0}, Offers: []draw.Offer{{Rank: 1, Quantity: 1}},
		Signature: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
	}
	r.ClosedAt, r.Root = r.RootPublishedAt, draw.Root(r.Leaves)
	if r.SignedRoot, err = signer.SignAs(draw.CommitmentType, r.Commitment()); err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	encode := func() []byte {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	file, keys := write("draw.json", encode()), write("jwks.json", signer.KeySet())
	root := fmt.Sprintf("%x", r.Root)
	prints(t, exitOK, "Not checked: who signed", "verify", "draw", "--file", file)
	prints(t, exitOK, "has rank 1;", "verify", "draw", "--file", file, "--keys", keys, "--root", root, "--entry", entry.Public(), "--nonce", nonce)
	prints(t, exitFinding, "not in the draw", "verify", "draw", "--file", file, "--entry", entry.Public(), "--nonce", "another nonce 16")
	prints(t, exitFinding, "its root is", "verify", "draw", "--file", file, "--root", strings.Repeat("0", 64))
	prints(t, exitUnfit, "belong together", "verify", "draw", "--file", file, "--entry", entry.Public())
	prints(t, exitUnfit, "give --file", "verify", "draw", "--nonce", nonce)
	r.ClosedAt--
	prints(t, exitFinding, "the signed root says", "verify", "draw", "--file", write("moved.json", encode()), "--keys", keys)
	r.Round++
	prints(t, exitFinding, "the round of a root of that time is 1000", "verify", "draw", "--file", write("later.json", encode()))
	prints(t, exitFinding, "no record", "verify", "draw", "--file", write("none.json", []byte("{")))
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

// TestTheLogOfASaleIsVerified writes two orders into a log, and checks its address and a copy.
func TestTheLogOfASaleIsVerified(t *testing.T) {
	t.Parallel()
	db, saleID, item := testdb.SQLite(t), id.New[id.Sale](), id.New[id.Item]()
	signer, err := acceptance.NewSigner("https://shop.example", [][]byte{[]byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	err = db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(saleID).SetSlug("log").SetTitle("Log").SetStatus(entsale.StatusLIVE).SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).
			SetPreheatAt(now).SetPaymentWindowSeconds(900).SetPurchaseLimit(2).SetEpoch(1).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(item).SetSaleID(saleID).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(1).SetCurrency("EUR").SetTotal(2).SetAvailable(2).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	writer := order.NewWriter(order.WriterConfig{DB: db, Timeout: testenv.Wait})
	t.Cleanup(func() { _ = writer.Close(context.WithoutCancel(t.Context())) })
	requests := make([]order.Request, 2)
	for i := range requests {
		requests[i] = order.Request{
			V: 1, Task: id.NewTask(id.ShardOf(saleID)), User: id.New[id.User](), Sale: saleID, Item: item, Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
			PaymentWindowSeconds: 900, IdempotencyKey: "key-of-sixteen-bytes", Epoch: 1, SubmittedAtMs: now.UnixMilli(),
		}
	}
	for _, end := range writer.Write(t.Context(), requests...) {
		if end.Err != nil || end.Task.Status != order.Succeeded {
			t.Fatalf("%+v", end)
		}
	}
	logger := &acceptance.Logger{DB: db, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
	if counts, err := logger.Step(t.Context()); err != nil || counts["logged"] != 2 {
		t.Fatalf("%v, %v", counts, err)
	}
	mux := http.NewServeMux()
	mux.Handle(acceptance.LogsPath, acceptance.NewLogs(db, signer, clock.System{}, slog.New(slog.DiscardHandler)))
	mux.HandleFunc("/.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(signer.KeySet()) })
	shop := httptest.NewServer(mux)
	t.Cleanup(shop.Close)
	log := shop.URL + acceptance.LogsPath + saleID.Public()
	prints(t, exitOK, `"most": 2`, "verify", "acceptances", log, "--stock", "2")
	prints(t, exitFinding, "2 units were taken at one time, 1 were announced", "verify", "acceptances", log, "--stock", item.Public()+"=1")
	prints(t, exitUnfit, "no number", "verify", "acceptances", log, "--stock", "many")
	prints(t, exitUnfit, "404", "verify", "acceptances", log+"x")

	dir := t.TempDir()
	for _, file := range []string{"checkpoint", "tile/0/000.p/2", "tile/entries/000.p/2", "proof/" + requests[0].Task.Public()} {
		text, err := fetch(t.Context(), log+"/"+file, maxTile)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, checkpoint := filepath.Join(dir, "jwks.json"), filepath.Join(dir, "checkpoint")
	if err := os.WriteFile(keys, signer.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, exitUnfit, "--keys", "verify", "acceptances", dir)
	prints(t, exitOK, `"accepted": 2`, "verify", "acceptances", dir, "--keys", keys, "--since", checkpoint)
	proof := filepath.Join(dir, "proof", requests[0].Task.Public())
	for i, code := range []int{exitOK, exitFinding} {
		receipt, err := signer.Sign(&order.Task{ID: requests[i].Task, User: requests[i].User, Sale: saleID, Item: item, Quantity: 1, CreatedAt: now})
		if err != nil {
			t.Fatal(err)
		}
		prints(t, code, "", "verify", "receipt", receipt, "--keys", keys, "--proof", proof)
	}
	if err := os.WriteFile(filepath.Join(dir, "tile/0/000.p/2"), make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, exitFinding, "not the tile of the entries", "verify", "acceptances", dir, "--keys", keys)
}
