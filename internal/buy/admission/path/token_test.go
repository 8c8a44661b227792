package path_test

import (
	"encoding/base64"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestATokenProvesOnePermitOfOneUserAndItem(t *testing.T) {
	t.Parallel()
	tokens := path.NewTokens(secrets)
	rapid.Check(t, func(t *rapid.T) {
		user, item := id.New[id.User](), id.New[id.Item]()
		want := reservation.Permit{
			Epoch: rapid.Int64().Draw(t, "epoch"), Until: time.UnixMilli(rapid.Int64Range(1, 4_000_000_000_000).Draw(t, "until")).UTC(),
		}
		token := tokens.Token(user, item, want)
		if got := tokens.Permit(user, item, token); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		none := reservation.Permit{}
		if tokens.Permit(id.User(item), id.Item(user), token) != none || tokens.Permit(id.New[id.User](), item, token) != none || tokens.Permit(user, id.New[id.Item](), token) != none {
			t.Fatal("the token is good for another user or item")
		}
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			t.Fatal(err)
		}
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "byte")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		if tokens.Permit(user, item, base64.RawURLEncoding.EncodeToString(raw)) != none {
			t.Fatal("a changed token is good")
		}
		if tokens.Permit(user, item, token[:rapid.IntRange(0, len(token)-1).Draw(t, "cut")]) != none {
			t.Fatal("a part of a token is good")
		}
	})
}

func TestATokenOfThePreviousKeyIsGoodUntilTheKeyIsRemoved(t *testing.T) {
	t.Parallel()
	user, item, permit := id.New[id.User](), id.New[id.Item](), reservation.Permit{Epoch: 1, Until: time.UnixMilli(1_900_000_000_000).UTC()}
	token := path.NewTokens(secrets[1:]).Token(user, item, permit)
	if got := path.NewTokens(secrets).Permit(user, item, token); got != permit {
		t.Errorf("during the rotation: %+v", got)
	}
	if got := path.NewTokens(secrets[:1]).Permit(user, item, token); got != (reservation.Permit{}) {
		t.Errorf("after it: %+v", got)
	}
	if got := path.NewTokens(secrets).Permit(user, item, "AAAAAAAAAAAAAAAAAAAAAA"); got != (reservation.Permit{}) {
		t.Errorf("a random token of release 0.1: %+v", got)
	}
}

// A token is dead once it is replaced, voided by a new captcha, or its purchase ended.
func TestOnlyTheNewestTokenOfAUserTakesAUnit(t *testing.T) {
	t.Parallel()
	onBothWith(t, 1.5, func(t *testing.T, f *fixture) {
		gate := reservation.NewGate(reservation.GateConfig{Client: f.redis, Keys: f.keys, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})
		user := id.New[id.User]()
		reserve := func(p path.Path) reservation.Outcome {
			t.Helper()
			o, err := gate.Reserve(t.Context(), reservation.Attempt{
				Task: id.NewTask(f.shard), Sale: f.sale, Item: f.item, User: user, Quantity: 1, Permit: f.paths.Permit(user, f.item, p.Token),
				IdempotencyKey: uuid.NewString(), Terms: "1|EUR|900",
			})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		dead := func(when string, p path.Path) {
			t.Helper()
			if o := reserve(p); o.Code != reservation.PathInvalid {
				t.Errorf("%s: %+v", when, o)
			}
		}
		waived := f.input(user, captcha.Answer{})
		waived.Waived = true
		first := f.issue(waived)
		second := f.issue(waived)
		dead("replaced", first)
		f.challenge(user)
		third := f.issue(f.input(user, f.challenge(user))) // the second challenge voids what the first one did not
		dead("after a new captcha", second)
		o := reserve(third)
		if o.Code != reservation.Accepted {
			t.Fatalf("the newest: %+v", o)
		}
		if r, err := gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: user, Task: o.Task}); err != nil || !r.Done {
			t.Fatal(r, err)
		}
		dead("after the purchase was cancelled", third)
		testenv.Eventually(t, testenv.Wait, func() bool { // Redis is in the next millisecond
			return f.redis.Time(t.Context()).Val().UnixMilli() > third.ExpiresAt.Add(-path.DefaultLife).UnixMilli()
		}, "time passes")
		fourth := f.issue(waived)
		dead("beside the token of another purchase", third)
		if o := reserve(fourth); o.Code != reservation.Accepted {
			t.Errorf("the token of the second purchase: %+v", o)
		}
	})
}
