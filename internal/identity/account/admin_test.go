package account

import (
	"testing"
	"time"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

const nextPassword = "violin tower 46 mist"

// over reports whether an access token stops working in a process.
func (f *fixture) over(access, what string) {
	f.t.Helper()
	testenv.Eventually(f.t, testenv.Wait, func() bool { return f.principal(access) == nil }, what)
}

func TestChangesByStaffEndSessionsInEveryProcess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		other := f.another(testKeys)
		staff := id.New[id.User]()
		for what, change := range map[string]func(u *User) error{
			"role": func(u *User) error { _, err := f.admin.SetRole(t.Context(), staff, u.ID, auth.Operator); return err },
			"disabled": func(u *User) error {
				_, err := f.admin.Disable(t.Context(), staff, u.ID, "sells orders on")
				return err
			},
			"sessions ended": func(u *User) error { _, err := f.admin.EndSessions(t.Context(), staff, u.ID); return err },
			"password set": func(u *User) error {
				return f.admin.SetPassword(t.Context(), staff, u, nextPassword)
			},
		} {
			who := someone()
			in := f.register(who)
			if other.principal(in.Tokens.Access) == nil {
				t.Fatal("the token does not work elsewhere")
			}
			if err := change(in.User); err != nil {
				t.Fatal(what, err)
			}
			if f.principal(in.Tokens.Access) != nil {
				t.Errorf("%s: the token works on here", what)
			}
			other.over(in.Tokens.Access, what+": the token ends elsewhere")
			f.refreshRefused(what, in.Tokens.Refresh)
			events, err := f.security.Since(t.Context(), f.clock.Now().Add(-time.Hour), in.User.ID)
			if err != nil || len(events) != 1 || events[0].Actor != staff {
				t.Errorf("%s: the security log has %+v, %v", what, events, err)
			}
		}
	})
}

func TestADisabledUserCannotSignInUntilEnabled(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	in := f.register(who)
	if _, err := f.admin.Disable(t.Context(), id.User{}, in.User.ID, "fraud"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password}); fault.ReasonOf(err) != fault.InvalidCredentials {
		t.Error(err)
	}
	if _, err := f.admin.Enable(t.Context(), id.User{}, in.User.ID); err != nil {
		t.Fatal(err)
	}
	f.login(who.Account, who.Password)
	if _, err := f.admin.Disable(t.Context(), in.User.ID, in.User.ID, ""); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("disabled by the same user: %v", err)
	}
}

// An operator of the installation may have SQL access only.
func TestSessionsAndUsersChangedInSQLEndWithinSeconds(t *testing.T) {
	t.Parallel()
	f := real(t)
	ended, disabled := f.register(someone()), f.register(someone())
	if _, err := f.db.SQL.ExecContext(t.Context(), `UPDATE sessions SET revoked_at = now(), revoked_reason = 'by hand' WHERE id = $1`, ended.Session); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.SQL.ExecContext(t.Context(), `UPDATE users SET disabled_at = now(), version = version + 1 WHERE id = $1`, disabled.User.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.over(ended.Tokens.Access, "the token of the ended session stops working")
	f.over(disabled.Tokens.Access, "the token of the disabled user stops working")
	f.refreshRefused("disabled", disabled.Tokens.Refresh)
	t.Logf("ended after %s", time.Since(began))
}

func TestAPasswordIsChangedByItsOwner(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		who := someone()
		here := f.register(who)
		elsewhere := f.login(who.Account, who.Password)
		p := f.principal(here.Tokens.Access)
		change := func(current, next string) (int, fault.Refusal) {
			t.Helper()
			n, err := f.ChangePassword(t.Context(), p, ChangePasswordInput{Current: current, Next: next})
			return n, testenv.Refusal(t, err)
		}
		for next, rule := range map[string]fault.Rule{"short": fault.MinLength(10), who.Password: {Code: "not the present password"}, "password1234": fault.NotCommonPassword} {
			if _, refusal := change(who.Password, next); refusal == nil || refusal.(fault.BadField).Rule != rule {
				t.Errorf("%q: %#v", next, refusal)
			}
		}
		if _, refusal := change("wrong password", nextPassword); fault.ReasonOf(refusal) != fault.InvalidCredentials {
			t.Errorf("wrong password: %#v", refusal)
		}
		if n, refusal := change(who.Password, nextPassword); refusal != nil || n != 1 {
			t.Fatalf("%d sessions ended, %#v", n, refusal)
		}
		if f.principal(here.Tokens.Access) == nil || f.principal(elsewhere.Tokens.Access) != nil {
			t.Error("this session goes on, the others end")
		}
		f.login(who.Account, nextPassword)
		guesses := map[fault.Reason]int{}
		for range 8 { // a stolen token must not allow guessing of the password
			_, refusal := change("wrong password", goodPassword)
			guesses[fault.ReasonOf(refusal)]++
		}
		if guesses[fault.InvalidCredentials] != captchaFrom {
			t.Errorf("guesses with an access token: %v", guesses)
		}
	})
}
