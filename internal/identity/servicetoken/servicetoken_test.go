package servicetoken_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func process(db *postgres.DB, c clock.Clock) *servicetoken.Service {
	return servicetoken.New(servicetoken.Config{DB: db, Timeout: testenv.Wait, Clock: c, Log: slog.New(slog.DiscardHandler)})
}

func create(t testing.TB, s *servicetoken.Service, in servicetoken.Input) (*servicetoken.Token, string) {
	t.Helper()
	made, secret, err := s.Create(t.Context(), id.User{}, in)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret
}

var reader = servicetoken.Input{Name: "ERP", Scopes: []auth.Scope{auth.OrdersRead}}

func TestATokenHasItsScopesAndNoRole(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		s := process(db, clock.System{})
		made, secret := create(t, s, servicetoken.Input{Name: " ERP ", Scopes: []auth.Scope{auth.SalesWrite, auth.OrdersRead, auth.OrdersRead}})
		p, err := s.Verify(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		if made.Name != "ERP" || !p.Service() || p.Role.Valid() || p.UserID != id.User(made.ID) || !servicetoken.Is(secret) {
			t.Errorf("%+v is the principal of %+v", p, made)
		}
		for _, scope := range auth.Scopes() {
			want := slices.Contains([]auth.Scope{auth.SalesRead, auth.SalesWrite, auth.OrdersRead}, scope)
			if p.MayUse(scope) != want {
				t.Errorf("may use %s: %v, want %v", scope, !want, want)
			}
		}
	})
}

func TestTheDatabaseHasNoTokenInTheClear(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		_, secret := create(t, process(db, clock.System{}), reader)
		row, err := db.Ent.ServiceToken.Query().Only(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(row.Hash), secret[len("skst_"):]) || len(row.Hash) != 32 {
			t.Errorf("%q is stored for %q", row.Hash, secret)
		}
	})
}

func TestARevokedTokenEndsInAllProcessesWithinASecond(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		now := clock.NewFake(time.Now())
		here, there := process(db, now), process(db, now)
		made, secret := create(t, here, reader)
		for _, s := range []*servicetoken.Service{here, there} {
			if _, err := s.Verify(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := here.Revoke(t.Context(), id.User{}, made.ID); err != nil {
			t.Fatal(err)
		}
		refused(t, here, secret)
		now.Advance(time.Second)
		refused(t, there, secret)
		if list, err := there.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("listed %v, %v", list, err)
		}
		_, err := here.Revoke(t.Context(), id.User{}, made.ID)
		if testenv.Refusal(t, err).Reason() != fault.Unknown {
			t.Errorf("a second time: %v", err)
		}
	})
}

func TestATokenExpires(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		now := clock.NewFake(time.Now())
		s := process(db, now)
		_, secret := create(t, s, servicetoken.Input{Name: "ERP", Scopes: reader.Scopes, Life: 24 * time.Hour})
		now.Advance(24*time.Hour - time.Second)
		if _, err := s.Verify(t.Context(), secret); err != nil {
			t.Error(err)
		}
		now.Advance(time.Second)
		refused(t, s, secret)
	})
}

// An expired token keeps events for as long as its cursor is good, and not for ever.
func TestEventsAreWrittenWhileTheirReaderCanContinue(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		now := clock.NewFake(time.Now())
		const keep, life = 48 * time.Hour, 24 * time.Hour
		read := func() (are bool) {
			err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
				are, err = servicetoken.EventsAreRead(now, keep)(ctx, tx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return are
		}
		create(t, process(db, now), servicetoken.Input{Name: "ERP", Scopes: []auth.Scope{auth.EventsRead}, Life: life})
		now.Advance(life + keep - time.Second)
		if !read() {
			t.Error("the events of the last day of a token are not kept")
		}
		now.Advance(2 * time.Second)
		if read() {
			t.Error("an expired token keeps events for ever")
		}
	})
}

func refused(t testing.TB, s *servicetoken.Service, token string) {
	t.Helper()
	if _, err := s.Verify(t.Context(), token); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("verified: %v", err)
	}
}

func TestTheLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		now := clock.NewFake(time.Now())
		s := process(db, now)
		_, secret := create(t, s, reader)
		var writes []time.Time
		for range 150 { // seconds
			if _, err := s.Verify(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			list, err := process(db, now).List(t.Context())
			if err != nil || list[0].LastUsedAt == nil {
				t.Fatalf("no last use: %v", err)
			}
			writes = append(writes, *list[0].LastUsedAt)
			now.Advance(time.Second)
		}
		if n := len(slices.Compact(writes)); n != 3 {
			t.Errorf("written %d times in 150 seconds, want 3 times", n)
		}
	})
}

// A flood of guesses reads the tokens twice a second, not once for each guess.
func TestGuessedTokensCostNoQueries(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	now := clock.NewFake(time.Now())
	s := process(db, now)
	_, secret := create(t, s, reader)
	refused(t, s, secret+"x")
	gone, cancel := context.WithCancel(t.Context())
	cancel() // a query would fail
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if _, err := s.Verify(gone, "skst_"+uuid.NewString()); fault.CodeOf(err) != fault.Unauthenticated {
					t.Errorf("guessed: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestInvalidTokensAreNotCreated(t *testing.T) {
	t.Parallel()
	s := process(testdb.Postgres(t), clock.System{})
	for name, in := range map[string]servicetoken.Input{
		"no name":        {Scopes: reader.Scopes},
		"long name":      {Name: strings.Repeat("页", 81), Scopes: reader.Scopes},
		"no scope":       {Name: "x"},
		"unknown scope":  {Name: "x", Scopes: []auth.Scope{auth.OrdersRead, "EVERYTHING"}},
		"life of a year": {Name: "x", Scopes: reader.Scopes, Life: 367 * 24 * time.Hour},
	} {
		_, _, err := s.Create(t.Context(), id.User{}, in)
		if testenv.Refusal(t, err).Reason() != fault.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThereAreAtMostAHundredTokens(t *testing.T) {
	t.Parallel()
	s := process(testdb.Postgres(t), clock.System{})
	by := id.New[id.User]()
	for range 100 {
		if _, _, err := s.Create(t.Context(), by, reader); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Create(t.Context(), by, reader)
	if testenv.Refusal(t, err).Reason() != fault.Conflict {
		t.Errorf("token 101: %v", err)
	}
	if ids, err := s.CreatedBy(t.Context(), by); err != nil || len(ids) != 100 {
		t.Errorf("%d of 100 tokens are known by their creator: %v", len(ids), err)
	}
}
