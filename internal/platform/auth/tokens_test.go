package auth_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	current = auth.Key{ID: "k2", Secret: []byte(strings.Repeat("current-key.", 4))}
	former  = auth.Key{ID: "k1", Secret: []byte(strings.Repeat("former-key..", 4))}
)

type world struct {
	tokens *auth.Tokens
	clock  *clock.Fake
	ended  map[id.Session]bool
	roles  map[id.User]auth.Role
	asked  int // how often a role was looked up
	down   error
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{clock: clock.NewFake(noon), ended: map[id.Session]bool{}, roles: map[id.User]auth.Role{}}
	keys, err := auth.NewKeys(current, former)
	if err != nil {
		t.Fatal(err)
	}
	w.tokens, err = auth.NewTokens(auth.TokensConfig{
		Keys: keys, Clock: w.clock, Sessions: w, Roles: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Revoked implements auth.Sessions.
func (w *world) Revoked(session id.Session) bool { return w.ended[session] }

// Role implements auth.Roles.
func (w *world) Role(_ context.Context, user id.User) (auth.Role, error) {
	w.asked++
	return w.roles[user], w.down
}

func (w *world) mint(t *testing.T, role auth.Role) (string, auth.MintInput) {
	t.Helper()
	in := auth.MintInput{User: id.New[id.User](), Session: id.New[id.Session](), Role: role}
	token, _, err := w.tokens.Mint(in)
	if err != nil {
		t.Fatal(err)
	}
	return token, in
}

func wantUnauthenticated(t *testing.T, what string, p *auth.Principal, err error) {
	t.Helper()
	if p != nil || fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("%s: got %v, %v; want UNAUTHENTICATED", what, p, err)
	}
}

func TestTokenNamesWhoHoldsIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, in := w.mint(t, auth.Customer)
	for range 2 { // parsed, then cached
		p, err := w.tokens.Verify(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		want := auth.Principal{UserID: in.User, SessionID: in.Session, Role: auth.Customer, ExpiresAt: noon.Add(auth.DefaultAccessLife)}
		if !reflect.DeepEqual(*p, want) {
			t.Fatalf("got %+v, want %+v", *p, want)
		}
	}
	if w.asked != 0 {
		t.Errorf("role of a customer was looked up %d times; want none: it costs a round trip", w.asked)
	}
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, _ := w.mint(t, auth.Customer)
	for _, remembered := range []bool{false, true} {
		w := w
		if remembered {
			if _, err := w.tokens.Verify(t.Context(), token); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(auth.DefaultAccessLife + 31*time.Second)
		} else {
			late := setup(t)
			late.clock.Advance(auth.DefaultAccessLife + 31*time.Second)
			w = late
		}
		p, err := w.tokens.Verify(t.Context(), token)
		wantUnauthenticated(t, fmt.Sprintf("remembered=%t", remembered), p, err)
	}
}

func TestTokenOfAnEndedSessionIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, in := w.mint(t, auth.Customer)
	if _, err := w.tokens.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	w.ended[in.Session] = true
	p, err := w.tokens.Verify(t.Context(), token)
	wantUnauthenticated(t, "ended session", p, err)
}

func TestRoleThatWasTakenAwayStopsWorking(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, in := w.mint(t, auth.Admin)
	for _, now := range []auth.Role{auth.Admin, auth.Operator, auth.Customer} {
		w.roles[in.User] = now
		p, err := w.tokens.Verify(t.Context(), token)
		if err != nil || p.Role != now {
			t.Errorf("role is %s now: got %v, %v", now, p, err)
		}
	}
	customer, who := w.mint(t, auth.Customer)
	w.roles[who.User] = auth.Admin
	if p, err := w.tokens.Verify(t.Context(), customer); err != nil || p.Role != auth.Customer {
		t.Errorf("a token says less than the record: got %v, %v; want CUSTOMER until it is renewed", p, err)
	}
}

func TestStaffTokenIsRefusedWhileRolesCannotBeRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, _ := w.mint(t, auth.Operator)
	w.down = errors.New("connection refused")
	if p, err := w.tokens.Verify(t.Context(), token); p != nil || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, %v; want UNAVAILABLE", p, err)
	}
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	old, err := auth.NewKeys(former)
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t)
	before, err := auth.NewTokens(auth.TokensConfig{
		Keys: old, Clock: w.clock, Sessions: w, Roles: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := before.Mint(auth.MintInput{User: id.New[id.User](), Session: id.New[id.Session](), Role: auth.Customer})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tokens.Verify(t.Context(), token); err != nil {
		t.Errorf("token of the former key: %v", err)
	}
	fresh, _ := w.mint(t, auth.Customer)
	p, err := before.Verify(t.Context(), fresh)
	wantUnauthenticated(t, "token of a key that this process does not have", p, err)
}

func TestUnfitKeysAreRefused(t *testing.T) {
	t.Parallel()
	short := auth.Key{ID: "x", Secret: make([]byte, auth.MinKeyBytes-1)}
	for name, keys := range map[string][]auth.Key{
		"empty":       {{ID: "x"}},
		"31 bytes":    {short},
		"short older": {current, short},
		"no id":       {{Secret: current.Secret}},
		"same id":     {current, {ID: current.ID, Secret: former.Secret}},
	} {
		if _, err := auth.NewKeys(keys[0], keys[1:]...); !errors.Is(err, auth.ErrUnfitKey) {
			t.Errorf("%s: got %v, want ErrUnfitKey", name, err)
		}
	}
	if _, err := auth.NewTokens(auth.TokensConfig{}); !errors.Is(err, auth.ErrUnfitKey) {
		t.Errorf("no keys: got %v, want ErrUnfitKey", err)
	}
}

func TestKeysHideTheirSecrets(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys(current)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if out := fmt.Sprintf(verb, keys); strings.Contains(out, "current") {
			t.Errorf("%s prints %q", verb, out)
		}
	}
	a, b := keys.Derive("refresh"), keys.Derive("captcha")
	if len(a[0]) != 32 || string(a[0]) == string(b[0]) || string(a[0]) == string(current.Secret[:32]) {
		t.Error("derived secrets are not 32 bytes each, distinct from each other and from the key")
	}
}

func TestRolesAreOrdered(t *testing.T) {
	t.Parallel()
	roles := []auth.Role{auth.Customer, auth.Operator, auth.Admin}
	for i, have := range roles {
		for j, least := range roles {
			if got := have.AtLeast(least); got != (i >= j) {
				t.Errorf("%s at least %s: got %t", have, least, got)
			}
		}
		if have.AtLeast("ROOT") || auth.Role("").AtLeast(have) {
			t.Errorf("an unknown role compares with %s", have)
		}
	}
}
