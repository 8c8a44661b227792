package account

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

func TestFiftyRefreshesOfOneTokenMakeOneSuccessor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		here, there := f, f.another(testKeys)
		var mu sync.Mutex
		successors := map[string]int{}
		var all sync.WaitGroup
		for i := range 50 {
			process := here
			if i%2 == 1 {
				process = there
			}
			all.Go(func() {
				got := process.refresh(in.Tokens.Refresh)
				mu.Lock()
				defer mu.Unlock()
				successors[got.Tokens.Refresh]++
			})
		}
		all.Wait()
		row := f.db.Ent.Session.GetX(t.Context(), in.Session)
		if len(successors) != 1 || row.Generation != 2 || f.db.Ent.Session.Query().CountX(t.Context()) != 1 {
			t.Fatalf("%d successors, generation %d", len(successors), row.Generation)
		}
		for next := range successors {
			f.refresh(next) // and it is valid
		}
	})
}

func TestLostReplyIsGivenAgainWithinTheGrace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		first := f.refresh(in.Tokens.Refresh)
		f.advance(refreshGrace)
		again := f.refresh(in.Tokens.Refresh)
		if again.Tokens.Refresh != first.Tokens.Refresh {
			t.Error("another successor")
		}
		if f.principal(again.Tokens.Access) == nil {
			t.Error("the access token is not good")
		}
	})
}

func TestReplacedTokenShownLateEndsTheSession(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		next := f.refresh(in.Tokens.Refresh)
		f.advance(refreshGrace + time.Second)
		f.refreshRefused("the thief", in.Tokens.Refresh)
		f.refreshRefused("the owner", next.Tokens.Refresh)
		if f.principal(next.Tokens.Access) != nil || f.principal(in.Tokens.Access) != nil {
			t.Error("an access token of the family is still good")
		}
		if row := f.db.Ent.Session.GetX(t.Context(), in.Session); row.RevokedAt == nil || row.RevokedReason != endedByReuse {
			t.Errorf("session %+v", row)
		}
	})
}

func TestTokenOfTwoGenerationsAgoEndsTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		second := f.refresh(in.Tokens.Refresh)
		third := f.refresh(second.Tokens.Refresh)
		f.refreshRefused("two generations old", in.Tokens.Refresh)
		f.refreshRefused("the newest", third.Tokens.Refresh)
		other := f.login(in.User.Account, goodPassword)
		if f.principal(other.Tokens.Access) == nil {
			t.Error("a session of another sign-in was ended too")
		}
	})
}

func TestInventedTokensEndNothing(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	in := f.register(someone())
	token := in.Tokens.Refresh
	stranger := newRefresher(mustKeys(auth.Key{ID: "x", Secret: []byte(strings.Repeat("attacker", 4))}))
	forged, err := stranger.first(in.Session)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := f.refresher.first(id.New[id.Session]())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "short": "abc", "long": strings.Repeat("A", 512), "cut": token[:len(token)-1], "longer": token + "A",
		"padded": token + "=", "changed": flip(token, 30), "tag changed": flip(token, len(token)-2), "session changed": flip(token, 2),
		"made with another key": forged.text, "of no session": unknown.text, "an access token": in.Tokens.Access, "not base64": strings.Repeat("!", len(token)),
	} {
		f.refreshRefused(name, text)
	}
	f.refresh(token) // it stayed valid
}

// flip changes one character.
func flip(s string, at int) string {
	other := "A"
	if s[at] == 'A' {
		other = "B"
	}
	return s[:at] + other + s[at+1:]
}

func TestASessionEndsWhenIdleAndAtItsMaximumAge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		began := f.clock.Now()
		token := in.Tokens.Refresh
		for f.clock.Now().Sub(began) < DefaultLongest-DefaultIdle { // active all day
			f.advance(DefaultIdle - time.Minute)
			next := f.refresh(token)
			if !next.Tokens.RefreshExpiresAt.After(f.clock.Now()) || next.Tokens.RefreshExpiresAt.After(began.Add(DefaultLongest)) {
				t.Fatalf("expires %s after the sign-in", next.Tokens.RefreshExpiresAt.Sub(began))
			}
			token = next.Tokens.Refresh
		}
		f.advance(DefaultLongest - f.clock.Now().Sub(began))
		f.refreshRefused("after the longest session", token)

		idle := f.login(in.User.Account, goodPassword)
		f.advance(DefaultIdle)
		f.refreshRefused("after half an hour of nothing", idle.Tokens.Refresh)
	})
}

func TestAccessTokenNeverOutlivesTheSession(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	f.cfg.Longest = 5 * time.Minute
	in := f.register(someone())
	if in.Tokens.AccessExpiresAt.After(in.Tokens.RefreshExpiresAt) {
		t.Errorf("access until %s, session until %s", in.Tokens.AccessExpiresAt, in.Tokens.RefreshExpiresAt)
	}
}

func TestRefreshSurvivesTheRotationOfKeys(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	former := auth.Key{ID: "k1", Secret: []byte(strings.Repeat("test-key", 4))}
	fresh := auth.Key{ID: "k2", Secret: []byte(strings.Repeat("next-key", 4))}
	rotated := f.another(mustKeys(fresh, former)) // new key in front, old one still read
	behind := f.another(mustKeys(former, fresh))  // not restarted with the new order yet
	in := f.register(someone())
	next := rotated.refresh(in.Tokens.Refresh)
	if again := behind.refresh(in.Tokens.Refresh); again.Tokens.Refresh != next.Tokens.Refresh {
		t.Error("two processes in the middle of a rotation give two successors")
	}
	rotated.refresh(next.Tokens.Refresh)
}

// docs/operations.md adds a new key to the previous keys of all processes first.
func TestAKeyThatAllKnowBeforeItSignsEndsNoSession(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	former := auth.Key{ID: "k1", Secret: []byte(strings.Repeat("test-key", 4))}
	fresh := auth.Key{ID: "k2", Secret: []byte(strings.Repeat("next-key", 4))}
	steps := []*fixture{f.another(mustKeys(former)), f.another(mustKeys(former, fresh)), f.another(mustKeys(fresh, former))}
	in := f.register(someone())
	for i, after := range steps[1:] {
		before := steps[i]
		in = before.refresh(in.Tokens.Refresh)
		if after.principal(in.Tokens.Access) == nil {
			t.Errorf("processes after step %d refuse what those before it made", i+1)
		}
		in = after.refresh(in.Tokens.Refresh)
		if before.principal(in.Tokens.Access) == nil {
			t.Errorf("processes before step %d refuse what those after it made", i+1)
		}
		in = before.refresh(in.Tokens.Refresh)
	}
	in = steps[2].refresh(in.Tokens.Refresh)
	alone := f.another(mustKeys(fresh)) // the old key was dropped
	if alone.principal(in.Tokens.Access) == nil {
		t.Error("an access token needs the old key until the end")
	}
	alone.refresh(in.Tokens.Refresh)
}

func TestRefreshesAreCountedPerSessionAcrossKeyRotation(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	former := auth.Key{ID: "k1", Secret: []byte(strings.Repeat("test-key", 4))}
	fresh := auth.Key{ID: "k2", Secret: []byte(strings.Repeat("next-key", 4))}
	rotated := f.another(mustKeys(fresh, former))
	in, other := f.register(someone()), f.register(someone())
	next := rotated.refresh(in.Tokens.Refresh)
	first, ours := rotated.Refresher(in.Tokens.Refresh)
	if again, also := rotated.Refresher(next.Tokens.Refresh); !ours || !also || again != first {
		t.Errorf("two tokens of a session count as %q and %q", first, again)
	}
	if second, ours := rotated.Refresher(other.Tokens.Refresh); !ours || second == first {
		t.Errorf("two sessions count as %q and %q", first, second)
	}
	for name, text := range map[string]string{
		"none": "", "invented": strings.Repeat("A", len(in.Tokens.Refresh)), "tag changed": flip(in.Tokens.Refresh, len(in.Tokens.Refresh)-2),
	} {
		if subject, ours := rotated.Refresher(text); ours {
			t.Errorf("%s: counted as %q", name, subject)
		}
	}
	if subject, ours := f.Refresher(next.Tokens.Refresh); ours {
		t.Errorf("made with a key that is not known here: counted as %q", subject)
	}
}

func TestSignOutEndsTheSessionEverywhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		there := f.another(testKeys)
		in := f.register(someone())
		other := f.login(in.User.Account, goodPassword)
		p := f.principal(in.Tokens.Access)
		there.principal(in.Tokens.Access) // cached there already
		closed := make(chan struct{})
		there.cfg.Revocations.OnRevoked(in.Session, func() { close(closed) })

		n, err := f.Logout(t.Context(), p, false)
		if n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if f.principal(in.Tokens.Access) != nil {
			t.Error("the token is good where the person signed out")
		}
		select {
		case <-closed:
		case <-time.After(testenv.Wait):
			t.Error("a socket elsewhere stays open")
		}
		if there.principal(in.Tokens.Access) != nil {
			t.Error("the token is good elsewhere")
		}
		f.refreshRefused("after signing out", in.Tokens.Refresh)
		if f.principal(other.Tokens.Access) == nil {
			t.Error("the other session ended too")
		}
		if n, err := f.Logout(t.Context(), p, false); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
	})
}

func TestSignOutEverywhereEndsAllSessions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		there := f.another(testKeys)
		who := someone()
		sessions := []*SignedIn{f.register(who)}
		for range 4 {
			sessions = append(sessions, f.login(who.Account, goodPassword))
		}
		stranger := f.register(someone())
		n, err := f.Logout(t.Context(), f.principal(sessions[2].Tokens.Access), true)
		if n != 5 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		for i, s := range sessions {
			f.refreshRefused("ended session", s.Tokens.Refresh)
			testenv.Eventually(t, testenv.Wait, func() bool { return there.principal(s.Tokens.Access) == nil }, "ended elsewhere")
			if f.principal(s.Tokens.Access) != nil {
				t.Errorf("session %d goes on", i)
			}
		}
		if f.principal(stranger.Tokens.Access) == nil {
			t.Error("another user was signed out")
		}
		f.refresh(f.login(who.Account, goodPassword).Tokens.Refresh) // and the user may sign in again
	})
}

func TestEndedSessionsAreKeptAWeek(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		old := f.register(someone())
		f.advance(purgeAfter)
		recent := f.login(old.User.Account, goodPassword)
		f.advance(DefaultIdle + time.Second)
		counts, err := f.store.Purge(t.Context())
		if err != nil || counts["sessions_deleted"] != 1 {
			t.Errorf("%v, %v", counts, err)
		}
		if ids := f.db.Ent.Session.Query().IDsX(t.Context()); len(ids) != 1 || ids[0] != recent.Session {
			t.Errorf("left: %v", ids)
		}
	})
}

func TestOneStepPurgesMoreThanOneBatch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const ended, some = 2*postgres.PurgeBatch + 1, 300 // some fit in one statement
		long := f.clock.Now().Add(-purgeAfter - time.Hour)
		for from := 0; from < ended; from += some {
			err := f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
				rows := make([]*ent.SessionCreate, min(some, ended-from))
				for i := range rows {
					rows[i] = tx.Session.Create().SetID(id.New[id.Session]()).SetUserID(id.New[id.User]()).SetTokenHash(fmt.Append(nil, from+i)).
						SetCreatedAt(long).SetRotatedAt(long).SetExpiresAt(long)
				}
				return tx.Session.CreateBulk(rows...).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if counts, err := f.store.Purge(t.Context()); err != nil || counts["sessions_deleted"] != ended {
			t.Errorf("%v, %v, want %d", counts, err, ended)
		}
	})
}
