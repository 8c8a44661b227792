package account

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"seckill/internal/platform/fault"
)

// everywhere are the names of an installation without a country.
var everywhere Names

func TestAccountsAreNormalised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a@b.co":                                 "a@b.co",
		" A.B+Tag@Example.Com ":                  "a.b+tag@example.com",
		"ｕｓｅｒ@example.com":                       "user@example.com",
		"user@sub.xn--fiqs8s":                    "user@sub.xn--fiqs8s",
		"+8613800138000":                         "+8613800138000",
		"+86 138 0013 8000":                      "+8613800138000",
		"+1 (202) 555-0123":                      "+12025550123",
		"+44 20 7946 0958":                       "+442079460958",
		strings.Repeat("a", 64) + "@example.com": strings.Repeat("a", 64) + "@example.com",
	} {
		if got, ok := everywhere.Normalise(text); !ok || got != want {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "a", "a@", "@b.co", "a@b", "a b@c.de", "a@b..co", "a@-b.co", "a@b.co\n.x", "a@b@c.de", "a\x00@b.co", "<a@b.co>", "a@b.c",
		"13800138000", "+", "+1", "+999999999999", "+86138001380001234567", "+86abc0013800", "tel:+8613800138000",
		strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b.", 200) + "co", "+1 800 FLOWERS",
	} {
		if got, ok := everywhere.Normalise(text); ok {
			t.Errorf("%q was taken as %q", text, got)
		}
	}
}

func TestPhoneNumbersWithoutCountryCodeAreOfTheInstallationsCountry(t *testing.T) {
	t.Parallel()
	in := Names{Country: "CN"}
	for text, want := range map[string]string{
		"13800138000": "+8613800138000", "138 0013 8000": "+8613800138000", "+1 202-555-0123": "+12025550123", "a@b.co": "a@b.co",
	} {
		if got, ok := in.Normalise(text); !ok || got != want {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
		if got := in.lookup(text); got != want {
			t.Errorf("sign-in with %q looks up %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "a", "12", "13800138000123456", "1380013800x", "@", "a@b"} {
		if got, ok := in.Normalise(text); ok {
			t.Errorf("%q was taken as %q", text, got)
		}
	}
}

func FuzzNormaliseAccountIsStable(f *testing.F) {
	f.Add("a@b.co")
	f.Add("+86 138 0013 8000")
	f.Fuzz(func(t *testing.T, text string) {
		once, ok := everywhere.Normalise(text)
		if !ok {
			return
		}
		if twice, ok := everywhere.Normalise(once); !ok || twice != once {
			t.Errorf("%q becomes %q, then %q", text, once, twice)
		}
	})
}

func TestNewUsersAreChecked(t *testing.T) {
	t.Parallel()
	good := NewUser{Account: "a@b.co", Password: goodPassword, DisplayName: "  李  雷 "}
	if clean, refusal := everywhere.clean(good); refusal != nil || clean.DisplayName != "李 雷" {
		t.Errorf("%+v, %#v", clean, refusal)
	}
	for _, test := range []struct {
		field  string
		change func(*NewUser)
	}{
		{"account", func(n *NewUser) { n.Account = "unknown" }},
		{"password", func(n *NewUser) { n.Password = "123456789" }},
		{"password", func(n *NewUser) { n.Password = strings.Repeat("长", maxPassword+1) }},
		{"password", func(n *NewUser) { n.Account, n.Password = "someone@b.co", "SomeOne@b.co" }},
		{"displayName", func(n *NewUser) { n.DisplayName = " \t " }},
		{"displayName", func(n *NewUser) { n.DisplayName = strings.Repeat("长", maxName+1) }},
		{"displayName", func(n *NewUser) { n.DisplayName = "a\u202eb" }},
		{"displayName", func(n *NewUser) { n.DisplayName = "a\x00b" }},
	} {
		bad := good
		test.change(&bad)
		_, refusal := everywhere.clean(bad)
		if field, ok := errors.AsType[fault.BadField](refusal); !ok || !slices.Equal(field.At, []string{test.field}) || field.Rule == (fault.Rule{}) {
			t.Errorf("%+v: %#v, want %s refused", bad, refusal, test.field)
		}
	}
	if _, refusal := everywhere.clean(NewUser{Account: "a@b.co", Password: strings.Repeat("长", maxPassword-4) + "短宽窄高", DisplayName: "x"}); refusal != nil {
		t.Errorf("the longest password: %#v", refusal)
	}
}
