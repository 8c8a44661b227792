package auth_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

func TestMintedTokensAreReadAsTheLibraryReadsThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, role := range []auth.Role{auth.Customer, auth.Operator, auth.Admin} {
		token, in := w.mint(t, role)
		want, err := w.tokens.Parse(token)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.tokens.ParseMinted(token)); diff != "" || want.UserID != in.User {
			t.Error(diff)
		}
	}
}

// What the short way accepts, the library accepts with the same content.
func TestTheShortWayAcceptsNothingElse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	header := `{"alg":"HS256","kid":"` + current.ID + `","typ":"at+jwt"}`
	user, session, now := id.New[uuid.UUID]().String(), id.New[uuid.UUID]().String(), noon.Unix()
	body := fmt.Sprintf(`{"iss":"seckill","sub":"%s","aud":["seckill-api"],"exp":%d,"iat":%d,"sid":"%s","role":"CUSTOMER"}`, user, now+60, now, session)
	good := raw(header, body, current.Secret)
	if w.tokens.ParseMinted(good) == nil {
		t.Fatal("a token as Mint writes it takes the long way")
	}
	exp, iat := fmt.Sprintf(`"exp":%d`, now+60), fmt.Sprintf(`"iat":%d`, now)
	tokens := []string{
		raw(header, body, []byte(strings.Repeat("k", 32))), raw(header+" ", body, current.Secret),
		raw(strings.Replace(header, "HS256", "none", 1), body, current.Secret), raw(strings.Replace(header, current.ID, "other", 1), body, current.Secret),
		good[:len(good)-1], good + "A", good + ".", good + "=", strings.Replace(good, ".", "..", 1), "", ".", "..",
	}
	for _, change := range [][2]string{
		{`"seckill"`, `"other"`}, {"seckill-api", "other"}, {exp, fmt.Sprintf(`"exp":%d`, now-5)}, {exp, fmt.Sprintf(`"exp":%d`, now-4)}, {exp, `"exp":9e9`},
		{exp, `"exp":-1`}, {exp, `"exp":""`}, {exp, `"exp":null`}, {exp, `"exp":` + strings.Repeat("9", 30)}, {exp, exp + ".5"}, {exp, strings.Replace(exp, ":", ":0", 1)},
		{exp + ",", ""}, {iat, fmt.Sprintf(`"iat":%d`, now+6)}, {iat, fmt.Sprintf(`"iat":%d`, now+5)}, {iat + ",", ""},
		{user, uuid.Nil.String()}, {user, "x"}, {user, "urn:uuid:" + user}, {session, uuid.Nil.String()}, {session, strings.ReplaceAll(session, "-", "")},
		{"CUSTOMER", "KING"}, {"CUSTOMER", ""}, {`"role":"CUSTOMER"`, `"role":"CUSTOMER","role":"ADMIN"`}, {`"}`, `","x":1}`}, {`"}`, `"} `}, {`"}`, `"}}`}, {`"}`, `"`},
		{`"sub"`, `"Sub"`}, {`"sid"`, `"s\u0069d"`}, {`{"iss"`, `{ "iss"`}, {`"sid":"`, `"nbf":` + fmt.Sprint(now+600) + `,"sid":"`},
	} {
		tokens = append(tokens, raw(header, strings.Replace(body, change[0], change[1], 1), current.Secret))
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range good {
		other := strings.IndexByte(alphabet, good[i]) ^ 1 // also the bits after the last byte of a segment
		if other >= 0 && good[i] != '.' {
			tokens = append(tokens, good[:i]+alphabet[other:other+1]+good[i+1:])
		}
	}
	for _, token := range tokens {
		if got := w.tokens.ParseMinted(token); got != nil {
			want, err := w.tokens.Parse(token)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				_, text, _ := strings.Cut(token, ".")
				text, _, _ = strings.Cut(text, ".")
				claims, _ := base64.RawURLEncoding.DecodeString(text)
				t.Errorf("accepted: %s %v %s", claims, err, diff)
			}
		}
	}
	w.clock.Advance(time.Minute + 5*time.Second)
	if w.tokens.ParseMinted(good) != nil {
		t.Error("expired")
	}
}
