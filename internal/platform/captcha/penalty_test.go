package captcha

import (
	"net/netip"
	"testing"
	"time"

	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// hard returns the factor of difficulty of the scope's next proof of work.
func hard(t *testing.T, s *Service, scope Scope) int {
	t.Helper()
	return int(puzzleOf(t, create(t, s, scope, ProofOfWork)).MaxNumber) / testPowMax
}

// frozen returns a service whose Redis clock is stopped, so that no point expires.
func frozen(t *testing.T) *Service {
	t.Helper()
	s, _, mini := embedded(t)
	stop(s, mini, time.Now())
	return s
}

func TestAClientOfManyChallengesGetsHarderOnes(t *testing.T) {
	t.Parallel()
	s, eager := frozen(t), seckill()
	for n, want := range []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4} {
		if got := hard(t, s, eager); got != want {
			t.Errorf("the %d. challenge is %d times as hard, want %d", n+1, got, want)
		}
	}
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		eager, quiet := seckill(), seckill()
		quiet.Sale = eager.Sale
		for range 100 {
			hard(t, s, eager)
		}
		last := create(t, s, eager, ProofOfWork)
		if got := puzzleOf(t, last).MaxNumber; got != 8*testPowMax {
			t.Errorf("after many the highest number is %d, want 8 times %d and no more", got, testPowMax)
		}
		wantRight(t, s, eager, solve(t, last)) // the harder one is verified with its own number
		if got := hard(t, s, quiet); got != 1 {
			t.Errorf("another user in the sale gets one %d times as hard", got)
		}
		if got := hard(t, s, Scope{Purpose: Seckill, Sale: id.New[id.Sale](), User: eager.User}); got != 1 {
			t.Errorf("in another sale it is %d times as hard", got)
		}
	})
}

func TestWrongAnswersCountThreefoldAndPicturesCountToo(t *testing.T) {
	t.Parallel()
	s, guesser, looker := frozen(t), seckill(), seckill()
	next := create(t, s, guesser, ProofOfWork)
	for n, want := range []int64{1, 1, 1, 2, 2, 2, 4} {
		next = wantInvalid(t, s, guesser, wrong(next))
		if got := puzzleOf(t, next).MaxNumber / testPowMax; got != want {
			t.Errorf("after %d wrong answers: %d times as hard, want %d", n+1, got, want)
		}
	}
	wantRight(t, s, guesser, solve(t, next))
	for range 10 {
		s.images.text <- picture{kind: Text, answer: "k7m4x", image: "data:"}
		create(t, s, looker, Text)
	}
	if got := hard(t, s, looker); got != 2 {
		t.Errorf("after ten pictures: %d times as hard, want 2", got)
	}
}

// visitor returns the scope of a new user from an address.
func visitor(purpose Purpose, sale id.Sale, addr string) Scope {
	scope := Scope{Purpose: purpose, From: netip.MustParseAddr(addr)}
	if purpose == Seckill {
		scope.Sale, scope.User = sale, id.New[id.User]()
	}
	return scope
}

func TestNetworksCountAsThirtyPeopleAndProxiesNotAtAll(t *testing.T) {
	t.Parallel()
	s, sale := frozen(t), id.New[id.Sale]()
	for n := range 10*networkUsers + 1 {
		want := 1 + n/(10*networkUsers)
		if got := hard(t, s, visitor(Seckill, sale, "203.0.113.7")); got != want {
			t.Fatalf("person %d of the network: %d times as hard, want %d", n+1, got, want)
		}
		if got := hard(t, s, visitor(Seckill, sale, "192.168.1.9")); got != 1 {
			t.Fatalf("person %d behind the proxy: %d times as hard", n+1, got)
		}
	}
	onBoth(t, func(t *testing.T, s *Service, conn *redisconn.Conn) {
		for _, c := range []struct {
			purpose              Purpose
			near, same, far, own string
		}{
			{Seckill, "203.0.113.7", "203.0.113.250", "203.0.114.7", "192.168.1.9"},
			{Login, "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1", "127.0.0.1"},
			{Register, "::ffff:198.51.100.1", "198.51.100.9", "198.51.101.1", "fd00::1"},
		} {
			hot := visitor(c.purpose, sale, c.near)
			for _, h := range hot.subjects() { // as other processes counted
				conn.Cmd.Set(t.Context(), s.cfg.Keys.Penalty(hot.shard(), h.sale, h.name()), time.Now().Add(3*freePenalty).UnixMilli(), time.Hour)
			}
			var same Scope
			var next Challenge
			testenv.Eventually(t, testenv.Wait, func() bool { // the second challenge asks for it
				same = visitor(c.purpose, sale, c.same)
				next = create(t, s, same, ProofOfWork)
				return puzzleOf(t, next).MaxNumber > testPowMax
			}, "the penalty of all processes")
			if got := puzzleOf(t, next).MaxNumber; got != 4*testPowMax {
				t.Errorf("%s: the highest number for the same network is %d, want 4 times %d", c.purpose, got, testPowMax)
			}
			wantRight(t, s, same, solve(t, next))
			for _, other := range []string{c.far, c.own} {
				if got := hard(t, s, visitor(c.purpose, sale, other)); got != 1 {
					t.Errorf("%s from %s: %d times as hard", c.purpose, other, got)
				}
			}
		}
	})
}

func TestThePenaltyEndsByItself(t *testing.T) {
	t.Parallel()
	s, _, mini := embedded(t)
	now, eager := time.Now(), seckill()
	eager.From = netip.MustParseAddr("203.0.113.7")
	stop(s, mini, now)
	for range 100 {
		hard(t, s, eager)
	}
	// From the highest level, 800 s of penalty; each requested challenge adds ten.
	for _, c := range []struct {
		later time.Duration
		want  int
	}{{0, 8}, {405 * time.Second, 8}, {430 * time.Second, 4}, {640 * time.Second, 2}, {760 * time.Second, 1}} {
		stop(s, mini, now.Add(c.later))
		if got := hard(t, s, eager); got != c.want {
			t.Errorf("after %s: %d times as hard, want %d", c.later, got, c.want)
		}
	}
	for n := range 20 { // six a minute have no effect
		stop(s, mini, now.Add(time.Hour+time.Duration(n)*userDecay))
		if got := hard(t, s, eager); got != 1 {
			t.Fatalf("one every %s: %d times as hard", userDecay, got)
		}
	}
	stop(s, mini, now.Add(3*time.Hour))
	mini.FastForward(2 * time.Hour)
	if keys := mini.Keys(); len(keys) != 0 {
		t.Errorf("keys %v stay", keys)
	}
}

// A client that spreads over processes is counted as one, at most a point of each process
// later.
func TestPenaltiesAreCountedOverAllProcesses(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	processes := make([]*Service, 4)
	for i := range processes {
		processes[i] = service(t, conn, prefix)
	}
	scope, n := seckill(), 0
	testenv.Eventually(t, testenv.Wait, func() bool {
		n++
		return hard(t, processes[n%len(processes)], scope) == 8
	}, "the highest level")
	quiet := seckill()
	quiet.Sale = scope.Sale
	if hard(t, processes[0], quiet) != 1 || n <= 40 {
		t.Errorf("the highest level after %d challenges", n)
	}
}

func TestASaleSaysHowHardItsProofsAre(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		rule := &oneRule{}
		s.cfg.Sales = rule
		scope := seckill()
		for _, c := range []struct{ rule, want int }{{0, testPowMax}, {5 * testPowMax, 5 * testPowMax}, {0, testPowMax}} {
			rule.PowMax = c.rule
			next := create(t, s, scope, ProofOfWork)
			if got := int(puzzleOf(t, next).MaxNumber); got != c.want {
				t.Errorf("a sale that wants %d gets %d, want %d", c.rule, got, c.want)
			}
			wantRight(t, s, scope, solve(t, next))
		}
		for range 30 {
			hard(t, s, scope)
		}
		rule.PowMax = HardestPow / 2
		if got := puzzleOf(t, create(t, s, scope, ProofOfWork)).MaxNumber; got != HardestPow {
			t.Errorf("four times half the hardest is %d, want %d", got, HardestPow)
		}
		s.cfg.SameForAll, rule.PowMax = true, 0
		if got := hard(t, s, scope); got != 1 {
			t.Errorf("where it is the same for all it is %d times as hard", got)
		}
	})
}
