package config

import (
	"strings"
	"testing"
)

func TestNoticesToBrowsersNeedAKeyAndAContact(t *testing.T) {
	t.Parallel()
	key, err := NewPushKey()
	if err != nil {
		t.Fatal(err)
	}
	if public, err := PushPublicKey(key); err != nil || len(public) != 87 {
		t.Errorf("public key %q, %v", public, err)
	}
	for _, c := range []struct{ key, subject, problem string }{
		{"", "", ""},
		{key.Reveal(), "mailto:ops@example.com", ""},
		{key.Reveal(), "https://example.com/contact", ""},
		{key.Reveal(), "", "give both or neither"},
		{"", "mailto:ops@example.com", "give both or neither"},
		{key.Reveal(), "ops@example.com", "is no contact"},
		{key.Reveal(), "mailto:Ops <ops@example.com>", "is no contact"},
		{key.Reveal()[1:], "mailto:ops@example.com", "is no key"},
	} {
		parsed, _, err := Parse(nil, env("SECKILL_PUSH_PRIVATE_KEY", c.key, "SECKILL_PUSH_SUBJECT", c.subject))
		if err != nil {
			t.Fatal(err)
		}
		err = parsed.Validate()
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && strings.Contains(err.Error(), key.Reveal()[1:]) {
			t.Errorf("the error names the key: %v", err)
		}
	}
}
