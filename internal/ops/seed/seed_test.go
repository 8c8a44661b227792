package seed_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/ent/stockmovement"
	"seckill/ent/user"
	buysale "seckill/internal/buy/sale"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

// loads records which sales a seeder asked to be loaded.
type loads struct {
	sales []id.Sale
	err   error // of each load
}

func (l *loads) Load(_ context.Context, sale id.Sale) error {
	l.sales = append(l.sales, sale)
	return l.err
}

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// users gives users readable credentials and counts the hashes.
type users struct{ hashes int }

func (u *users) Hash(password string) (string, error) {
	u.hashes++
	return "hash of " + password, nil
}

func (*users) Token(u seed.User) (string, error) { return "token of " + u.Account, nil }

func (*users) Paths(_ context.Context, in seed.PathsInput) ([]string, error) {
	paths := make([]string, len(in.Users))
	for i, u := range in.Users {
		paths[i] = fmt.Sprintf("path of %s for %s", u.Account, in.TTL)
	}
	return paths, nil
}

func setup(t *testing.T, db *postgres.DB) (*seed.Seeder, *loads, *users) {
	t.Helper()
	l, u := &loads{}, &users{}
	return &seed.Seeder{DB: db, Clock: clock.NewFake(start), NewID: id.New[uuid.UUID], Gates: l, Users: u}, l, u
}

func input() seed.Input {
	return seed.Input{Users: 4501, Stock: 200, OpensIn: time.Minute, Lasts: time.Hour, PurchaseLimit: 1, PaymentWindow: 15 * time.Minute}
}

func TestASeedIsAnApprovedSaleWithItsStockInTheLedger(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	s, loaded, made := setup(t, db)
	in := input()
	in.PathTTL, in.PermitRatio = 10*time.Minute, 1.25
	result, err := s.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	saleID, err := id.ParseSale(result.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	row := db.Ent.Sale.GetX(t.Context(), saleID)
	if row.Status != sale.StatusSCHEDULED || !row.StartsAt.Equal(start.Add(time.Minute)) || !row.EndsAt.Equal(start.Add(61*time.Minute)) || row.PaymentWindowSeconds != 900 ||
		row.PermitPerMille != 1250 {
		t.Errorf("sale is %v", row)
	}
	item := db.Ent.SaleItem.Query().OnlyX(t.Context())
	if item.ID.Public() != result.ItemID || item.SaleID != saleID || item.Total != 200 || item.Available != 200 {
		t.Errorf("item is %v, want %s", item, result.ItemID)
	}
	move := db.Ent.StockMovement.Query().OnlyX(t.Context())
	if move.Kind != stockmovement.KindOPEN || move.Quantity != 200 || move.ItemID != item.ID {
		t.Errorf("movement is %v", move)
	}
	sales := buysale.NewStore(db.Ent)
	v, err := sales.ByID(t.Context(), saleID)
	if err != nil {
		t.Fatal(err)
	}
	approval, err := sales.Approval(t.Context(), saleID)
	if err != nil || approval == nil {
		t.Fatalf("what was approved is %v: %v", approval, err)
	}
	terms, err := approval.Compare(v)
	if err != nil || len(terms) == 0 || slices.ContainsFunc(terms, buysale.Term.Changed) {
		t.Errorf("what was approved is %v: %v", terms, err)
	}
	if diff := cmp.Diff([]id.Sale{saleID}, loaded.sales); diff != "" {
		t.Errorf("loaded sales (-want +got):\n%s", diff)
	}
	if made.hashes != 1 {
		t.Errorf("%d passwords were hashed, want one for all", made.hashes)
	}
	checkUsers(t, db, result)
}

func checkUsers(t *testing.T, db *postgres.DB, result *seed.Result) {
	t.Helper()
	if n := db.Ent.User.Query().CountX(t.Context()); n != 4501 || len(result.Users) != n {
		t.Fatalf("%d rows and %d users", n, len(result.Users))
	}
	last := result.Users[4500]
	row := db.Ent.User.Query().Where(user.Account(last.Account)).OnlyX(t.Context())
	if row.PasswordHash != "hash of "+last.Password || row.Role != user.RoleCUSTOMER {
		t.Errorf("row is %v", row)
	}
	want := seed.LoadUser{Account: last.Account, Password: last.Password, AccessToken: "token of " + last.Account, Path: "path of " + last.Account + " for 10m0s"}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("last user (-want +got):\n%s", diff)
	}
}

func TestTheJSONHasTheAgreedNames(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(seed.Result{SaleID: "sal_1", ItemID: "itm_1", Users: []seed.LoadUser{{Account: "a", Password: "p", AccessToken: "t", Path: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"saleId":"sal_1","itemId":"itm_1","users":[{"account":"a","password":"p","accessToken":"t","path":"x"}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestTwoSeedsStandSideBySide(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	s, _, _ := setup(t, db)
	in := input()
	in.Users = 3
	for range 2 {
		if _, err := s.Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if n := db.Ent.User.Query().CountX(t.Context()); n != 6 {
		t.Errorf("%d users, want 6", n)
	}
}

func TestUnfitInputMakesNothing(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	s, _, _ := setup(t, db)
	for name, spoil := range map[string]func(*seed.Input){
		"users": func(in *seed.Input) { in.Users = -1 }, "stock": func(in *seed.Input) { in.Stock = 0 },
		"lasts": func(in *seed.Input) { in.Lasts = 0 }, "limit": func(in *seed.Input) { in.PurchaseLimit = 11 },
		"payment": func(in *seed.Input) { in.PaymentWindow = 0 }, "paths": func(in *seed.Input) { in.PathTTL = -1 },
	} {
		in := input()
		spoil(&in)
		if _, err := s.Run(t.Context(), in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := db.Ent.Goods.Query().CountX(t.Context()); n != 0 {
		t.Errorf("%d goods", n)
	}
}

func TestASaleThatCannotBeLoadedIsAnError(t *testing.T) {
	t.Parallel()
	s, _, _ := setup(t, testdb.Postgres(t))
	away := errors.New("redis is away")
	s.Gates = &loads{err: away}
	in := input()
	in.Users = 1
	if _, err := s.Run(t.Context(), in); !errors.Is(err, away) {
		t.Errorf("error is %v", err)
	}
}

func TestTheDemoHasSalesInTwoLanguagesAndAnAccountOfEachRole(t *testing.T) {
	t.Parallel()
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, loaded, _ := setup(t, db)
			demo, err := s.Demo(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Demo(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("a second demo: %v", err)
			}
			for _, made := range db.Ent.Sale.Query().AllX(t.Context()) {
				if made.PaymentWindowSeconds != 60 {
					t.Errorf("%d seconds to pay in %q, want 60", made.PaymentWindowSeconds, made.Title)
				}
			}
			if !demo.Open.Opens.Before(start) || demo.Soon.Opens.Sub(start) != 20*time.Second {
				t.Errorf("open since %s, soon at %s", demo.Open.Opens, demo.Soon.Opens)
			}
			if diff := cmp.Diff([]id.Sale{demo.Open.Sale, demo.Soon.Sale, demo.ChineseOpen.Sale, demo.ChineseSoon.Sale}, loaded.sales); diff != "" {
				t.Errorf("loaded sales (-want +got):\n%s", diff)
			}
			goods := db.Ent.Goods.Query().AllX(t.Context())
			if len(goods) != 16 {
				t.Errorf("%d goods, want 16", len(goods))
			}
			drawings := map[string]bool{}
			for _, g := range goods {
				drawings[drawing(t, g)] = true
			}
			if len(drawings) != len(goods)/2 { // both languages have the same ones
				t.Errorf("%d drawings for %d goods", len(drawings), len(goods))
			}
			roles := map[user.Role]int{}
			for _, u := range db.Ent.User.Query().AllX(t.Context()) {
				roles[u.Role]++
			}
			if diff := cmp.Diff(map[user.Role]int{user.RoleCUSTOMER: 2, user.RoleOPERATOR: 1, user.RoleADMIN: 1}, roles); diff != "" {
				t.Errorf("roles (-want +got):\n%s", diff)
			}
		})
	}
}

// drawing checks a product and returns its picture as SVG.
func drawing(t *testing.T, g *ent.Goods) string {
	t.Helper()
	if g.Currency != "CNY" || g.ListPriceMinor < 100 || len(g.Description) < 40 || g.ImageURL == nil {
		t.Fatalf("goods is %v", g)
	}
	escaped, ok := strings.CutPrefix(*g.ImageURL, "data:image/svg+xml,")
	svg, err := url.PathUnescape(escaped)
	var element struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	}
	if !ok || err != nil || xml.Unmarshal([]byte(svg), &element) != nil {
		t.Errorf("the picture of %s is %.60q", g.Name, *g.ImageURL)
	}
	return svg
}

// databases returns one database of each kind that a demo or a seed can run on.
func databases(t *testing.T) map[string]*postgres.DB {
	t.Helper()
	return map[string]*postgres.DB{"postgres": testdb.Postgres(t), "sqlite": testdb.SQLite(t)}
}
