package account

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestSignedInPersonIsFoundWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	f := real(t)
	in := f.register(someone())
	fresh := f.another(testKeys) // a process that has not cached the user
	if err := f.db.SQL.Close(); err != nil {
		t.Fatal(err)
	}
	if p := fresh.principal(in.Tokens.Access); p == nil || p.UserID != in.User.ID {
		t.Errorf("principal %+v", p)
	}
	got, err := fresh.cfg.Directory.User(t.Context(), in.User.ID)
	if err != nil || !sameUser(got, in.User) {
		t.Errorf("%+v, %v; want %+v", got, err, in.User)
	}
}

// After Postgres has lost commits, a copy in Redis may have a later version than the record.
func TestForgottenUsersAreReadFromTheRecord(t *testing.T) {
	t.Parallel()
	f := real(t)
	in := f.register(someone())
	if _, err := f.cfg.Directory.User(t.Context(), in.User.ID); err != nil { // caches
		t.Fatal(err)
	}
	key := f.prefix + "user:" + in.User.ID.String()
	if n := f.conn.Cmd.Exists(t.Context(), key).Val(); n != 1 {
		t.Fatal("the user is not in redis")
	}
	if err := f.db.Ent.User.DeleteOneID(in.User.ID).Exec(t.Context()); err != nil { // lost
		t.Fatal(err)
	}
	if err := f.cfg.Directory.ForgetAll(t.Context(), f.conn); err != nil {
		t.Fatal(err)
	}
	if u, err := f.another(testKeys).cfg.Directory.User(t.Context(), in.User.ID); u != nil || err != nil {
		t.Errorf("%+v, %v", u, err)
	}
}

// trips counts round trips to Redis.
type trips struct{ n atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmds)
	}
}

// A crowd that asks for path tokens costs a few queries, and not one for each buyer.
func TestUsersWhoAreAskedForAtOnceAreReadTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const crowd = 200
		var rows []*ent.UserCreate
		for i := range crowd {
			rows = append(rows, f.db.Ent.User.Create().SetID(id.New[id.User]()).SetAccount(fmt.Sprintf("buyer%d@example.com", i)).SetDisplayName("B").
				SetPasswordHash("").SetCreatedAt(time.Now()))
		}
		users, err := f.db.Ent.User.CreateBulk(rows...).Save(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counted := &trips{}
		f.cfg.Directory.cfg.Client.AddHook(counted)
		var wg sync.WaitGroup
		for _, want := range users {
			for range 2 {
				wg.Go(func() {
					if u, err := f.cfg.Directory.User(t.Context(), want.ID); err != nil || u == nil || u.ID != want.ID {
						t.Errorf("%+v, %v", u, err)
					}
				})
			}
		}
		wg.Wait()
		if n := counted.n.Load(); n > crowd/2 {
			t.Errorf("%d round trips to Redis for %d users", n, crowd)
		}
		if n := f.conn.Cmd.Exists(t.Context(), f.cfg.Directory.key(users[0].ID)).Val(); n != 0 {
			t.Error("a buyer who was read once is copied to Redis")
		}
	})
}

func TestUnknownPersonIsNil(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for range 2 {
			if u, err := f.cfg.Directory.User(t.Context(), noUser); u != nil || err != nil {
				t.Errorf("%+v, %v", u, err)
			}
		}
		if _, err := f.cfg.Directory.Role(t.Context(), noUser); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("role of no user: %v", err)
		}
	})
}

func TestRoleTakenAwayStopsWorkingEverywhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		there := f.another(testKeys)
		who := someone()
		u, err := f.store.Create(t.Context(), who, auth.Admin)
		if err != nil {
			t.Fatal(err)
		}
		in := f.login(who.Account, goodPassword)
		for _, process := range []*fixture{f, there} {
			if p := process.principal(in.Tokens.Access); p == nil || p.Role != auth.Admin {
				t.Fatalf("principal %+v", p)
			}
		}
		changed, err := f.admin.SetRole(t.Context(), id.User{}, u.ID, auth.Customer)
		if err != nil || changed.Role != auth.Customer || changed.Version != 2 {
			t.Fatalf("%+v, %v", changed, err)
		}
		for _, process := range []*fixture{f, there} {
			process.over(in.Tokens.Access, "the token of the former role ends")
		}
		if _, err := f.admin.SetRole(t.Context(), id.User{}, u.ID, auth.Operator); err != nil {
			t.Fatal(err)
		}
		f.refreshRefused("a session of the former role", in.Tokens.Refresh)
		if p := f.principal(f.login(who.Account, goodPassword).Tokens.Access); p.Role != auth.Operator {
			t.Errorf("the next token says %s", p.Role)
		}
		if none, err := f.admin.SetRole(t.Context(), id.User{}, noUser, auth.Operator); none != nil || err != nil {
			t.Errorf("no user: %+v, %v", none, err)
		}
	})
}

func TestRoleTakenAwayBehindOurBackStopsWithinTenSeconds(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	u, err := f.store.Create(t.Context(), who, auth.Operator)
	if err != nil {
		t.Fatal(err)
	}
	in := f.login(who.Account, goodPassword)
	late := f.another(testKeys)
	f.principal(in.Tokens.Access)
	f.db.Ent.User.UpdateOneID(u.ID).SetRole(user.RoleCUSTOMER).ExecX(t.Context()) // no new version, no notification
	f.advance(staffTTL - time.Millisecond)
	late.principal(in.Tokens.Access) // caches the old copy at the last moment
	f.advance(localTTL)
	for _, process := range []*fixture{f, late} {
		if p := process.principal(in.Tokens.Access); p.Role != auth.Customer {
			t.Errorf("%s after %s", p.Role, staffTTL+localTTL)
		}
	}
}

func TestOlderCopyNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.register(someone())
		newer := *in.User
		newer.Version, newer.DisplayName = 3, "New name"
		f.cfg.Directory.cache(t.Context(), &newer)
		f.cfg.Directory.cache(t.Context(), in.User) // read before the change, written after it
		got, err := f.cfg.Directory.fromRedis(t.Context(), []id.User{in.User.ID})
		if err != nil || got[in.User.ID].DisplayName != "New name" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestDirectoryWorksWithoutRedisAndWithSpoiltCopies(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	in := f.register(someone())
	d := f.cfg.Directory
	for _, spoilt := range []string{"{", "{}", `{"ID":"` + noUser.String() + `","Role":"ADMIN"}`} {
		f.mini.HSet(d.key(in.User.ID), "user", spoilt)
		d.Forget(in.User.ID)
		if got, err := d.User(t.Context(), in.User.ID); err != nil || !sameUser(got, in.User) {
			t.Errorf("%s: %+v, %v", spoilt, got, err)
		}
	}
	f.mini.SetError("LOADING")
	defer f.mini.SetError("")
	d.Forget(in.User.ID)
	if got, err := d.User(t.Context(), in.User.ID); err != nil || !sameUser(got, in.User) {
		t.Errorf("without Redis: %+v, %v", got, err)
	}
}

func TestAccountsAreMadeWithAnyRoleByTools(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		who := someone()
		outcomes := make(chan fault.Reason, 10)
		var all sync.WaitGroup
		for range cap(outcomes) {
			all.Go(func() {
				_, err := f.store.Create(t.Context(), who, auth.Admin)
				outcomes <- fault.ReasonOf(testenv.Refusal(t, err))
			})
		}
		all.Wait()
		close(outcomes)
		made := 0
		for why := range outcomes {
			if why == "" {
				made++
			} else if why != fault.AccountTaken {
				t.Errorf("refused: %s", why)
			}
		}
		if made != 1 || f.users() != 1 {
			t.Errorf("%d made, %d accounts", made, f.users())
		}
		if _, err := f.store.Create(t.Context(), someone(), "ROOT"); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("unknown role: %v", err)
		}
	})
}

// A copy in Redis is for processes of the installation only.
func TestRedisHoldsNoNameAndNoAddressInClear(t *testing.T) {
	t.Parallel()
	f := real(t)
	who := someone()
	who.DisplayName = "Ann Clear"
	in := f.register(who)
	if _, err := f.cfg.Directory.User(t.Context(), in.User.ID); err != nil { // caches
		t.Fatal(err)
	}
	all, err := f.conn.Cmd.HGetAll(t.Context(), f.prefix+"user:"+in.User.ID.String()).Result()
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for field, value := range all {
		if strings.Contains(value, who.Account) || strings.Contains(value, who.DisplayName) {
			t.Errorf("%s: %q", field, value)
		}
	}
}
