package sale_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
)

func openRedis(t *testing.T, url string) *redisconn.Conn {
	t.Helper()
	conn, err := redisconn.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// wanted is an independent copy of the state table: act, from, to and actors: o an
// operator (and so an admin), a an admin only, c the clock.
var wanted = map[sale.Act]map[sale.Status]map[sale.Status]string{
	sale.ActUpdate:   {sale.Draft: {sale.Draft: "o"}, sale.Rejected: {sale.Draft: "o"}},
	sale.ActSubmit:   {sale.Draft: {sale.PendingApproval: "o"}},
	sale.ActApprove:  {sale.PendingApproval: {sale.Approved: "a"}},
	sale.ActReject:   {sale.PendingApproval: {sale.Rejected: "a"}},
	sale.ActWithdraw: {sale.PendingApproval: {sale.Draft: "o"}},
	sale.ActDiscard: {
		sale.Draft: {sale.Cancelled: "o"}, sale.Rejected: {sale.Cancelled: "o"}, sale.Ended: {sale.Cancelled: "c"}, sale.Cancelled: {sale.Cancelled: "c"},
	},
	sale.ActSchedule: {sale.Approved: {sale.Scheduled: "o"}, sale.Scheduled: {sale.Scheduled: "o"}, sale.Preheated: {sale.Preheated: "o"}, sale.Paused: {sale.Paused: "o"}},
	sale.ActPreheat:  {sale.Scheduled: {sale.Preheated: "oc"}},
	sale.ActOpen:     {sale.Preheated: {sale.Live: "c"}},
	sale.ActPause:    {sale.Preheated: {sale.Paused: "o"}, sale.Live: {sale.Paused: "o"}},
	sale.ActResume:   {sale.Paused: {sale.Preheated: "o", sale.Live: "o"}},
	sale.ActEnd: {
		sale.Scheduled: {sale.Ended: "c"}, sale.Preheated: {sale.Ended: "ac"},
		sale.Live: {sale.Ended: "ac"}, sale.Paused: {sale.Ended: "ac"},
	},
	sale.ActCancel: {
		sale.Draft: {sale.Cancelled: "a"}, sale.PendingApproval: {sale.Cancelled: "a"}, sale.Rejected: {sale.Cancelled: "a"},
		sale.Approved: {sale.Cancelled: "a"}, sale.Scheduled: {sale.Cancelled: "a"},
		sale.Preheated: {sale.Cancelled: "a"}, sale.Paused: {sale.Cancelled: "a"},
	},
	sale.ActSettle:  {sale.Ended: {sale.Ended: "c"}, sale.Cancelled: {sale.Cancelled: "c"}},
	sale.ActRebuild: {sale.Preheated: {sale.Preheated: "c"}, sale.Live: {sale.Live: "c"}, sale.Paused: {sale.Paused: "c"}},
	sale.ActAdjust: {
		sale.Approved: {sale.Approved: "o"}, sale.Scheduled: {sale.Scheduled: "o"}, sale.Preheated: {sale.Preheated: "o"},
		sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"},
	},
	sale.ActVoid: {
		sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}, sale.Ended: {sale.Ended: "o"},
	},
	sale.ActExpire: {
		sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}, sale.Ended: {sale.Ended: "o"},
	},
	sale.ActHold: {
		sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}, sale.Ended: {sale.Ended: "o"},
	},
	sale.ActRelease: {
		sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}, sale.Ended: {sale.Ended: "o"},
	},
	sale.ActSwitch: {
		sale.Draft: {sale.Draft: "o"}, sale.PendingApproval: {sale.PendingApproval: "o"}, sale.Rejected: {sale.Rejected: "o"},
		sale.Approved: {sale.Approved: "o"}, sale.Scheduled: {sale.Scheduled: "o"}, sale.Preheated: {sale.Preheated: "o"},
		sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"},
	},
	sale.ActCodes: {
		sale.Draft: {sale.Draft: "o"}, sale.PendingApproval: {sale.PendingApproval: "o"}, sale.Rejected: {sale.Rejected: "o"},
		sale.Approved: {sale.Approved: "o"}, sale.Scheduled: {sale.Scheduled: "o"}, sale.Preheated: {sale.Preheated: "o"},
		sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"},
	},
	sale.ActExtend: {sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}},
	sale.ActValue:  {sale.Preheated: {sale.Preheated: "o"}, sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}},
	sale.ActDescribe: {
		sale.Approved: {sale.Approved: "o"}, sale.Scheduled: {sale.Scheduled: "o"}, sale.Preheated: {sale.Preheated: "o"},
		sale.Live: {sale.Live: "o"}, sale.Paused: {sale.Paused: "o"}, sale.Ended: {sale.Ended: "o"},
	},
}

var actors = map[string]sale.Actor{
	"customer":  {ID: id.New[id.User](), Role: auth.Customer},
	"operator":  {ID: id.New[id.User](), Role: auth.Operator},
	"admin":     {ID: id.New[id.User](), Role: auth.Admin},
	"anonymous": {ID: id.New[id.User]()},
	"clock":     sale.TheClock,
}

func mayMove(who, actor string) bool {
	for _, w := range who {
		if (w == 'o' && (actor == "operator" || actor == "admin")) || (w == 'a' && actor == "admin") || (w == 'c' && actor == "clock") {
			return true
		}
	}
	return false
}

// Every act, from every status to every status, by every actor: 8,500 moves.
func TestTheStateTableAllowsThisAndNothingElse(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	saleID, _ := addSale(t, db, "one", time.Now())
	allowed, refused := 0, 0
	for _, act := range sale.Acts() {
		for _, from := range sale.Statuses() {
			for _, to := range sale.Statuses() {
				who := wanted[act][from][to]
				if got := sale.Allowed(act, from, to); got != (who != "") {
					t.Errorf("Allowed(%s, %s, %s) = %v", act, from, to, got)
				}
				for name, actor := range actors {
					err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
						if who != "" {
							if err := tx.Sale.UpdateOneID(saleID).SetStatus(entsale.Status(from)).SetRevision(1).Exec(ctx); err != nil {
								return err
							}
						}
						return sale.Apply(ctx, tx, sale.Change{
							ID: id.New[uuid.UUID](), Sale: saleID, From: from, Revision: 1, Act: act, To: to, By: actor, Note: "why", At: time.Now(),
						}, nil)
					})
					switch {
					case mayMove(who, name) && err != nil:
						t.Errorf("%s: %s → %s by %s: %v", act, from, to, name, err)
					case !mayMove(who, name) && !errors.Is(err, sale.ErrForbidden):
						t.Errorf("%s: %s → %s by %s: %v, want it forbidden", act, from, to, name, err)
					case err == nil:
						allowed++
					default:
						refused++
					}
				}
			}
		}
	}
	lines := db.Ent.SaleLog.Query().Where(salelog.SaleID(saleID)).CountX(t.Context())
	if lines != allowed || allowed < 50 || refused < 8000 {
		t.Errorf("%d moves allowed, %d refused, %d lines in the log", allowed, refused, lines)
	}
}

func TestAMoveFindsTheSaleAsItWasReadOrDoesNothing(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	saleID, _ := addSale(t, db, "one", time.Now())
	store := sale.NewStore(db.Ent)
	c := sale.Change{
		Sale: saleID, From: sale.Scheduled, Revision: 1, Act: sale.ActSchedule, To: sale.Scheduled,
		By: actors["operator"], Note: "later", Details: `{"by":"an hour"}`, At: time.Now(),
	}
	apply := func() error {
		c.ID = id.New[uuid.UUID]()
		return db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { return sale.Apply(ctx, tx, c, nil) })
	}
	if err := apply(); err != nil {
		t.Fatal(err)
	}
	if err := apply(); !errors.Is(err, sale.ErrMoved) {
		t.Errorf("the second move of one revision: %v", err)
	}
	lines, err := store.Log(t.Context(), saleID, 50)
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, error %v", len(lines), err)
	}
	if l := lines[0]; *l.Actor != actors["operator"].ID || l.Note != "later" || l.Revision != 2 || l.Act != sale.ActSchedule || l.Details == "" {
		t.Errorf("line %+v", l)
	}
}
