package person_test

import (
	"strings"
	"testing"

	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

var hasher = person.NewHasher([][]byte{[]byte(strings.Repeat("new", 11)), []byte(strings.Repeat("old", 11))})

func TestAMailboxHasOneForm(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"a.b.c+shop@gmail.com":       "abc@gmail.com",
		"ABC@googlemail.com":         "abc@gmail.com",
		"a.b+x@outlook.com":          "a.b@outlook.com",
		"joe+1@me.com":               "joe@icloud.com",
		"j.oe+1@proton.me":           "joe@proton.me",
		"joe@pm.me":                  "joe@proton.me",
		"shop@joe.fastmail.com":      "joe@fastmail.com",
		"joe+shop@fastmail.com":      "joe@fastmail.com",
		"joe-shop@yahoo.com":         "joe@yahoo.com",
		"joe-shop@example.com":       "joe-shop@example.com",
		"a.b+c+d@example.com":        "a.b@example.com",
		"+tag@example.com":           "+tag@example.com",
		"ｊｏｅ@example.com":            "joe@example.com",
		"joe@xn--mnchen-3ya.example": "joe@xn--mnchen-3ya.example",
		"+8613800138000":             "+8613800138000",
	} {
		if got := person.Mailbox(address); got != want {
			t.Errorf("%s is the mailbox %s, want %s", address, got, want)
		}
	}
}

func TestAPlaceHasOneKey(t *testing.T) {
	t.Parallel()
	sale := id.New[id.Sale]()
	key := func(country, postal, region, city, street string) person.Key {
		return hasher.Address(sale, person.Place{Country: country, Region: region, City: city, Street: street, PostalCode: postal})
	}
	for name, same := range map[string][2]person.Key{
		"case, spaces, punctuation": {key("US", "94103", "CA", "San Francisco", "1 Main Street, Apt. 4"), key("us", "94 103", "California", "SF", "1  MAIN ST apt #4")},
		"width":                     {key("CN", "200000", "上海", "上海", "人民路１号　２室"), key("CN", "２０００００", "", "上海市", "人民路1号2室")},
		"accents and words":         {key("DE", "10115", "", "Berlin", "Müllerstraße 5"), key("DE", "10115", "", "Berlin", "Mullerstr. 5")},
		"ZIP+4":                     {key("US", "94103-0001", "", "", "1 Main St"), key("US", "94103-9999", "", "", "1 Main St")},
		"postal codes cut short":    {key("NL", "1012 AB", "", "", "Damrak 1"), key("NL", "1012", "", "", "Damrak 1")},
		"words for a flat":          {key("US", "94103", "", "", "1 Main St # 4"), key("US", "94103", "", "", "1 Main Street, Suite 4")},
		"no postal code":            {key("CN", "", "上海", "浦东", "人民路1号"), key("CN", "", "上海 ", "浦东", "人民路 1号")},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: two keys of one place", name)
		}
	}
	for name, other := range map[string][2]person.Key{
		"house":            {key("US", "94103", "", "", "1 Main St"), key("US", "94103", "", "", "11 Main St")},
		"flat of a number": {key("DE", "10115", "", "", "Hauptstr. 1, Apt 2"), key("DE", "10115", "", "", "Hauptstr. 12")},
		"floor":            {key("US", "94103", "", "", "1 Main St Apt 4"), key("US", "94103", "", "", "1 Main St Floor 4")},
		"flat":             {key("CN", "200000", "", "", "人民路1号2室"), key("CN", "200000", "", "", "人民路1号3室")},
		"city":             {key("CN", "", "上海", "浦东", "人民路1号"), key("CN", "", "上海", "徐汇", "人民路1号")},
	} {
		if other[0] == other[1] {
			t.Errorf("%s: one key of two places", name)
		}
	}
}

func TestKeysOfSalesCannotBeJoined(t *testing.T) {
	t.Parallel()
	one, other := id.New[id.Sale](), id.New[id.Sale]()
	a := hasher.Contact(one, "joe+a@example.com", true)
	if a != hasher.Contact(one, "JOE@example.com", true) {
		t.Error("two keys of one mailbox")
	}
	if a == hasher.Contact(other, "joe@example.com", true) {
		t.Error("one key in two sales")
	}
	if a == hasher.Contact(one, "joe@example.com", false) {
		t.Error("an unverified contact uses up the limit of the verified one")
	}
	// During a rotation of the signing key, keys stay those of the older one.
	before := person.NewHasher([][]byte{[]byte(strings.Repeat("old", 11))})
	if a != before.Contact(one, "joe@example.com", true) {
		t.Error("another key after the signing key was changed")
	}
	keys := person.Keys{Contact: a, Address: hasher.Address(one, person.Place{Street: "x"})}
	former, unverified := hasher.Former(one, "joe@example.com", true), hasher.Former(one, "joe@example.com", false)
	for _, k := range []person.Keys{
		{}, keys, {Contact: keys.Contact}, {Address: keys.Address}, person.Keys{}.With(former), person.Keys{Address: keys.Address}.With(former, unverified, former),
		keys.With(hasher.Contact(one, "joe@example.com", false), keys.Contact),
	} {
		if got, err := person.Parse(k.String()); err != nil || got != k {
			t.Errorf("%q is read as %+v, %v", k, got, err)
		}
		if at, got, err := person.ParseTime(person.MarkTime(1_700_000_000_000, k)); err != nil || got != k || at != 1_700_000_000_000 {
			t.Errorf("time of %q: %d, %+v, %v", k, at, got, err)
		}
	}
	for _, bad := range []string{"x", string(keys.Contact) + "x", keys.String() + "," + string(keys.Address), string(keys.Address) + "," + string(keys.Contact), "c" + strings.Repeat("|", 16)} {
		if _, err := person.Parse(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
