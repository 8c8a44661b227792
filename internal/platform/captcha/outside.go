package captcha

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

const (
	// OutsideTimeout bounds one question to the outside check.
	OutsideTimeout = 2 * time.Second
	// maxVerdictBytes bounds the reply of the outside check.
	maxVerdictBytes = 64 << 10
	// maxTokenBytes bounds the token of the widget: hCaptcha and Turnstile document at
	// most 2,048 characters, reCAPTCHA no bound.
	maxTokenBytes = 4096
)

// Outside is a captcha of another operator with the siteverify protocol of hCaptcha,
// Turnstile and reCAPTCHA: the client gets a token from the operator's widget, and the
// server exchanges it for a verdict, once.
type Outside struct {
	VerifyURL string // for example https://challenges.cloudflare.com/turnstile/v0/siteverify
	SiteKey   string // public; sent to clients
	Secret    string
	ScriptURL string        // script of the widget; sent to clients; "" = clients know it
	Client    *http.Client  // nil = a client on the shared transport
	Timeout   time.Duration // of one question; 0 = OutsideTimeout
}

// parameters encodes the parameters for the client.
func (o *Outside) parameters() (string, error) {
	text, err := json.Marshal(struct {
		SiteKey string `json:"siteKey"`
		Script  string `json:"script,omitempty"`
	}{o.SiteKey, o.ScriptURL})
	if err != nil {
		return "", fmt.Errorf("write outside check: %w", err)
	}
	return string(text), nil
}

// passes reports whether the operator accepts a token. The operator accepts each token
// once.
func (o *Outside) passes(ctx context.Context, scope Scope, token string) (bool, error) {
	timeout := cmp.Or(o.Timeout, OutsideTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	form := url.Values{"secret": {o.Secret}, "response": {token}, "sitekey": {o.SiteKey}}
	if scope.From.IsValid() {
		form.Set("remoteip", scope.From.Unmap().String())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.VerifyURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false, fmt.Errorf("outside check: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := o.Client
	if client == nil {
		client = &http.Client{Timeout: timeout} // on the shared transport
	}
	res, err := client.Do(req)
	if err != nil {
		return false, fmt.Errorf("outside check: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	var verdict struct {
		Success bool `json:"success"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxVerdictBytes)).Decode(&verdict); err != nil {
		return false, fmt.Errorf("outside check: status %d: %w", res.StatusCode, err)
	}
	return verdict.Success, nil
}

// passed is the answer to an External challenge. Clients cannot know it.
func (s *Service) passed(challenge id.Challenge) string {
	h := hmac.New(sha256.New, s.cfg.Secret)
	fmt.Fprintf(h, "outside|%s", challenge)
	return hex.EncodeToString(h.Sum(nil))
}

// Exchange returns the answer to verify: for an External challenge whose token the
// outside check accepts, its answer; otherwise a itself, which is wrong for such
// a challenge. A token that was accepted stays so for its challenge, so that a call may
// be repeated. An error means that the outside check did not answer: UNAVAILABLE.
func (s *Service) Exchange(ctx context.Context, scope Scope, a Answer) (Answer, error) {
	if s.cfg.Outside == nil {
		return a, nil
	}
	t, _, ok := s.parse(scope, a.ChallengeID)
	if !ok || t.kind != External || len(a.Text) > maxTokenBytes {
		return a, nil
	}
	key := s.challengeKey(t.nonce)
	seen, err := s.cfg.Client.HGet(ctx, key, "seen").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return a, unavailable("read captcha", err)
	}
	sum := sha256.Sum256([]byte(a.Text))
	token := hex.EncodeToString(sum[:])
	if seen != token {
		passes, err := s.cfg.Outside.passes(ctx, scope, a.Text)
		if err != nil {
			return a, unavailable("verify captcha", err)
		}
		if !passes {
			return a, nil
		}
		if _, err := s.cfg.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, "seen", token)
			p.PExpire(ctx, key, s.RecordLife())
			return nil
		}); err != nil {
			return a, unavailable("store captcha", err)
		}
	}
	return Answer{ChallengeID: a.ChallengeID, Text: s.passed(t.nonce)}, nil
}
