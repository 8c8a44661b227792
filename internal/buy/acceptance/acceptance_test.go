package acceptance_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func signer(t testing.TB, secrets ...byte) *acceptance.Signer {
	t.Helper()
	var all [][]byte
	for _, b := range secrets {
		all = append(all, bytes.Repeat([]byte{b}, 32))
	}
	s, err := acceptance.NewSigner("https://shop.example", all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var task = &order.Task{
	ID: id.NewTask(1), User: id.New[id.User](), Sale: id.New[id.Sale](), Item: id.New[id.Item](), Quantity: 2, CreatedAt: time.Unix(1_700_000_000, 0),
}

func TestAReceiptIsCheckedWithThePublicKeysAlone(t *testing.T) {
	t.Parallel()
	s := signer(t, 1)
	receipt, err := s.Sign(task)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Sign(task); err != nil || again != receipt {
		t.Errorf("the second signature differs: %v", err)
	}
	got, err := acceptance.Verify(receipt, s.KeySet())
	if err != nil || got.Issuer != "https://shop.example" || got.Subject != task.User.Public() || got.ID != task.ID.Public() ||
		got.Sale != task.Sale.Public() || got.Item != task.Item.Public() || got.Quantity != 2 || got.IssuedAt.Unix() != 1_700_000_000 {
		t.Errorf("%+v, %v", got, err)
	}
	if bytes.Contains(s.KeySet(), []byte(`"d"`)) {
		t.Errorf("the set has a private key: %s", s.KeySet())
	}
	rotated := signer(t, 2, 1)
	if _, err := acceptance.Verify(receipt, rotated.KeySet()); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
}

func TestATaskThatNoStoreHasIsNotSigned(t *testing.T) {
	t.Parallel()
	forged := *task
	forged.Vanished = true
	if receipt, err := signer(t, 1).Sign(&forged); fault.CodeOf(err) != fault.NotFound || receipt != "" {
		t.Errorf("%q, %v", receipt, err)
	}
}

func TestForgedReceiptsAreRefused(t *testing.T) {
	t.Parallel()
	s, other := signer(t, 1), signer(t, 3)
	receipt, err := s.Sign(task)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(receipt, ".")
	foreign, err := other.Sign(task)
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, acceptance.Claims{Quantity: 2}).SignedString(s.KeySet())
	if err != nil {
		t.Fatal(err)
	}
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, acceptance.Claims{Quantity: 2}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"another key": foreign, "signed with the public key as a secret": hashed, "not signed": unsigned,
		"other claims": parts[0] + "." + strings.Split(foreign, ".")[1][1:] + "." + parts[2], "no token": "receipt",
	} {
		if c, err := acceptance.Verify(text, s.KeySet()); err == nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if _, err := acceptance.NewSigner("", [][]byte{{1}}); err == nil {
		t.Error("a short secret was accepted")
	}
}
