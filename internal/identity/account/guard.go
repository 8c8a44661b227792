package account

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"

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
