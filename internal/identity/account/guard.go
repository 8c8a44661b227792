package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/ratelimit"
)

// Limits on guessing one account's password: 5 attempts at once and about 9 more in the
// next ten minutes, with a captcha from the fourth on. Unknown devices share one counter
// per account, whatever their addresses. A device that signed in to the account before
// has its own counter, so that other clients cannot lock it out.
const (
	captchaFrom = 3 // failures
	delayFrom   = 5 // failures
	firstDelay  = time.Second
	longestWait = 15 * time.Minute
	guardMemory = time.Hour // after the last attempt; longer than longestWait
	// networkMemory is how long a network is remembered after a sign-in from it.
	networkMemory = 30 * 24 * time.Hour
)

//go:embed lua/guard.lua
var guardSource string

var guardScript = redis.NewScript(guardSource)

// guard limits guessing per account and device, and remembers the networks of sign-ins.
// Accounts that do not exist are limited in the same way.
type guard struct {
	client   redis.UniversalClient
	prefix   string
	captchas *captcha.Service
}

// guarded is an attempt to sign in.
type guarded struct {
	account  string
	device   string // "" = unknown
	from     netip.Addr
	answer   captcha.Answer
	answered bool // the captcha answer was correct, and is consumed
}

// admit accepts an attempt and counts it as failed; succeeded reverts the count. It
// requires a captcha only when necessary, and consumes an answer only then.
func (g *guard) admit(ctx context.Context, try guarded) error {
	verdict, wait, err := g.evaluate(ctx, try, try.answered)
	if err != nil {
		return err
	}
	if verdict == "captcha" {
		err := g.captchas.Check(ctx, captcha.Scope{Purpose: captcha.Login, From: try.from}, try.answer)
		if err != nil {
			return err
		}
		if verdict, wait, err = g.evaluate(ctx, try, true); err != nil {
			return err
		}
	}
	switch verdict {
	case "go":
		return nil
	case "wait":
		return fault.Throttled{RetryAfter: wait}
	}
	return fmt.Errorf("guard of an account replied %q", verdict)
}

// succeeded clears the counted failures after a correct password and remembers the
// network.
func (g *guard) succeeded(ctx context.Context, try guarded) error {
	_, err := g.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, g.key(try))
		if network := ratelimit.Network(try.from); network.IsValid() {
			pipe.Set(ctx, g.networkKey(network), 1, networkMemory)
		}
		return nil
	})
	return err
}

// knownNetwork reports whether a user signed in from the network recently. It returns
// false if Redis cannot be read.
func (g *guard) knownNetwork(ctx context.Context, network netip.Prefix) bool {
	if !network.IsValid() {
		return false
	}
	n, err := g.client.Exists(ctx, g.networkKey(network)).Result()
	return err == nil && n == 1
}

func (g *guard) evaluate(ctx context.Context, try guarded, answered bool) (verdict string, wait time.Duration,
	err error) {
	flag := "0"
	if answered {
		flag = "1"
	}
	reply, err := guardScript.Run(ctx, g.client, []string{g.key(try)}, flag, captchaFrom, delayFrom,
		firstDelay.Milliseconds(), longestWait.Milliseconds(), guardMemory.Milliseconds()).Slice()
	if err != nil {
		return "", 0, fault.Wrap(fault.Unavailable, "Sign-in is not available now. Please try again shortly.",
			fmt.Errorf("guard of an account: %w", err))
	}
	if len(reply) != 2 {
		return "", 0, fmt.Errorf("guard of an account replied %d values", len(reply))
	}
	verdict, _ = reply[0].(string)
	ms, _ := reply[1].(int64)
	return verdict, time.Duration(ms) * time.Millisecond, nil
}

// key returns a key with a hash of the account name, so that keys hold no personal data.
func (g *guard) key(try guarded) string {
	sum := sha256.Sum256([]byte(try.account))
	key := g.prefix + "guard:" + hex.EncodeToString(sum[:16])
	if try.device != "" {
		key += ":" + try.device
	}
	return key
}

func (g *guard) networkKey(network netip.Prefix) string {
	return g.prefix + "network:" + network.String()
}

// A device token proves that a device signed in to an account before (OWASP, "Slow Down
// Online Guessing Attacks with Device Cookies"). It only gives the device its own failure
// counter and access to the whole hash queue, so that failures of other clients do not
// lock the device out. It is base64url(nonce | issued | tag); the tag binds it to the
// account.
const (
	deviceNonceBytes = 16
	deviceBytes      = deviceNonceBytes + 8 + tagBytes
	// DeviceLife is how long a device token stays valid after the last sign-in.
	DeviceLife = 180 * 24 * time.Hour
)

// devices issues and verifies device tokens.
type devices struct {
	keys [][]byte // the first signs, all verify
}

func newDevices(keys auth.Keys) devices { return devices{keys: keys.Derive("device tokens")} }

// DeviceID returns the id that a device token has, "" for a text that is none. It proves nothing:
// the token may be of any account, expired or invented.
func DeviceID(token string) string {
	if raw := rawToken(token); raw != nil {
		return hex.EncodeToString(raw[:deviceNonceBytes])
	}
	return ""
}

// rawToken decodes a device token; nil for a text that is none.
func rawToken(token string) []byte {
	if base64.RawURLEncoding.DecodedLen(len(token)) != deviceBytes {
		return nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != deviceBytes {
		return nil
	}
	return raw
}

// issue returns a token for the account. A browser keeps the id of the token that it sent, of
// whatever account, so that operators see which accounts share a browser; another one gets a random
// id.
func (d devices) issue(sent, account string, now time.Time) (string, error) {
	raw := make([]byte, deviceNonceBytes, deviceBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("device token: %w", err)
	}
	if known := rawToken(sent); known != nil {
		copy(raw, known[:deviceNonceBytes])
	}
	raw = binary.BigEndian.AppendUint64(raw, uint64(now.Unix())) // the time is after 1970
	raw = append(raw, d.tag(d.keys[0], raw, account)...)
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// open returns the id of the device; "" if the token is expired, invalid, or for another
// account.
func (d devices) open(token, account string, now time.Time) string {
	raw := rawToken(token)
	if raw == nil {
		return ""
	}
	body, sent := raw[:deviceBytes-tagBytes], raw[deviceBytes-tagBytes:]
	issued := time.Unix(int64(binary.BigEndian.Uint64(body[deviceNonceBytes:])), 0) // checked by the tag
	for _, key := range d.keys {
		if hmac.Equal(sent, d.tag(key, body, account)) && now.Before(issued.Add(DeviceLife)) {
			return hex.EncodeToString(body[:deviceNonceBytes])
		}
	}
	return ""
}

func (devices) tag(key, body []byte, account string) []byte {
	return mac(key, "device", body, []byte(account))[:tagBytes]
}
