package captcha

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"

	"seckill/internal/platform/id"
)

const (
	// idPrefix begins the public id of a challenge.
	idPrefix = "cap_"
	// macBytes gives MACs of 128 bits: they cannot be guessed within the life of a
	// challenge.
	macBytes = 16
	// headBytes is the length of what a token says of its challenge: kind, creation in Unix
	// microseconds, and the nonce.
	headBytes  = 1 + 8 + 16
	tokenBytes = headBytes + 2*macBytes
)

// kinds are the kinds as the first byte of a token names them. The order is part of the
// format.
var kinds = [...]Kind{Text, Math, ProofOfWork, External}

// token is a challenge that proves itself: the public id of the challenge. Its two MACs are
// bound to the scope; the one of the answer reveals nothing without the key, and differs
// for equal answers by the nonce.
type token struct {
	kind    Kind
	created int64 // Unix microseconds; no two challenges of a process have the same
	nonce   id.Challenge
}

// head returns the bytes that both MACs cover.
func (t token) head() []byte {
	raw := make([]byte, 0, tokenBytes)
	for i, kind := range kinds {
		if kind == t.kind {
			raw = append(raw, byte(i))
		}
	}
	raw = binary.BigEndian.AppendUint64(raw, uint64(t.created)) // after 1970
	return append(raw, t.nonce[:]...)
}

// sign returns the public id of a challenge of a scope with an answer.
func (s *Service) sign(scope Scope, t token, answer string) string {
	raw := t.head()
	raw = append(raw, s.mac("answer", scope, raw, normalise(answer))...)
	raw = append(raw, s.mac("challenge", scope, raw, "")...)
	return idPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// parse returns the challenge of a public id and the MAC of its answer; false unless this
// service signed it for the scope.
func (s *Service) parse(scope Scope, public string) (t token, answer []byte, ok bool) {
	text, ok := strings.CutPrefix(public, idPrefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return token{}, nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || int(raw[0]) >= len(kinds) {
		return token{}, nil, false
	}
	signed := raw[:tokenBytes-macBytes]
	if !hmac.Equal(raw[len(signed):], s.mac("challenge", scope, signed, "")) {
		return token{}, nil, false
	}
	t = token{
		kind:    kinds[raw[0]],
		created: int64(binary.BigEndian.Uint64(raw[1:])),
		nonce:   id.Challenge(raw[9:headBytes]),
	}
	return t, signed[headBytes:], true
}

// mac returns a MAC of a challenge. All parts before the answer have a fixed length or
// alphabet, so that the encoding is unambiguous.
func (s *Service) mac(of string, scope Scope, signed []byte, answer string) []byte {
	text := make([]byte, 0, 256)
	text = append(text, of...)
	text = append(text, '|')
	text = append(text, scope.Purpose...)
	text = append(text, '|')
	text = append(text, scope.Sale[:]...)
	text = append(text, scope.User[:]...)
	text = append(text, signed...)
	text = append(text, answer...)
	h, _ := s.macs.Get().(hash.Hash)
	if h == nil {
		h = hmac.New(sha256.New, s.cfg.Secret)
	}
	defer s.macs.Put(h)
	h.Reset()
	h.Write(text)
	return h.Sum(nil)[:macBytes]
}

// Claim is an answer as it was sent, for AnswerLua, which decides whether its challenge may
// still be answered.
type Claim struct {
	Kind    Kind    // of the challenge; "" if it is not one of the scope
	Verdict Verdict // Right or Wrong; NotOpen if the challenge is not one of the scope
	Created int64   // of the challenge, Unix microseconds
	nonce   id.Challenge
}

// Claim verifies an answer as far as that needs no Redis.
func (s *Service) Claim(scope Scope, a Answer) Claim {
	t, want, ok := s.parse(scope, a.ChallengeID)
	if !ok || len(a.Text) > maxAnswerBytes {
		return Claim{Verdict: NotOpen}
	}
	c := Claim{Kind: t.kind, Verdict: Wrong, Created: t.created, nonce: t.nonce}
	if hmac.Equal(want, s.mac("answer", scope, t.head(), normalise(a.Text))) {
		c.Verdict = Right
	}
	return c
}
