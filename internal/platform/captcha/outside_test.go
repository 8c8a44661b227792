package captcha

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// operator is an outside check: it accepts each token that begins with "good" once.
type operator struct {
	mu    sync.Mutex
	seen  map[string]bool // guarded by mu
	asked int             // guarded by mu
	from  string          // guarded by mu; address of the last question
}

func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token := r.PostFormValue("response")
	o.asked++
	o.from = r.PostFormValue("remoteip")
	verdict := `{"success":false,"error-codes":["invalid-input-response"]}`
	switch {
	case r.Method != http.MethodPost || r.PostFormValue("secret") != "outside secret" || r.PostFormValue("sitekey") != "site":
		verdict = `{"success":false,"error-codes":["invalid-input-secret"]}`
	case o.seen[token]:
		verdict = `{"success":false,"error-codes":["timeout-or-duplicate"]}`
	case strings.HasPrefix(token, "good"):
		o.seen[token] = true
		verdict = `{"success":true,"challenge_ts":"2026-11-23T01:00:00Z","hostname":"shop.example.com"}`
	}
	_, _ = w.Write([]byte(verdict))
}

func outside(t *testing.T, s *Service, check http.Handler) {
	t.Helper()
	server := httptest.NewServer(check)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.cfg.Outside = &Outside{VerifyURL: server.URL, SiteKey: "site", Secret: "outside secret", Client: server.Client(), Timeout: testenv.Wait}
}

func TestATokenOfTheOutsideCheckCountsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		check := &operator{seen: map[string]bool{}}
		outside(t, s, check)
		for _, scope := range scopes() {
			scope.From = netip.MustParseAddr("93.184.216.34")
			c := create(t, s, scope, External)
			if c.Kind != External || c.Image != "" || c.Parameters != `{"siteKey":"site"}` {
				t.Fatalf("challenge %+v", c)
			}
			for _, text := range []string{"bad", "", s.passed(id.Challenge(uuid.New()))} {
				if next := wantInvalid(t, s, scope, Answer{ChallengeID: c.ID, Text: text}); next.Kind != External {
					t.Errorf("after %q: %s", text, next.Kind)
				}
				c = create(t, s, scope, External)
			}
			good := Answer{ChallengeID: c.ID, Text: "good" + strings.Repeat("x", 2000) + string(scope.Purpose)}
			if got, err := s.Exchange(t.Context(), scope, good); err != nil || got == good {
				t.Errorf("exchange: %v, %v", got, err)
			}
			wantRight(t, s, scope, good) // the call is repeated: the operator would say timeout-or-duplicate
			wantInvalid(t, s, scope, good)
			if next := create(t, s, scope, External); next.Kind == External {
				wantInvalid(t, s, scope, Answer{ChallengeID: next.ID, Text: good.Text})
			}
		}
		check.mu.Lock()
		defer check.mu.Unlock()
		if check.from != "93.184.216.34" {
			t.Errorf("the operator was given the address %q", check.from)
		}
	})
}

func TestAnswersOfOtherKindsDoNotReachTheOutsideCheck(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		check := &operator{seen: map[string]bool{}}
		outside(t, s, check)
		scope := seckill()
		wantRight(t, s, scope, solve(t, create(t, s, scope, ProofOfWork)))
		wantInvalid(t, s, scope, Answer{ChallengeID: create(t, s, scope, Text).ID, Text: "good"})
		check.mu.Lock()
		defer check.mu.Unlock()
		if check.asked != 0 {
			t.Errorf("%d questions", check.asked)
		}
	})
}

func TestASilentOutsideCheckIsARetryableFault(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		done := make(chan struct{})
		outside(t, s, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		}))
		s.cfg.Outside.Timeout = 0 // the default
		defer close(done)
		scope := seckill()
		c := create(t, s, scope, External)
		err := s.Check(t.Context(), scope, Answer{ChallengeID: c.ID, Text: "good"})
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a silent check: %v", err)
		}
	})
}

func TestASaleThatWantsTheOutsideCheckOffersNothingElse(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		s.cfg.Sales = &oneRule{Kinds: []Kind{External}}
		if c := create(t, s, seckill(), External); c.Kind != ProofOfWork {
			t.Errorf("without an outside check: %s", c.Kind)
		}
		outside(t, s, &operator{seen: map[string]bool{}})
		for _, wished := range []Kind{Text, Math, ProofOfWork, External, ""} {
			if c := create(t, s, seckill(), wished); c.Kind != External {
				t.Errorf("asked for %q: %s", wished, c.Kind)
			}
		}
	})
}
