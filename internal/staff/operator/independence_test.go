package operator_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill/ent/user"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

// member adds a user with a role that another user granted; zero = the command line did.
func (e *env) member(log *account.SecurityLog, by id.User, age time.Duration, codes bool) sale.Actor {
	e.t.Helper()
	who := sale.Actor{ID: id.New[id.User](), Role: auth.Admin}
	create := e.db.Ent.User.Create().SetID(who.ID).SetAccount(who.ID.String() + "@example.com").SetDisplayName("Member").SetPasswordHash("x").
		SetRole(user.Role(auth.Admin)).SetVersion(1).SetCreatedAt(e.clock.Now().Add(-age))
	if codes {
		create.SetTotpSince(e.clock.Now())
	}
	e.must(create.Exec(e.t.Context()))
	log.Write(e.t.Context(), account.Event{Kind: account.EventRoleChanged, Actor: by, Subject: who.ID})
	return who
}

// One administrator registered a second account, promoted it, and approved the own sale.
func TestAnAccountThatTheAuthorPromotedIsNoSecondPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		log := account.NewSecurityLog(e.db, e.clock, slog.New(slog.DiscardHandler))
		cfg := e.config(nil)
		cfg.Persons = account.NewPersons(e.db, e.clock)
		e.ops = operator.New(cfg)
		const old, young = 48 * time.Hour, time.Minute
		author := e.member(log, id.User{}, old, false)
		helper := e.member(log, author.ID, old, true)
		root := e.member(log, id.User{}, young, false)
		twin := e.member(log, id.User{}, old, true)
		e.must(e.db.Ent.User.UpdateOneID(author.ID).SetAccount("ann.author@gmail.com").Exec(t.Context()))
		e.must(e.db.Ent.User.UpdateOneID(twin.ID).SetAccount("annauthor+2@googlemail.com").Exec(t.Context()))
		for _, c := range []struct {
			what          string
			author, other sale.Actor
			want          account.Dependence
		}{
			{"promoted by the author", author, helper, account.Promoted},
			{"who promoted the author", helper, author, account.Promoted},
			{"promoted by another user, a day old, with codes", author, e.member(log, root.ID, old, true), ""},
			{"promoted by another user, younger than a day", author, e.member(log, root.ID, young, true), account.NewAccount},
			{"promoted by another user, without codes", author, e.member(log, root.ID, old, false), account.NoSecondFactor},
			{"with the same mailbox", author, twin, account.SameContact},
			{"made by the command line today", author, root, ""},
		} {
			v, err := e.ops.CreateSale(t.Context(), c.author, e.draft(5))
			e.must(err)
			_, err = e.ops.Submit(t.Context(), operator.ActInput{By: c.author, Sale: v.ID})
			e.must(err)
			_, err = e.ops.Approve(t.Context(), operator.ActInput{By: c.other, Sale: v.ID})
			refusal, refused := errors.AsType[operator.SamePerson](err)
			if refusal.Because != c.want || refused != (c.want != "") || !refused && err != nil {
				t.Errorf("approval by an account %s: %v, want %q", c.what, err, c.want)
			}
			live := e.put(sale.Live, 10)
			act, err := e.ops.AdjustStock(t.Context(), operator.AdjustInput{
				By: c.author, Item: live.Items[0].ID, Units: operator.DefaultTwoPersonUnits + 1, Note: "more",
			})
			e.must(err)
			_, err = e.ops.Decide(t.Context(), operator.DecideInput{By: c.other, Intervention: act.ID, Confirm: true})
			refusal, refused = errors.AsType[operator.SamePerson](err)
			if refusal.Because != c.want || refused != (c.want != "") || !refused && err != nil {
				t.Errorf("confirmation by an account %s: %v, want %q", c.what, err, c.want)
			}
		}
	})
}
