package recipient_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"seckill/ent"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var home = recipient.Recipient{
	Name: "Lin Xiaoyu", Phone: "+86 138 0000 1111", Country: "CN", Region: "浙江省", City: "杭州市", Street: "文三路 90 号 3 幢", PostalCode: "310012",
}

func at(street string) recipient.Address {
	r := home
	r.Street = street
	return recipient.Address{Recipient: r}
}

func streets(t *testing.T, b *recipient.Book, user id.User) (text string) {
	t.Helper()
	list, err := b.List(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		text += a.Street
		if a.Default {
			text += "*"
		}
		text += " "
	}
	return strings.TrimSpace(text)
}

func TestAnAddressBookHasExactlyOneDefault(t *testing.T) {
	t.Parallel()
	b, user := recipient.NewBook(testdb.Postgres(t), nil, testenv.Wait), id.New[id.User]()
	save := func(a recipient.Address, makeDefault bool) recipient.Address {
		t.Helper()
		saved, err := b.Save(t.Context(), user, a, makeDefault)
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	remove := func(a recipient.Address) {
		t.Helper()
		if err := b.Remove(t.Context(), user, a.ID); err != nil {
			t.Fatal(err)
		}
	}
	has := func() bool {
		t.Helper()
		has, err := b.HasDefault(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	if has() {
		t.Fatal("an empty book has a default")
	}
	first, second := save(at("A"), false), save(at("B"), false)
	third := save(at("C"), true)
	if got := streets(t, b, user); got != "A B C*" || !has() {
		t.Fatalf("after three: %s", got)
	}
	third.Street = "D"
	save(third, false)
	if got := streets(t, b, user); got != "A B D*" {
		t.Fatalf("a changed default: %s", got)
	}
	remove(third)
	if got := streets(t, b, user); got != "A* B" {
		t.Fatalf("after the default was removed: %s", got)
	}
	if err := b.Remove(t.Context(), id.New[id.User](), first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Save(t.Context(), id.New[id.User](), first, true); fault.ReasonOf(err) != fault.Unknown {
		t.Fatalf("the address of another user: %v", err)
	}
	if got := streets(t, b, user); got != "A* B" {
		t.Fatalf("after another user tried: %s", got)
	}
	remove(first)
	remove(second)
	if has() {
		t.Fatal("an empty book has a default")
	}
}

func TestConcurrentAdditionsKeepAnAddressBookBounded(t *testing.T) {
	t.Parallel()
	b, user := recipient.NewBook(testdb.Postgres(t), nil, testenv.Wait), id.New[id.User]()
	var wg sync.WaitGroup
	for i := range 2 * recipient.MaxAddresses {
		wg.Go(func() {
			for range 10 * recipient.MaxAddresses { // a refusal of a conflict may be asked again
				_, err := b.Save(t.Context(), user, at(fmt.Sprint(i)), true)
				if err == nil || fault.ReasonOf(err) == fault.Conflict {
					return
				}
			}
		})
	}
	wg.Wait()
	if got := streets(t, b, user); len(strings.Fields(got)) != recipient.MaxAddresses || strings.Count(got, "*") != 1 {
		t.Errorf("the book has %q", got)
	}
}

func TestAnAddressIsBounded(t *testing.T) {
	t.Parallel()
	if _, err := home.Ready(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*recipient.Recipient){
		"name":       func(r *recipient.Recipient) { r.Name = "  " },
		"phone":      func(r *recipient.Recipient) { r.Phone = "call me" },
		"country":    func(r *recipient.Recipient) { r.Country = "China" },
		"region":     func(r *recipient.Recipient) { r.Region = strings.Repeat("省", 65) },
		"city":       func(r *recipient.Recipient) { r.City = "" },
		"street":     func(r *recipient.Recipient) { r.Street = "1\x072" },
		"postalCode": func(r *recipient.Recipient) { r.PostalCode = strings.Repeat("1", 17) },
	} {
		r := home
		change(&r)
		_, err := r.Ready()
		refusal, ok := fault.AsRefusal(err)
		if !ok || refusal.Reason() != fault.InvalidInput || strings.Join(refusal.Path(), ".") != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestALogLineNeverHasAnAddress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := at("文三路 90 号")
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("test", slog.Any("recipient", home), slog.Any("address", a.Recipient), slog.Any("text", fmt.Sprintf("%v %+v %#v %s", home, a, &home, a)))
	}
	for _, secret := range []string{home.Name, home.Phone, home.City, "文三路", home.PostalCode} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log has %q: %s", secret, out.String())
		}
	}
}

func TestAForgottenUserHasNoAddressLeft(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	b, user, other, order := recipient.NewBook(db, nil, testenv.Wait), id.New[id.User](), id.New[id.User](), id.New[id.Order]()
	for _, u := range []id.User{user, other} {
		if _, err := b.Save(t.Context(), u, at("A"), true); err != nil {
			t.Fatal(err)
		}
	}
	within := func(do func(ctx context.Context, tx *ent.Tx) error) {
		t.Helper()
		if err := db.WithTx(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	within(func(ctx context.Context, tx *ent.Tx) error {
		copied, err := recipient.Copy(ctx, tx, []recipient.Order{{ID: order, User: user}, {ID: id.New[id.Order](), User: other}, {ID: id.New[id.Order](), User: id.New[id.User]()}})
		if copied != 2 {
			t.Errorf("%d recipients were copied, want those of two buyers", copied)
		}
		return err
	})
	within(func(ctx context.Context, tx *ent.Tx) error { return recipient.Forget(ctx, tx, user) })
	if of, err := recipient.Of(t.Context(), db.Ent.OrderRecipient, order); err != nil || len(of) != 0 {
		t.Errorf("the order has %v (%v)", of, err)
	}
	if got := streets(t, b, user) + "|" + streets(t, b, other); got != "|A*" {
		t.Errorf("the books have %q", got)
	}
}

func TestAnAddressIsStoredInOneForm(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ phone, country, want string }{
		{"(206) 555-0123", "us", "+12065550123"}, {"206.555.0123", "ＵＳ", "+12065550123"}, {"030/1234567", " DE", "+49301234567"},
		{"\u202a+86 138\u00a00000 1111\u202c", "CN", "+8613800001111"}, {"１３８００００１１１１", "CN", "+8613800001111"}, {"٠٥٠ ١٢٣ ٤٥٦٧", "SA", "+966501234567"},
		{"555-0123", "US", "555-0123"}, // without its area code it is only known there
	} {
		r := home
		r.Phone, r.Country = one.phone, one.country
		ready, err := r.Ready()
		if err != nil || ready.Phone != one.want {
			t.Errorf("%+q in %s: %q, %v; want %q", one.phone, one.country, ready.Phone, err, one.want)
		}
		if again, err := ready.Ready(); err != nil || again != ready {
			t.Errorf("%+v is stored again as %+v, %v", ready, again, err)
		}
	}
	r := home
	r.Name, r.Street, r.PostalCode = "\u200fمحمد\u200f", "شارع  \u202bالملك\u202c\nفهد", "３１００–１２"
	if ready, err := r.Ready(); err != nil || ready.Name != "محمد" || ready.Street != "شارع الملك فهد" || ready.PostalCode != "3100-12" {
		t.Errorf("%+q %+q %+q, %v", ready.Name, ready.Street, ready.PostalCode, err)
	}
	r = home
	r.Street = "a\u202eb"
	if _, err := r.Ready(); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("an override: %v", err)
	}
}
