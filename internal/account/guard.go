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

	"seckill/internal/admission/captcha"
	"seckill/internal/fault"
)

// Bounds of guessing one account's password, from however many addresses: 5 tries
// at once and about 9 more in the next ten minutes, each from the fourth on for a
// captcha. Who guesses locks the owner out of new sessions for as long; the open
// ones go on.
const (
	captchaFrom = 3 // failures
	delayFrom   = 5 // failures
	firstDelay  = time.Second
	longestWait = 15 * time.Minute
	guardMemory = time.Hour // after the last try; longer than longestWait
)

//go:embed lua/guard.lua
var guardSource string

var guardScript = redis.NewScript(guardSource)

// guard bounds guessing per account. Accounts that do not exist are guarded alike.
type guard struct {
	client   redis.UniversalClient
	prefix   string
	captchas *captcha.Service
}

// admit lets a try through and counts it as failed until pass takes that back. It
// asks for a captcha only when one is needed, and only then uses an answer up.
func (g *guard) admit(ctx context.Context, account string, from netip.Addr, answer captcha.Answer) (fault.Refusal, error) {
	verdict, wait, err := g.evaluate(ctx, account, false)
	if err != nil {
		return nil, err
	}
	if verdict == "captcha" {
		refusal, err := g.captchas.Check(ctx, captcha.Scope{Purpose: captcha.Login, From: from}, answer)
		if refusal != nil || err != nil {
			return refusal, err
		}
		if verdict, wait, err = g.evaluate(ctx, account, true); err != nil {
			return nil, err
		}
	}
	switch verdict {
	case "go":
		return nil, nil
	case "wait":
		return fault.Throttled{RetryAfter: wait}, nil
	}
	return nil, fmt.Errorf("guard of an account replied %q", verdict)
}

// reset forgets the failures of an account after the right password.
func (g *guard) reset(ctx context.Context, account string) error {
	return g.client.Del(ctx, g.key(account)).Err()
}

func (g *guard) evaluate(ctx context.Context, account string, answered bool) (verdict string, wait time.Duration, err error) {
	flag := "0"
	if answered {
		flag = "1"
	}
	reply, err := guardScript.Run(ctx, g.client, []string{g.key(account)}, flag, captchaFrom, delayFrom,
		firstDelay.Milliseconds(), longestWait.Milliseconds(), guardMemory.Milliseconds()).Slice()
	if err != nil {
		return "", 0, fault.Wrap(fault.Unavailable, "nobody can sign in now; try again shortly", fmt.Errorf("guard of an account: %w", err))
	}
	if len(reply) != 2 {
		return "", 0, fmt.Errorf("guard of an account replied %d values", len(reply))
	}
	verdict, _ = reply[0].(string)
	ms, _ := reply[1].(int64)
	return verdict, time.Duration(ms) * time.Millisecond, nil
}

// key names an account by a hash: names of people are no part of keys.
func (g *guard) key(account string) string {
	sum := sha256.Sum256([]byte(account))
	return g.prefix + "guard:" + hex.EncodeToString(sum[:16])
}
