package member_test

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/member"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type env struct {
	t       *testing.T
	db      *postgres.DB
	clock   *clock.Fake
	members *member.Service
	users   *account.Directory
	config  member.Config
	sale    *sale.Sale
}

// onBoth runs a test on Postgres and on SQLite.
func onBoth(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	for name, db := range map[string]func(testing.TB) *postgres.DB{"postgres": testdb.Postgres, "sqlite": testdb.SQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, db(t)))
		})
	}
}

// setup returns the service, and a sale for the list vip, and an hour later for all.
func setup(t *testing.T, db *postgres.DB) *env {
	t.Helper()
	e := &env{t: t, db: db, clock: clock.NewFake(time.Now().Truncate(time.Millisecond))}
	conn, prefix := testenv.Redis(t)
	log := slog.New(slog.DiscardHandler)
	keys, err := auth.NewKeys(auth.Key{ID: "k1", Secret: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	names := account.Names{Country: "CN"}
	e.users = account.NewDirectory(account.DirectoryConfig{Store: account.NewStore(e.db, e.clock, names), Client: conn.Script,
		Prefix: prefix, Keys: keys, Clock: e.clock, Log: log})
	e.config = member.Config{DB: e.db, Users: e.users, Names: names, Secrets: keys.Derive("members"),
		Security: account.NewSecurityLog(e.db, e.clock, log), Clock: e.clock}
	e.members = member.New(e.config)
	e.sale = &sale.Sale{ID: id.New[id.Sale](), StartsAt: e.clock.Now(), Access: access.Rules{
		{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.All, After: 3600},
	}}
	return e
}

// user creates an account, verified if so, with an id in another system, "" = none.
func (e *env) user(contact string, verified bool, externalID string) id.User {
	e.t.Helper()
	user := id.New[id.User]()
	create := e.db.Ent.User.Create().SetID(user).SetAccount(contact).SetDisplayName("Buyer").SetPasswordHash("-").
		SetCreatedAt(e.clock.Now())
	if verified {
		create.SetVerifiedAt(e.clock.Now())
	}
	if externalID != "" {
		create.SetExternalID(externalID)
	}
	if err := create.Exec(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	return user
}

func (e *env) apply(c member.Change) member.Changed {
	e.t.Helper()
	if c.List == "" {
		c.List = "vip"
	}
	out, err := e.members.Apply(e.t.Context(), id.New[id.User](), c)
	if err != nil {
		e.t.Fatalf("%+v: %v", c, err)
	}
	return out
}

// open reports whether a user may buy at the opening.
func (e *env) open(user id.User) bool {
	e.t.Helper()
	a, restricted, err := e.members.Access(e.t.Context(), e.sale, user)
	if err != nil || !restricted {
		e.t.Fatalf("%+v %t %v", a, restricted, err)
	}
	return a.Open(e.sale.StartsAt)
}

func TestAMemberIsNamedByAccountContactOrExternalID(t *testing.T) {
	t.Parallel()
	onBoth(t, membersAreNamed)
}

func membersAreNamed(t *testing.T, e *env) {
	t.Helper()
	byID, byMail := e.user("a@example.com", false, ""), e.user("b@example.com", true, "")
	byOther, unverified := e.user("c@example.com", false, "crm-7"), e.user("d@example.com", false, "")
	phone, stranger := e.user("+8613800001111", true, ""), e.user("e@example.com", true, "crm-8")
	e.apply(member.Change{Mode: member.Add, By: member.ByAccount, Rows: []string{byID.Public()}})
	e.apply(member.Change{Mode: member.Add, By: member.ByContact,
		Rows: []string{"B@Example.com,Bea", `"d@example.com","Dee"`, "138 0000 1111"}})
	e.apply(member.Change{Mode: member.Add, By: member.ByExternalID, Rows: []string{"crm-7"}})
	for user, want := range map[id.User]bool{byID: true, byMail: true, byOther: true, phone: true, unverified: false,
		stranger: false} {
		if e.open(user) != want {
			t.Errorf("user %s is let in: %t", user, !want)
		}
	}
	rows, err := e.db.Ent.AccessMember.Query().All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(row.Member, "@") || strings.Contains(row.Member, "138") {
			t.Errorf("the contact %s is stored", row.Member)
		}
	}
}

// The rows of a file come in batches, and those without an account are reported by their lines.
func TestRowsWithoutAnAccountAreReportedByLine(t *testing.T) {
	t.Parallel()
	onBoth(t, rowsAreReported)
}

func rowsAreReported(t *testing.T, e *env) {
	t.Helper()
	known, none := e.user("a@example.com", true, ""), id.New[id.User]()
	deleted := e.user(account.DeletedPrefix+"x", false, "")
	got := e.apply(member.Change{Mode: member.Replace, By: member.ByAccount, FirstLine: 11,
		Rows: []string{"account", known.Public(), "", none.Public(), deleted.Public(), `"`, known.Public()}})
	want := member.Changed{Rows: 2, Members: 1, Problems: []member.Problem{{11, member.Malformed},
		{14, member.UnknownAccount}, {15, member.UnknownAccount}, {16, member.Malformed}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = e.apply(member.Change{Mode: member.Add, By: member.ByContact, FirstLine: 1,
		Rows: []string{"\ufeffemail", "new@example.com", "a@example.com"}})
	want = member.Changed{Rows: 2, Members: 3, Problems: []member.Problem{{1, member.Malformed}, {2, member.NoAccountYet}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if later := e.user("new@example.com", true, ""); !e.open(later) {
		t.Error("the contact of a later account is not let in")
	}
	if got := e.apply(member.Change{Mode: member.Remove, By: member.ByContact, Rows: []string{"new@example.com"}}); got.Members != 2 {
		t.Errorf("after the removal %+v", got)
	}
	if got := e.apply(member.Change{Mode: member.Replace, By: member.ByContact}); got.Members != 0 {
		t.Errorf("after the replacement by no rows %+v", got)
	}
	if e.open(known) {
		t.Error("a former member is let in")
	}
}

// Repeated look-ups cost one read a minute for each user, with and without access.
func TestTheListsOfAUserAreReadOnceAMinute(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	user := e.user("a@example.com", true, "")
	for range 100 {
		if e.open(user) {
			t.Fatal("a stranger is let in")
		}
	}
	// by another process
	if _, err := member.New(e.config).Apply(t.Context(), user, member.Change{List: "vip", Mode: member.Add, By: member.ByAccount,
		Rows: []string{user.Public()}}); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(member.Fresh - time.Second)
	if e.open(user) {
		t.Error("the lists were read again within a minute")
	}
	e.clock.Advance(time.Second)
	if !e.open(user) {
		t.Error("a member is not let in after a minute")
	}
}

func TestListsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	for name, c := range map[string]member.Change{
		"no name":       {},
		"capitals":      {List: "VIP"},
		"too long":      {List: strings.Repeat("v", 41)},
		"too many rows": {List: "vip", Rows: make([]string, member.MaxRows+1)},
	} {
		c.Mode, c.By = member.Add, member.ByContact
		if _, err := e.members.Apply(t.Context(), id.User{}, c); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := e.db.SQL.ExecContext(t.Context(), `INSERT INTO access_members (id, list, member, created_at)
		SELECT gen_random_uuid(), 'list-' || i, 'a:x', now() FROM generate_series(1, $1::int) i`, member.MaxLists)
	if err != nil {
		t.Fatal(err)
	}
	user := e.user("a@example.com", true, "")
	c := member.Change{List: "one-more", Mode: member.Add, By: member.ByAccount, Rows: []string{user.Public()}}
	if _, err := e.members.Apply(t.Context(), id.User{}, c); fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("list %d: %v", member.MaxLists+1, err)
	}
}
