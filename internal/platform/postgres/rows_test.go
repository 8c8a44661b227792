package postgres_test

import (
	"testing"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent/deadletter"
	"seckill/ent/user"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// users returns the selection of the users of an account.
func users(account string) func() *sql.Selector {
	return func() *sql.Selector { return postgres.Rows(user.Table, user.Account(account)) }
}

func TestOneStatementAnswersForManyLoops(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		none := func() *sql.Selector { return postgres.Rows[func(*sql.Selector)](deadletter.Table) }
		first, second := db.AnyRows(none, users("a")), db.AnyRows(users("b"))
		if !first(t.Context()) || !second(t.Context()) {
			t.Error("before the first statement a loop is told to rest")
		}
		ask := func(wantFirst, wantSecond bool) { // an answer may be 100 ms old
			t.Helper()
			testenv.Eventually(t, testenv.Wait, func() bool {
				return first(t.Context()) == wantFirst && second(t.Context()) == wantSecond
			}, "the answers are right")
		}
		register := func(account string) {
			t.Helper()
			err := db.Ent.User.Create().SetID(id.New[id.User]()).SetAccount(account).SetDisplayName("B").SetPasswordHash("-").
				SetCreatedAt(time.Now()).Exec(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		ask(false, false)
		register("b")
		ask(false, true)
		register("a")
		ask(true, true)
		counts, err := db.Counts(t.Context(), map[string]*sql.Selector{"a": users("a")(), "none": none(), "all": users("b")()})
		if err != nil || counts["a"] != 1 || counts["none"] != 0 || counts["all"] != 1 {
			t.Errorf("counts %v, %v", counts, err)
		}
	})
}

// A step whose rows cannot be looked for runs, and reports why.
func TestALookThatFailsLetsTheStepsRun(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	nobody := db.AnyRows(users("nobody"))
	testenv.Eventually(t, testenv.Wait, func() bool { return !nobody(t.Context()) }, "the first answer")
	missing := db.AnyRows(func() *sql.Selector { return postgres.Rows[func(*sql.Selector)]("missing") })
	missing(t.Context())
	testenv.Eventually(t, testenv.Wait, func() bool { return nobody(t.Context()) && missing(t.Context()) }, "every step runs")
}
