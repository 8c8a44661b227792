package config

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"seckill/internal/platform/typed"
)

// Push are the settings of notices to browsers, by Web Push.
type Push struct {
	PushPrivateKey Secret `name:"push-private-key" group:"mail" placeholder:"KEY" help:"VAPID key that browsers subscribe with, from seckill push-key. Without it, no notices are sent to browsers. With another key, browsers have to subscribe again."`
	PushSubject    string `name:"push-subject" group:"mail" placeholder:"ADDRESS" help:"Where push services reach the operator: mailto:ops@example.com or https://example.com/contact."`
}

// NewPushKey returns a new value of PushPrivateKey.
func NewPushKey() (Secret, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return Secret(base64.RawURLEncoding.EncodeToString(key.Bytes())), nil
}

// PushPublicKey returns the public key that browsers subscribe with, as base64url of the
// uncompressed point.
func PushPublicKey(private Secret) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(private.Reveal())
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	key, err := ecdh.P256().NewPrivateKey(raw)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}

func (p *Problems) push(c *Config) {
	if (c.PushPrivateKey == "") != (c.PushSubject == "") {
		p.add("push-subject", "and SECKILL_PUSH_PRIVATE_KEY go together: give both or neither")
		return
	}
	if c.PushPrivateKey == "" {
		return
	}
	if _, err := PushPublicKey(c.PushPrivateKey); err != nil {
		p.add("push-private-key", "is no key: write what `seckill push-key` prints")
	}
	if !isContact(c.PushSubject) {
		p.add("push-subject", "is no contact: write mailto:ops@example.com or https://example.com/contact")
	}
}

func isContact(text string) bool {
	if address, ok := strings.CutPrefix(text, "mailto:"); ok {
		_, ok = typed.Mailbox(address)
		return ok
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != ""
}
