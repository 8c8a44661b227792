package access_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill/internal/buy/access"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

var (
	keyA, keyB = bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	minted     = time.Unix(1_700_000_000, 0).UTC()
)

// batchOf returns the first batch of a sale.
func batchOf(codes access.Codes, n int) access.Batches {
	return access.Batches{{Number: 1, Source: "press", Codes: n, Uses: 1, Created: minted, Key: codes.Key()}}
}

func TestACodeIsKnownHoweverItIsTyped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		codes, sale := access.NewCodes([][]byte{keyA}), id.New[id.Sale]()
		batches := make(access.Batches, rapid.IntRange(1, access.MaxBatches).Draw(t, "batches"))
		for i := range batches {
			batches[i] = access.Batch{Number: i + 1, Codes: access.MaxCodes, Key: codes.Key()}
		}
		want := access.Code{Batch: len(batches), Number: rapid.IntRange(1, access.MaxCodes).Draw(t, "number")}
		text := codes.Text(sale, &batches[want.Batch-1], want.Number)
		if len(text) != 23 || access.CodeAt(want.Index()) != want {
			t.Fatalf("%+v is %q, and index %d", want, text, want.Index())
		}
		typed := rapid.SampledFrom([]func(string) string{
			func(s string) string { return s },
			strings.ToLower,
			func(s string) string { return " " + strings.ReplaceAll(s, "-", " ") + "\n" },
			func(s string) string { return strings.ReplaceAll(s, "-", "") },
			strings.NewReplacer("0", "O", "1", "l").Replace,
		}).Draw(t, "typed")(text)
		stored := access.ParseBatches(batches.JSON())
		if got, err := codes.Check(sale, stored, typed, minted); err != nil || got != want {
			t.Fatalf("%q is %+v, %v, want %+v", typed, got, err, want)
		}
	})
}

func TestOtherCodesAreRefused(t *testing.T) {
	t.Parallel()
	codes, sale := access.NewCodes([][]byte{keyA}), id.New[id.Sale]()
	batches := batchOf(codes, 3)
	text := codes.Text(sale, &batches[0], 2)
	expects := func(what, typed string, b access.Batches, want fault.Reason) {
		t.Helper()
		got, err := codes.Check(sale, b, typed, minted)
		refused := fault.Refused{}
		if !errors.As(err, &refused) || refused.Why != want || got != (access.Code{}) {
			t.Errorf("%s: %+v %v, want %s", what, got, err, want)
		}
	}
	for what, typed := range map[string]string{
		"nothing": "", "a word": "letmein", "too short": text[:22], "too long": text + "0", "no character of codes": text[:22] + "U",
		"another script": strings.Repeat("代", 21), "the fourth of three": codes.Text(sale, &batches[0], 4),
		"of another batch": codes.Text(sale, &access.Batch{Number: 2, Key: codes.Key()}, 2),
		"of another sale":  codes.Text(id.New[id.Sale](), &batches[0], 2),
	} {
		expects(what, typed, batches, fault.CodeInvalid)
	}
	for i := range text { // each character counts
		other := byte('0')
		if text[i] == other {
			other = '1'
		}
		if text[i] != '-' {
			expects("one character is another", text[:i]+string(other)+text[i+1:], batches, fault.CodeInvalid)
		}
	}
	expired := batchOf(codes, 3)
	expired[0].Expires = minted
	expects("at its end", text, expired, fault.CodeExpired)
	expired[0].Expires = minted.Add(time.Millisecond)
	if _, err := codes.Check(sale, expired, text, minted); err != nil {
		t.Errorf("before its end: %v", err)
	}
	one := batchOf(codes, 3)
	one[0].Revoke(2)
	one[0].Revoke(1)
	one[0].Revoke(2)
	expects("revoked", text, access.ParseBatches(one.JSON()), fault.CodeRevoked)
	if _, err := codes.Check(sale, one, codes.Text(sale, &one[0], 3), minted); err != nil || one.Valid(access.Code{Batch: 1, Number: 3}) == nil {
		t.Errorf("the code that is left: %v", err)
	}
	all := batchOf(codes, 3)
	all[0].Revoke(0)
	expects("of a revoked batch", text, all, fault.CodeRevoked)
	if one.Valid(access.Code{Batch: 1, Number: 2}) != nil || all.Valid(access.Code{Batch: 1, Number: 1}) != nil {
		t.Error("a revoked code is valid")
	}
}

// Codes that were given out stay valid while the signing key changes, and end with it.
func TestCodesEndWithTheirKey(t *testing.T) {
	t.Parallel()
	before, during, after := access.NewCodes([][]byte{keyA}), access.NewCodes([][]byte{keyB, keyA}), access.NewCodes([][]byte{keyB})
	sale, batches := id.New[id.Sale](), batchOf(before, 1)
	text := before.Text(sale, &batches[0], 1)
	if _, err := during.Check(sale, batches, text, minted); err != nil || during.Text(sale, &batches[0], 1) != text || during.Key() != after.Key() {
		t.Errorf("while the key changes: %v", err)
	}
	if _, err := after.Check(sale, batches, text, minted); fault.ReasonOf(err) != fault.CodeInvalid || after.Text(sale, &batches[0], 1) != "" {
		t.Errorf("without its key: %v", err)
	}
}
