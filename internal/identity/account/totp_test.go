package account

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/hotp"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// app is a user with an authenticator app.
type app struct {
	*fixture
	who    NewUser
	here   *SignedIn
	secret string
}

func (f *fixture) withApp() *app {
	f.t.Helper()
	who := someone()
	return &app{fixture: f, who: who, here: f.register(who)}
}

// code returns the code that the app shows after some steps.
func (a *app) code(steps int64) string {
	a.t.Helper()
	code, err := hotp.GenerateCodeCustom(a.secret, uint64(a.clock.Now().Unix()/totpPeriod+steps), totpOptions)
	if err != nil {
		a.t.Fatal(err)
	}
	return code
}

func (a *app) start() {
	a.t.Helper()
	made, err := a.StartTOTP(a.t.Context(), a.principal(a.here.Tokens.Access), a.who.Password, address(1))
	if err != nil {
		a.t.Fatal(err)
	}
	a.secret = made.Secret
	if !strings.Contains(made.URI, "secret="+made.Secret) || !strings.HasPrefix(made.URI, "otpauth://totp/Seckill:") {
		a.t.Errorf("address of the secret: %s", made.URI)
	}
}

// enrol turns one-time codes on and returns the recovery codes.
func (a *app) enrol() []string {
	a.t.Helper()
	a.start()
	codes, _, err := a.ConfirmTOTP(a.t.Context(), a.principal(a.here.Tokens.Access), a.code(0))
	if err != nil {
		a.t.Fatal(err)
	}
	return codes
}

// try signs in with a code and returns the reason of the refusal.
func (a *app) try(code string) fault.Reason {
	a.t.Helper()
	_, err := a.Login(a.t.Context(), LoginInput{Account: a.who.Account, Password: a.who.Password, Code: code})
	if err == nil {
		return ""
	}
	return fault.ReasonOf(testenv.Refusal(a.t, err))
}

func TestSignInNeedsAOneTimeCodeOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		a := f.withApp()
		elsewhere := f.login(a.who.Account, a.who.Password)
		p := f.principal(a.here.Tokens.Access)
		if _, _, err := f.ConfirmTOTP(t.Context(), p, "000000"); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("confirmed without a secret: %v", err)
		}
		a.start()
		if why := a.try(""); why != "" {
			t.Errorf("before it is confirmed: %s", why)
		}
		if _, _, err := f.ConfirmTOTP(t.Context(), p, "000000"); fault.ReasonOf(err) != fault.OneTimeCodeInvalid {
			t.Errorf("confirmed with a guess: %v", err)
		}
		codes, ended, err := f.ConfirmTOTP(t.Context(), p, a.code(0))
		if err != nil || len(codes) != recoveryCount || ended != 2 {
			t.Fatalf("%d recovery codes, %d sessions ended, %v", len(codes), ended, err)
		}
		if f.principal(a.here.Tokens.Access) == nil || f.principal(elsewhere.Tokens.Access) != nil {
			t.Error("this session goes on, the others end")
		}
		if _, err := f.StartTOTP(t.Context(), p, a.who.Password, address(1)); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("another secret replaces a confirmed one: %v", err)
		}
		f.advance(totpPeriod * time.Second)
		for _, c := range []struct {
			what, code string
			want       fault.Reason
		}{
			{"no code", "", fault.OneTimeCodeRequired},
			{"the code", a.code(0), ""},
			{"the same code again", a.code(0), fault.OneTimeCodeInvalid},
			{"the code before", a.code(-1), fault.OneTimeCodeInvalid},
			{"the next code, typed in two parts", a.code(1)[:3] + " " + a.code(1)[3:], ""},
			{"a code from the future", a.code(2), fault.OneTimeCodeInvalid},
			{"a recovery code", strings.ToLower(codes[3]), ""},
			{"the recovery code again", codes[3], fault.OneTimeCodeInvalid},
			{"another recovery code", strings.ReplaceAll(codes[4], "-", ""), ""},
		} {
			if why := a.try(c.code); why != c.want {
				t.Errorf("%s: %q, want %q", c.what, why, c.want)
			}
		}
		events, err := f.security.Since(t.Context(), f.clock.Now().Add(-time.Hour), a.here.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []EventKind{EventTOTPOn, EventRecoveryCode, EventSignInFailed} {
			if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == kind }) {
				t.Errorf("the security log has no %s: %+v", kind, events)
			}
		}
	})
}

func TestOneTimeCodesAreRemovedWithPasswordAndCodeOrByStaff(t *testing.T) {
	t.Parallel()
	f := real(t)
	a := f.withApp()
	codes := a.enrol()
	p := f.principal(a.here.Tokens.Access)
	remove := func(password, code string) fault.Reason {
		_, err := f.RemoveTOTP(t.Context(), p, RemoveTOTPInput{Password: password, Code: code, Addr: address(1)})
		return fault.ReasonOf(err)
	}
	if why := remove("a wrong password", codes[0]); why != fault.InvalidCredentials {
		t.Errorf("with a wrong password: %q", why)
	}
	if why := remove(a.who.Password, "000000"); why != fault.OneTimeCodeInvalid {
		t.Errorf("with a wrong code: %q", why)
	}
	if why := remove(a.who.Password, codes[0]); why != "" {
		t.Errorf("with both: %q", why)
	}
	if why := a.try(""); why != "" {
		t.Errorf("afterwards: %q", why)
	}
	f.advance(2 * totpPeriod * time.Second)
	a.enrol()
	other := f.another(testKeys)
	if err := f.admin.ResetTOTP(t.Context(), noUser, a.here.User.ID); err != nil {
		t.Fatal(err)
	}
	other.over(a.here.Tokens.Access, "the user is signed out everywhere")
	if why := a.try(""); why != "" {
		t.Errorf("after a reset: %q", why)
	}
}

// Who knows the password must not be able to try all codes.
func TestCodesAreGuessedAsSlowlyAsPasswords(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	a := f.withApp()
	a.enrol()
	got := map[fault.Reason]int{}
	for n := range 12 {
		code := "000000"
		if n%2 == 1 {
			code = "" // must not clear what was counted
		}
		got[a.try(code)]++
	}
	if evaluated := got[fault.OneTimeCodeInvalid] + got[fault.OneTimeCodeRequired]; evaluated != captchaFrom {
		t.Errorf("%v: %d evaluated, want %d", got, evaluated, captchaFrom)
	}
}

func TestStaffWithoutRequiredCodesHaveTheRightsOfACustomer(t *testing.T) {
	t.Parallel()
	f := real(t)
	f.staffTOTP = true
	f.start(testKeys)
	who := someone()
	if _, err := f.store.Create(t.Context(), who, auth.Admin); err != nil {
		t.Fatal(err)
	}
	a := &app{fixture: f, who: who, here: f.login(who.Account, who.Password)}
	if a.here.Role != auth.Customer || f.principal(a.here.Tokens.Access).Role != auth.Customer {
		t.Errorf("granted %s", a.here.Role)
	}
	codes := a.enrol()
	a.here = f.refresh(a.here.Tokens.Refresh)
	p := f.principal(a.here.Tokens.Access)
	if p.Role != auth.Admin {
		t.Errorf("granted %s after enrolment", p.Role)
	}
	if _, err := f.RemoveTOTP(t.Context(), p, RemoveTOTPInput{Password: who.Password, Code: codes[0]}); err != nil {
		t.Fatal(err)
	}
	if p := f.principal(a.here.Tokens.Access); p.Role != auth.Customer {
		t.Errorf("granted %s by the same token after removal", p.Role)
	}
}

func TestSecretsSurviveTheRotationOfSigningKeys(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	a := f.withApp()
	a.enrol()
	next := auth.Key{ID: "k2", Secret: []byte(strings.Repeat("next-key", 4))}
	for _, keys := range []auth.Keys{mustKeys(next, auth.Key{ID: "k1", Secret: []byte(strings.Repeat("test-key", 4))}), mustKeys(next)} {
		f.advance(totpPeriod * time.Second)
		b := &app{fixture: f.another(keys), who: a.who, secret: a.secret}
		if why := b.try(b.code(0)); why != "" {
			t.Errorf("after the rotation: %q", why)
		}
	}
}

// A stolen session and password must not change an account that has one-time codes.
func TestChangesOfAnAccountNeedItsOneTimeCode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		m := f.withMail()
		a := &app{fixture: m.fixture, who: someone()}
		a.here = m.register(a.who)
		codes := a.enrol()
		p := m.principal(a.here.Tokens.Access)
		for i, c := range []struct {
			what string
			act  func(code string) error
		}{
			{"another address", func(code string) error {
				return m.RequestEmail(t.Context(), p, RequestEmailInput{Email: "other@example.com", Password: a.who.Password, Code: code, Addr: address(1)})
			}},
			{"personal data", func(code string) error {
				_, err := m.PersonalData(t.Context(), p, PersonalDataInput{Password: a.who.Password, Code: code, Addr: address(1)})
				return err
			}},
			{"the password", func(code string) error {
				_, err := m.ChangePassword(t.Context(), p, ChangePasswordInput{Current: a.who.Password, Next: freshPassword, Code: code, Addr: address(1)})
				return err
			}},
		} {
			wantReason(t, c.what+" without a code", c.act(""), fault.OneTimeCodeRequired)
			wantReason(t, c.what+" with a wrong code", c.act("000000"), fault.OneTimeCodeInvalid)
			wantReason(t, c.what+" with a code", c.act(codes[i]), "")
		}
	})
}

// Otherwise the owner of a mailbox could never use an account that another person
// registered with its address.
func TestAResetRemovesOneTimeCodesOfAnUnverifiedContact(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		m := f.withMail()
		for _, verified := range []bool{false, true} {
			a := &app{fixture: m.fixture, who: someone()}
			a.here = m.register(a.who)
			if verified {
				_, err := m.ConfirmEmail(t.Context(), m.deliver(a.who.Account).Token(), address(1))
				wantReason(t, "verify", err, "")
			}
			a.enrol()
			wantReason(t, "request", m.forgot(a.who.Account), "")
			_, err := m.reset(m.deliver(a.who.Account).Token(), freshPassword)
			wantReason(t, "reset", err, "")
			a.who.Password = freshPassword
			want := fault.Reason("")
			if verified {
				want = fault.OneTimeCodeRequired
			}
			if why := a.try(""); why != want {
				t.Errorf("verified %t: sign-in after a reset: %q, want %q", verified, why, want)
			}
		}
	})
}
