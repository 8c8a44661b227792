package auth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// raw signs any two texts with HMAC-SHA256.
func raw(header, body string, key []byte) string {
	signed := b64(header) + "." + b64(body)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// forge signs valid claims with parts of the header and claims changed; a nil value
// removes one.
func forge(t *testing.T, method jwt.SigningMethod, key any, header, body map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"iss": "seckill", "aud": "seckill-api", "sub": id.New[uuid.UUID]().String(), "sid": id.New[uuid.UUID]().String(),
		"role": "CUSTOMER", "iat": noon.Unix(), "exp": noon.Add(time.Minute).Unix(),
	})
	token.Header["typ"], token.Header["kid"] = "at+jwt", current.ID
	apply := func(to, from map[string]any) {
		maps.Copy(to, from)
		maps.DeleteFunc(to, func(_ string, v any) bool { return v == nil })
	}
	apply(token.Header, header)
	apply(token.Claims.(jwt.MapClaims), body)
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	good := func() string { return forge(t, jwt.SigningMethodHS256, current.Secret, nil, nil) }
	if _, err := w.tokens.Verify(t.Context(), good()); err != nil {
		t.Fatalf("the pattern of all forgeries must be good: %v", err)
	}
	header := func(h map[string]any) string { return forge(t, jwt.SigningMethodHS256, current.Secret, h, nil) }
	body := func(c map[string]any) string { return forge(t, jwt.SigningMethodHS256, current.Secret, nil, c) }
	signedBy := func(key []byte) string { return forge(t, jwt.SigningMethodHS256, key, nil, nil) }
	parts := strings.Split(good(), ".")
	goodHeader := fmt.Sprintf(`{"alg":"HS256","typ":"at+jwt","kid":%q}`, current.ID)
	goodBody := func(extra string) string {
		return fmt.Sprintf(`{"iss":"seckill","aud":"seckill-api","sub":%q,"sid":%q,"role":"CUSTOMER","iat":%d,"exp":%d%s}`,
			id.New[uuid.UUID](), id.New[uuid.UUID](), noon.Unix(), noon.Unix()+60, extra)
	}
	admin := strings.Replace(goodBody(""), "CUSTOMER", "ADMIN", 1)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]string{
		"empty":                         "",
		"no token at all":               "hello",
		"two segments":                  parts[0] + "." + parts[1],
		"four segments":                 good() + ".x",
		"thousand dots":                 strings.Repeat(".", 1000),
		"longer than any of ours":       body(map[string]any{"pad": strings.Repeat("x", 2000)}),
		"alg none, unsigned":            b64(strings.Replace(goodHeader, "HS256", "none", 1)) + "." + b64(admin) + ".",
		"alg None, signed":              raw(strings.Replace(goodHeader, "HS256", "None", 1), goodBody(""), current.Secret),
		"alg none by the library":       forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"alg missing":                   raw(`{"typ":"at+jwt","kid":"k2"}`, goodBody(""), current.Secret),
		"alg hs256 in small letters":    raw(strings.Replace(goodHeader, "HS256", "hs256", 1), goodBody(""), current.Secret),
		"HS384 with the right key":      forge(t, jwt.SigningMethodHS384, current.Secret, nil, nil),
		"HS512 with the right key":      forge(t, jwt.SigningMethodHS512, current.Secret, nil, nil),
		"RS256":                         forge(t, jwt.SigningMethodRS256, rsaKey, nil, nil),
		"ES256":                         forge(t, jwt.SigningMethodES256, ecKey, nil, nil),
		"EdDSA":                         forge(t, jwt.SigningMethodEdDSA, edKey, nil, nil),
		"other key":                     signedBy([]byte(strings.Repeat("attacker", 8))),
		"empty key":                     raw(goodHeader, goodBody(""), nil),
		"unknown key id":                header(map[string]any{"kid": "k9"}),
		"key id is a path":              raw(`{"alg":"HS256","typ":"at+jwt","kid":"../../../dev/null"}`, goodBody(""), nil),
		"key id is an injection":        header(map[string]any{"kid": "k2' UNION SELECT 'x"}),
		"key id is no text":             header(map[string]any{"kid": 2}),
		"no key id":                     header(map[string]any{"kid": nil}),
		"key id of the other key":       header(map[string]any{"kid": former.ID}),
		"typ JWT":                       header(map[string]any{"typ": "JWT"}),
		"typ of another kind":           header(map[string]any{"typ": "rt+jwt"}),
		"no typ":                        header(map[string]any{"typ": nil}),
		"critical extension":            header(map[string]any{"crit": []string{"b64"}, "b64": false}),
		"brings its own key":            header(map[string]any{"jwk": map[string]any{"kty": "oct", "k": "AAAA"}}),
		"points at its own key":         header(map[string]any{"jku": "https://evil.example/keys"}),
		"no exp":                        body(map[string]any{"exp": nil}),
		"lapsed":                        body(map[string]any{"iat": noon.Unix() - 700, "exp": noon.Unix() - 60}),
		"exp is huge":                   raw(goodHeader, strings.Replace(goodBody(""), fmt.Sprint(noon.Unix()+60), "1e400", 1), current.Secret),
		"exp is zero":                   body(map[string]any{"exp": 0}),
		"not yet good":                  body(map[string]any{"nbf": noon.Unix() + 300}),
		"issued in the future":          body(map[string]any{"iat": noon.Unix() + 300, "exp": noon.Unix() + 600}),
		"no iat":                        body(map[string]any{"iat": nil}),
		"other issuer":                  body(map[string]any{"iss": "evil"}),
		"no issuer":                     body(map[string]any{"iss": nil}),
		"other audience":                body(map[string]any{"aud": "seckill-admin"}),
		"no audience":                   body(map[string]any{"aud": nil}),
		"empty audiences":               body(map[string]any{"aud": []string{}}),
		"no user's":                     body(map[string]any{"sub": nil}),
		"subject is no id":              body(map[string]any{"sub": "admin"}),
		"subject is the nil id":         body(map[string]any{"sub": "00000000-0000-0000-0000-000000000000"}),
		"no session":                    body(map[string]any{"sid": nil}),
		"session is no id":              body(map[string]any{"sid": "1"}),
		"unknown role":                  body(map[string]any{"role": "ROOT"}),
		"no role":                       body(map[string]any{"role": nil}),
		"role raised, old signature":    parts[0] + "." + b64(admin) + "." + parts[2],
		"signature of another token":    parts[0] + "." + parts[1] + "." + strings.Split(good(), ".")[2],
		"signature stripped":            parts[0] + "." + parts[1] + ".",
		"signature cut":                 good()[:len(good())-4],
		"padding":                       parts[0] + "." + parts[1] + "." + parts[2] + "=",
		"loose base64":                  parts[0] + "." + parts[1] + "." + looseEnd(parts[2]),
		"space behind":                  good() + " ",
		"claims are a list":             raw(goodHeader, `["seckill"]`, current.Secret),
		"claims are cut":                raw(goodHeader, goodBody("")[:40], current.Secret),
		"subject twice":                 raw(goodHeader, goodBody(`,"sub":"`+id.New[uuid.UUID]().String()+`"`), current.Secret),
		"role twice, once in capitals":  raw(goodHeader, goodBody(`,"ROLE":"ADMIN"`), current.Secret),
		"role twice, once escaped":      raw(goodHeader, goodBody(`,"rol\u0065":"ADMIN"`), current.Secret),
		"more members than any of ours": raw(goodHeader, goodBody(`,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10`), current.Secret),
		"alg twice":                     raw(`{"alg":"none","alg":"HS256","typ":"at+jwt","kid":"k2"}`, goodBody(""), current.Secret),
	}
	if len(forged) < 30 {
		t.Fatalf("only %d kinds of forgery", len(forged))
	}
	for name, token := range forged {
		for range 2 { // a refusal must not be cached as a success
			p, err := w.tokens.Verify(t.Context(), token)
			wantUnauthenticated(t, name, p, err)
		}
	}
}

// looseEnd changes the unused last bits of a base64 text, which lenient decoders ignore.
func looseEnd(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, s[len(s)-1])
	return s[:len(s)-1] + string(alphabet[last^1])
}

func FuzzVerifyNeverAcceptsWhatWasNotMinted(f *testing.F) {
	head := fmt.Sprintf(`{"alg":"HS256","typ":"at+jwt","kid":%q}`, current.ID)
	body := fmt.Sprintf(`{"iss":"seckill","aud":"seckill-api","sub":"01937d3a-5c00-7000-8000-000000000001",`+
		`"sid":"01937d3a-5c00-7000-8000-000000000002","role":"CUSTOMER","iat":%d,"exp":%d}`, noon.Unix(), noon.Unix()+60)
	good := raw(head, body, current.Secret)
	for _, seed := range []string{
		"a.b.c", good, looseEnd(good), raw(head, body, nil), raw(head, body, former.Secret),
		raw(`{"alg":"none","typ":"at+jwt"}`, body, nil), raw(`{"alg":"HS256","typ":"at+jwt","kid":"k2"}`, `{}`, nil),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		w := setup(t)
		if p, err := w.tokens.Verify(t.Context(), token); (err == nil) != (token == good) {
			t.Fatalf("%q: %+v, %v", token, p, err)
		}
	})
}
