package member_test

import (
	"slices"
	"testing"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/member"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

func TestARedeemedCodeGivesAccessToItsSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		user, stranger := e.user("a@example.com", false, ""), e.user("b@example.com", false, "")
		rules := access.Rules{{Kind: access.ByCode, Name: "Press", Source: "press"}, {Kind: access.ByCode, Name: "Fans", Source: "fans", After: 60},
			{Kind: access.List, Name: "Members", Source: "vip", After: 600}}
		batches := access.Batches{{Number: 1, Source: "press", Codes: 5, Uses: 1}, {Number: 2, Source: "fans", Codes: 1, Uses: 300}}
		e.sale.Access, e.sale.Codes = rules, batches
		other := &sale.Sale{ID: id.New[id.Sale](), StartsAt: e.sale.StartsAt, Access: rules, Codes: batches}
		is := func(what string, v *sale.Sale, user id.User, rule string, key person.Key) {
			t.Helper()
			a, restricted, err := e.members.Access(t.Context(), v, user)
			name := ""
			if a.Rule != nil {
				name = a.Rule.Name
			}
			if err != nil || !restricted || name != rule || member.Keys(v, a).Code != key {
				t.Errorf("%s: %q %q %v, want %q %q", what, name, member.Keys(v, a).Code, err, rule, key)
			}
		}
		redeem := func(code access.Code) {
			t.Helper()
			for range 2 { // the second call changes nothing
				if err := e.members.Redeem(t.Context(), e.sale.ID, user, code); err != nil {
					t.Fatal(err)
				}
			}
		}
		is("before", e.sale, user, "", "") // and it is known in memory
		press, fans := access.Code{Batch: 1, Number: 3}, access.Code{Batch: 2, Number: 1}
		redeem(press)
		is("with a code", e.sale, user, "Press", person.CodeOf(press.Index(), 1))
		is("another buyer", e.sale, stranger, "", "")
		is("another sale", other, user, "", "")
		e.apply(member.Change{Mode: member.Add, By: member.ByAccount, Rows: []string{user.Public()}})
		is("beside a list", e.sale, user, "Press", person.CodeOf(press.Index(), 1))
		redeem(fans)
		is("the last code counts", e.sale, user, "Fans", person.CodeOf(fans.Index(), 300))
		e.sale.Codes = slices.Clone(batches)
		e.sale.Codes[1].Revoke(1)
		is("a revoked code", e.sale, user, "Members", "")
		if lists, err := e.members.Lists(t.Context()); err != nil || len(lists) != 1 || lists[0].List != "vip" {
			t.Errorf("lists %+v %v", lists, err)
		}
		rows, err := e.db.Ent.AccessMember.Query().Count(t.Context())
		if err != nil || rows != 2 {
			t.Errorf("%d rows %v", rows, err)
		}
		later := member.New(e.config)
		e.clock.Advance(time.Hour)
		a, _, err := later.Access(t.Context(), other, user)
		if err != nil || a.Rule == nil || a.Rule.Name != "Members" {
			t.Errorf("in another process: %+v %v", a, err)
		}
	})
}
