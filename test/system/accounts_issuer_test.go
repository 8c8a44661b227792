package system_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// otherShop is another system that signs tokens for its customers and publishes its keys.
type otherShop struct {
	t      testing.TB
	server *httptest.Server
	site   *site

	mu    sync.Mutex
	keys  map[string]*ecdsa.PrivateKey // guarded by mu; the published ones, by id
	reads int                          // guarded by mu; of the keys
}

// newOtherShop starts another system and an installation that accepts its tokens.
func newOtherShop(t testing.TB, more string, change ...func(*config.Config)) *otherShop {
	t.Helper()
	o := &otherShop{t: t, keys: map[string]*ecdsa.PrivateKey{}}
	o.key("k1")
	o.server = httptest.NewServer(http.HandlerFunc(o.publish))
	t.Cleanup(o.server.Close)
	file := filepath.Join(t.TempDir(), "issuers.json")
	text := `[{"issuer": "https://shop.example.com", "jwks": "` + o.server.URL + `", "audience": "seckill"` + more + `}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.site = newSite(t, append(change, func(c *config.Config) { c.TokenIssuers = file })...)
	o.site.start("api", "worker", "scheduler")
	return o
}

// key makes a key and publishes it.
func (o *otherShop) key(kid string) *ecdsa.PrivateKey {
	o.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		o.t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys[kid] = key
	return key
}

func (o *otherShop) publish(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	set := []map[string]string{}
	for kid, key := range o.keys {
		raw, err := key.PublicKey.ECDH()
		if err != nil {
			o.t.Error(err)
			return
		}
		point := raw.Bytes() // 4, X, Y
		set = append(set, map[string]string{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid,
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": set})
}

// token signs a token for a customer; claims replace the usual ones, nil removes one.
func (o *otherShop) token(kid string, claims jwt.MapClaims) string {
	o.t.Helper()
	now := time.Now()
	all := jwt.MapClaims{
		"iss": "https://shop.example.com", "aud": "seckill", "sub": "customer-7", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"email": "ann@example.com", "email_verified": true, "name": "Ann",
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	unsigned := jwt.NewWithClaims(jwt.SigningMethodES256, all)
	unsigned.Header["kid"] = kid
	o.mu.Lock()
	key := o.keys[kid]
	o.mu.Unlock()
	signed, err := unsigned.SignedString(key)
	if err != nil {
		o.t.Fatal(err)
	}
	return signed
}

type holder struct {
	ID, Account, Role string
	ExternalID        *string
	ContactVerified   *bool
}

// holder returns the user of a token, nil with the code of the refusal.
func (o *otherShop) holder(token string) (*holder, string) {
	o.t.Helper()
	var data struct{ Viewer *holder }
	out := o.site.ask(token, `{ viewer { id account role externalId contactVerified } }`, nil)
	if len(out.Data) > 0 {
		out.into(o.t, &data)
	}
	return data.Viewer, out.code()
}

func TestACustomerOfAnotherShopBuysWithItsToken(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	token := o.token("k1", nil)
	first, code := o.holder(token)
	if first == nil || first.Account != "ann@example.com" || first.Role != "CUSTOMER" || *first.ExternalID != "customer-7" || !*first.ContactVerified {
		t.Fatalf("the user is %+v %s", first, code)
	}
	o.site.buysOne(token, o.site.seed(seed.Input{Users: 1, Stock: 1, PermitRatio: 10}))
	if again, _ := o.holder(o.token("k1", jwt.MapClaims{"email": "new@example.com", "jti": "2"})); again == nil || again.ID != first.ID {
		t.Errorf("the next token is of %+v", again)
	}
	if other, _ := o.holder(o.token("k1", jwt.MapClaims{"sub": "customer-8", "email": "ann@example.com"})); other == nil || other.ID == first.ID || other.Account == "ann@example.com" {
		t.Errorf("another customer with the same address is %+v", other)
	}
}

func TestTokensOfOthersAreRefusedUnlessTheyAreForThisShop(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	past := time.Now().Add(-time.Hour).Unix()
	for name, claims := range map[string]jwt.MapClaims{
		"another audience": {"aud": "other"}, "no audience": {"aud": nil}, "expired": {"exp": past}, "no expiry": {"exp": nil},
		"no time of issue": {"iat": nil}, "issued in the future": {"iat": time.Now().Add(time.Hour).Unix()}, "no customer": {"sub": nil},
		"a customer with spaces": {"sub": "a b"}, "an unknown issuer": {"iss": "https://evil.example"},
	} {
		if u, code := o.holder(o.token("k1", claims)); u != nil || code != "UNAUTHENTICATED" {
			t.Errorf("%s: %+v %s", name, u, code)
		}
	}
	forged := newOtherShop(t, "")
	if u, code := o.holder(forged.token("k1", nil)); u != nil || code != "UNAUTHENTICATED" {
		t.Errorf("signed with another key: %+v %s", u, code)
	}
	public, err := json.Marshal(o.keys["k1"].PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	symmetric := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://shop.example.com", "aud": "seckill", "sub": "customer-7", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	symmetric.Header["kid"] = "k1"
	signed, err := symmetric.SignedString(public)
	if err != nil {
		t.Fatal(err)
	}
	if u, code := o.holder(signed); u != nil || code != "UNAUTHENTICATED" {
		t.Errorf("signed with the public key: %+v %s", u, code)
	}
}

// Ids that are equal as floats belong to two customers.
func TestLongNumbersOfCustomersAreNotRounded(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	numbered := func(n int64) *holder {
		t.Helper()
		u, code := o.holder(o.token("k1", jwt.MapClaims{"sub": n, "email": nil}))
		if u == nil {
			t.Fatalf("customer %d: %s", n, code)
		}
		return u
	}
	first, second := numbered(9007199254740992), numbered(9007199254740993)
	if first.ID == second.ID || numbered(9007199254740993).ID != second.ID {
		t.Errorf("%+v and %+v", first, second)
	}
	if u, code := o.holder(o.token("k1", jwt.MapClaims{"sub": 1.5, "email": nil})); u != nil || code != "UNAUTHENTICATED" {
		t.Errorf("a fraction: %+v %s", u, code)
	}
}

// A new key works at its first token, and unknown key ids cost one request in ten seconds.
func TestKeysOfAnIssuerRotate(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	if u, code := o.holder(o.token("k1", nil)); u == nil {
		t.Fatalf("refused: %s", code)
	}
	o.key("k2")
	if u, code := o.holder(o.token("k2", jwt.MapClaims{"sub": "customer-9", "email": nil})); u == nil {
		t.Fatalf("the new key is refused: %s", code)
	}
	o.mu.Lock()
	before := o.reads
	o.mu.Unlock()
	o.key("forged")
	began := time.Now()
	for i := range 20 {
		token := o.token("forged", jwt.MapClaims{"sub": fmt.Sprint(i)})
		o.mu.Lock()
		delete(o.keys, "forged")
		o.mu.Unlock()
		if u, _ := o.holder(token); u != nil {
			t.Fatalf("an unknown key is accepted: %+v", u)
		}
		o.key("forged")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if most := 2 + int(time.Since(began)/(10*time.Second)); o.reads-before > most {
		t.Errorf("20 unknown key ids cost %d requests", o.reads-before)
	}
}

func TestTheUserOfATokenIsBlockedWithinASecond(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	admin := o.site.staff("carla@example.com", "ADMIN")
	users := 0
	testenv.Promptly(t, time.Second, func() time.Duration {
		users++
		claims := jwt.MapClaims{"sub": fmt.Sprint("blocked-", users), "email": fmt.Sprintf("blocked%d@example.com", users)}
		token := o.token("k1", claims)
		u, code := o.holder(token)
		if u == nil {
			t.Fatalf("refused: %s", code)
		}
		k := o.site.dial(token)
		if p := o.site.mutate(admin, "disableUser", "user { disabled }", map[string]any{"userId": u.ID, "note": "resells"}); p.why() != "" {
			t.Fatal(p.why())
		}
		blocked := time.Now()
		var err error
		for err == nil {
			var f frame
			err = k.next(&f)
		}
		took := time.Since(blocked)
		if websocket.CloseStatus(err) != 4403 {
			t.Errorf("the socket ended with %v", err)
		}
		if _, code := o.holder(token); code != "UNAUTHENTICATED" {
			t.Errorf("the token of a disabled user: %s", code)
		}
		claims["jti"] = "2"
		if _, code := o.holder(o.token("k1", claims)); code != "UNAUTHENTICATED" {
			t.Errorf("a new token of a disabled user: %s", code)
		}
		return took
	})
}

// Ending the sessions of a user ends the tokens that were issued before, and no later ones.
func TestASignOutEndsTheTokensOfAnIssuerThatWereIssuedBefore(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, "")
	before := o.token("k1", jwt.MapClaims{"iat": time.Now().Add(-time.Minute).Unix()})
	unseen := o.token("k1", jwt.MapClaims{"iat": time.Now().Add(-time.Minute).Unix(), "jti": "2"})
	u, _ := o.holder(before)
	if u == nil {
		t.Fatal("refused")
	}
	o.site.ask(before, `mutation { logout(input: {}) { userErrors { code } } }`, nil)
	for name, token := range map[string]string{"used": before, "unseen": unseen} {
		if _, code := o.holder(token); code != "UNAUTHENTICATED" {
			t.Errorf("a token from before that was %s: %s", name, code)
		}
	}
	after := o.token("k1", jwt.MapClaims{"iat": time.Now().Add(4 * time.Second).Unix(), "jti": "3"}) // within the leeway of clocks
	if again, code := o.holder(after); again == nil || again.ID != u.ID {
		t.Errorf("a later token: %+v %s", again, code)
	}
	if _, code := o.holder(unseen); code != "UNAUTHENTICATED" {
		t.Errorf("a token from before, after a later one: %s", code)
	}
}

// A token makes staff only what its mapped claim and the account allow.
func TestATokenGrantsAMappedRoleThatTheAccountHas(t *testing.T) {
	t.Parallel()
	o := newOtherShop(t, `, "roleClaim": "groups", "roles": {"ops": "OPERATOR"}`)
	role := func(claims jwt.MapClaims) string {
		var data struct{ Sales struct{ Edges []any } }
		out := o.site.ask(o.token("k1", claims), `{ orders(first: 1) { edges { cursor } } }`, nil)
		if len(out.Data) > 0 {
			out.into(t, &data)
		}
		return out.code()
	}
	u, _ := o.holder(o.token("k1", nil))
	if u == nil {
		t.Fatal("refused")
	}
	if code := role(jwt.MapClaims{"groups": []string{"ops"}}); code != "FORBIDDEN" {
		t.Errorf("the claim alone: %q", code)
	}
	admin := o.site.staff("carla@example.com", "ADMIN")
	if p := o.site.mutate(admin, "setUserRole", "user { role }", map[string]any{"userId": u.ID, "role": "OPERATOR"}); p.why() != "" {
		t.Fatal(p.why())
	}
	later := time.Now().Add(4 * time.Second).Unix()
	if code := role(jwt.MapClaims{"iat": later}); code != "FORBIDDEN" {
		t.Errorf("the account alone: %q", code)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return role(jwt.MapClaims{"iat": later, "groups": []string{"ops"}}) == "" }, "claim and account together grant the role")
}
