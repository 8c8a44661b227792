package typed_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"seckill/internal/platform/typed"
)

func each(t *testing.T, form func(string) string, of map[string]string) {
	t.Helper()
	for text, want := range of {
		if got := form(text); got != want {
			t.Errorf("%+q: %+q, want %+q", text, got, want)
		}
	}
}

func TestALineKeepsWhatIsSeenAndHoldsItTogether(t *testing.T) {
	t.Parallel()
	each(t, typed.Line, map[string]string{
		" \u200b李\u00a0 雷\ufeff\t":      "李 雷",
		"\u202aJo\u202c\u2066 Li\u2069": "Jo Li",
		"می\u200cخواهم":                 "می\u200cخواهم", // joiners are part of words
		"👩\u200d💻 ❤\ufe0f":              "👩\u200d💻 ❤\ufe0f",
		"\u200fשלום (a)\u200e b\u200f":  "שלום (a)\u200e b",
		"e\u0301":                       "é",
		"ﬁ Ａ":                           "ﬁ Ａ", // a text keeps its characters
		"\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"a\U000e0041\U000e0042": "a",
		"\u3164\u2800":          "",
		"a\r\n b":               "a b",
		"a\u202eb":              "a\u202eb",
	})
	each(t, typed.Text, map[string]string{
		"\ufeff# Rules\r\n\r\n1. one\r2. two  \n": "# Rules\n\n1. one\n2. two",
		"a\u2029b": "a\n\nb",
	})
}

func TestIdentifiersAndCodesHaveOneForm(t *testing.T) {
	t.Parallel()
	each(t, typed.Identifier, map[string]string{
		"\u202aｆｏｏ＠ｅｘａｍｐｌｅ．ｃｏｍ\u202c": "foo@example.com",
		"\u00a0SKU\u200b-1\u2060 ":    "SKU-1",
	})
	each(t, typed.Plain, map[string]string{"２０–١٢−۳": "20-12-3"})
	each(t, typed.Code, map[string]string{
		" １２３ 456\u200b": "123456", "abcd–efgh—1": "ABCDEFGH1", "١٢٣٤٥٦": "123456", "123.456": "123456", "\u202d123456\u202c": "123456",
	})
}

func TestPhoneNumbersAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ text, country, want string }{
		{"(206) 555-0123", "US", "+12065550123"},
		{"206.555.0123", "US", "+12065550123"},
		{"206/555‑0123", "CA", "+12065550123"},
		{"030/1234567", "DE", "+49301234567"},
		{"0 30 – 12 34 56 7", "DE", "+49301234567"},
		{"\u202a+49 (0)30 1234567\u202c", "US", "+49301234567"},
		{"１３８ ００００ １１１１", "CN", "+8613800001111"},
		{"٠٥٠ ١٢٣ ٤٥٦٧", "SA", "+966501234567"},
		{"06\u00a012\u00a034\u00a056\u00a078", "FR", "+33612345678"},
		{"07911 123456", "GB", "+447911123456"},
		{"03-1234-5678", "JP", "+81312345678"},
		{"+86 138 0000 1111", "", "+8613800001111"},
	} {
		if got, ok := typed.Phone(one.text, one.country); !ok || got != one.want {
			t.Errorf("%q in %s: %q, %t; want %q", one.text, one.country, got, ok, one.want)
		}
		if got, ok := typed.Phone(one.want, one.country); !ok || got != one.want {
			t.Errorf("%q in %s is not stable: %q, %t", one.want, one.country, got, ok)
		}
	}
	for _, text := range []string{"", "call me", "555-0123", "2065550123x4", "+86138\u202e00138000", "1 800 FLOWERS"} {
		if got, ok := typed.Phone(text, "US"); ok {
			t.Errorf("%q became %q", text, got)
		}
	}
	for text, country := range map[string]string{
		"555-0123": "US", "010-12345678-80112": "CN", "010-12345678转802": "CN", "(206) 555-0123 x4": "US", "+1 206 555 0123 ext. 15": "US", "030/1234567 分机 12": "DE",
	} {
		if got, ok := typed.AnyPhone(" "+text, country); !ok || got != text {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}

func TestAnExtensionIsPartOfANumberThatPeopleDial(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x4", "206 x4", "206 555 0123 x", "206 555 0123 x1234567", "call 206 555 0123", "206 555 0123 x4 x5", "206 555 0123 y4"} {
		if got, ok := typed.AnyPhone(text, "US"); ok {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAMailboxIsOneThatTheSenderCanAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" A.B+Tag@Example.Com ":       "a.b+tag@example.com",
		"\u202aa@b.co\u202c":          "a@b.co",
		"a@münchen.example":           "a@xn--mnchen-3ya.example",
		"a@例子。中国":                     "a@xn--fsqu00a.xn--fiqs8s",
		"a@xn--fsqu00a.xn--fiqs8s":    "a@xn--fsqu00a.xn--fiqs8s",
		"用户@例子.中国":                    "用户@xn--fsqu00a.xn--fiqs8s",
		"JOSÉ@example.com":            "josé@example.com",
		"jose\u0301@example.com":      "josé@example.com",
		"o'neil/x=1@example.com":      "o'neil/x=1@example.com",
		"foo\u200b@exa\u00admple.com": "foo@example.com",
	} {
		if got, ok := typed.Mailbox(text); !ok || got != want {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"a..b@example.com", ".a@example.com", "a.@example.com", "a@b..co", "a@-b.co", "a@b", "@b.co", "a b@c.de", `"a b"@c.de`, "<a@b.co>", "a@b@c.de",
		"a@[127.0.0.1]", "a@127.0.0.1", "a@10.0.0.10", "a@example.123", "a@example.com.", `a".b@c.de`, "a@b.c\u200bo@d.ef", "a\u202e@example.com", "a👩@example.com", "a@👩.example", strings.Repeat("长", 22) + "@example.com", "a@" + strings.Repeat("b.", 200) + "co", "",
	} {
		if got, ok := typed.Mailbox(text); ok {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzFormsAreStable(f *testing.F) {
	for _, text := range []string{"a@b.co", "\u202aｆｏｏ\u202c", "e\u200b\u0301", "\U0001f3f4\U000e0067", "1\u00ad２", "\u1100\u200b\u1161", "ß。ｃo@ẞ。ｃo"} {
		f.Add(text)
	}
	mailbox := func(text string) string {
		address, _ := typed.Mailbox(text)
		return address
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		for name, form := range map[string]func(string) string{
			"line": typed.Line, "text": typed.Text, "identifier": typed.Identifier, "plain": typed.Plain, "code": typed.Code, "mailbox": mailbox,
		} {
			if once := form(text); form(once) != once || !norm.NFC.IsNormalString(once) {
				t.Errorf("%s of %+q: %+q, then %+q", name, text, once, form(once))
			}
		}
	})
}

func TestAQueryIsWhatThePastedTextNames(t *testing.T) {
	t.Parallel()
	each(t, func(text string) string { return typed.QueryOf(text).Key }, map[string]string{
		"#20261127-B4YJ7ED": "20261127-B4YJ7ED",
		" ＃２０２６１１２７–Ｂ４ＹＪ７ＥＤ ": "20261127-B4YJ7ED",
		"№ 20261127-b4yj7ed":                             "20261127-b4yj7ed",
		"订单号：20261127-B4YJ7ED":                           "20261127-B4YJ7ED",
		"Order #20261127-B4YJ7ED":                        "20261127-B4YJ7ED",
		"Order no. 20261127-B4YJ7ED":                     "20261127-B4YJ7ED",
		"Receipt 20261127-b4yj7ed":                       "20261127-b4yj7ed",
		"Re: Refund for order 20261127-B4YJ7ED.":         "20261127-B4YJ7ED",
		"订单20261127-B4YJ7ED的付款时间还剩 3 分钟":                 "20261127-B4YJ7ED",
		"Order 20261127-B4YJ7ED: pay by 27 November":     "20261127-B4YJ7ED",
		"(#20261127–B4YJ7ED)":                            "20261127-B4YJ7ED",
		"20261127-B4YJ7ED and 20261127-B4YJ7EE":          "20261127-B4YJ7ED and 20261127-B4YJ7EE",
		"Your order: ord_01m7wb09f5ez8agqk3pr5bvrg2,":    "ord_01m7wb09f5ez8agqk3pr5bvrg2",
		"https://shop.example/orders/ord_01kb/pay?x=1#y": "ord_01kb",
		"shop.example:8080/admin/orders/ord_01kb":        "ord_01kb",
		"https://dashboard.stripe.com/payments/pi_3NxAb": "pi_3NxAb",
		"https://shop.example/sales/spring-sale/":        "spring-sale",
		"https://shop.example":                           "https://shop.example",
		"mailto:Li.Lei@example.com?subject=a":            "Li.Lei@example.com",
		"Li Lei <li.lei@example.com>":                    "li.lei@example.com",
		"tel:+49-30-1234567":                             "+49-30-1234567",
		"030/1234567":                                    "030/1234567",
		"\u202d“ord_01KB”\u202c":                         "ord_01KB",
		"order tea":                                      "order tea",
		"#tag":                                           "tag",
	})
	each(t, typed.Digits, map[string]string{"(0206) 555-0123": "2065550123", "a1": "", "1@b": "", "-": ""})
}
