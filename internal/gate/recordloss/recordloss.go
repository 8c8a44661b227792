// Package recordloss notices that Postgres has lost commits, and recovers from it. It
// happens in a failover to an asynchronous standby, or after the restore of a backup:
// gates and copies in Redis, and what buyers saw, are then ahead of the record.
//
// A mark in Postgres grows every second. After its commit it is noted in Redis, so that a
// mark in Redis above that in Postgres proves the loss, whatever the clocks say and
// however many schedulers there are. A Redis that is empty or older has a lower mark, or
// none. Commits of less than a second may be lost without their mark: so a promoted or
// replaced server, which has another timeline or system identifier, counts as a loss, too.
// The loss is written in the transaction that finds it: a crash leaves it to the next step.
//
// The recovery compares the copies of tasks and orders in Redis with Postgres. An order
// that is gone is requested again while nothing had happened to it: it is written if the
// record still has its units, else its task fails. Any other task that is gone fails, as does
// one whose user is gone. An
// order that is in an older state gets a version above that of its copy, so that Redis,
// subscribers and clients take it. All gates are rebuilt from the record and the streams,
// under epochs and revisions above theirs, or removed if the record has no such sale.
//
// What a loss concerns is noted in Redis before it is recovered: afterwards it can no longer
// be seen. Report lists it.
//
// The package owns the table record_marks, and the keys of the mark and of what is concerned
// in Redis. It does not own gates, orders or accounts, whose packages write them again.
package recordloss

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/ent/recordmark"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/preload"
	"seckill/internal/identity/account"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/telemetry"
)

const (
	// Every is the interval of the marks: what Postgres loses is noticed after about this
	// time.
	Every = time.Second
	// stepTimeout bounds a step with a recovery: gates with millions of orders take minutes.
	stepTimeout = 30 * time.Minute
	// takeOver is the age of a loss from which a process recovers from it that did not find
	// it: the other one has crashed.
	takeOver = 20 * time.Second
	// lookAgain is how long after a recovery the copies are compared once more: a process
	// that committed before the loss may have written its copy late.
	lookAgain = 10 * time.Second
	// markID is the id of the only row.
	markID = 1
)

//go:embed lua/note_mark.lua
var noteMarkLua string

var noteMarkScript = redis.NewScript(noteMarkLua)

// Config holds the dependencies of a Watch.
type Config struct {
	DB          *postgres.DB
	Redis       *redisconn.Conn
	Keys        reservation.Keys
	Cache       *order.Cache // the copies of tasks and orders
	Orders      *order.Store
	Writer      *order.Writer
	AfterCommit *order.AfterCommit
	Streams     stream.Appender
	Gate        *reservation.Gate
	Gates       *preload.Preloader
	Sales       *sale.Store
	Versions    *sale.Versions
	Catalog     *sale.Catalog
	Users       *account.Directory // nil = no copies of users

	Clock      clock.Clock
	Registerer prometheus.Registerer // nil = metrics are not exported
	Log        *slog.Logger
}

// Watch keeps the mark and recovers from losses. Every scheduler runs its own.
type Watch struct {
	cfg   Config
	key   string             // of the mark in Redis
	found prometheus.Counter // losses

	mu      sync.Mutex
	highest int64     // guarded by mu; mark that this process knows to be committed
	unnamed bool      // guarded by mu; the server does not report its identity
	mine    int64     // guarded by mu; loss that this process found and recovers from
	again   time.Time // guarded by mu; when the copies are compared again; zero = not
}

// NewWatch returns a Watch.
func NewWatch(cfg Config) *Watch {
	return &Watch{cfg: cfg, key: keyOf(cfg.Keys, "mark"), found: telemetry.For(cfg.Registerer, "recordloss").
		Counter("found_total",
			"Losses of commits by Postgres that this process found: it went back, was promoted or was replaced.")}
}

// keyOf returns a key of the package. All have one slot.
func keyOf(keys reservation.Keys, name string) string { return keys.Prefix + "{record}:" + name }

// Loop returns the loop of the watch. A database inside the process cannot go back.
func (w *Watch) Loop() periodic.Loop {
	return periodic.Loop{Name: "record mark", Every: Every, Timeout: stepTimeout, Step: w.Step, Log: w.cfg.Log}
}

// Step writes the next mark, and recovers if Postgres has lost commits. It is a
// periodic.Step.
func (w *Watch) Step(ctx context.Context) (map[string]int, error) {
	row, err := w.mark(ctx)
	if err != nil {
		return nil, err
	}
	now := w.cfg.Clock.Now()
	w.mu.Lock()
	mine := w.mine == row.Lost
	w.mu.Unlock()
	if row.Lost > row.Recovered && (mine || row.LostAt == nil || now.Sub(*row.LostAt) > takeOver) {
		counts, err := w.recover(ctx, row.Lost)
		if err != nil {
			return counts, fmt.Errorf("recover from the loss at mark %d: %w", row.Lost, err)
		}
		w.mu.Lock()
		w.again = w.cfg.Clock.Now().Add(lookAgain)
		w.mu.Unlock()
		return counts, w.noteRecovered(ctx, row.Lost)
	}
	if !w.due(now) {
		return nil, nil // nothing was done
	}
	return w.compare(ctx, row.Lost)
}

// due reports whether the copies are to be compared again, once.
func (w *Watch) due(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again.IsZero() || now.Before(w.again) {
		return false
	}
	w.again = time.Time{}
	return true
}

// identity names a history of a database. 0 = not known.
type identity struct{ system, timeline, database int64 }

// readIdentity reads an identity. The file name begins with the timeline; pg_control_checkpoint has
// that of the last checkpoint.
const readIdentity = `SELECT system_identifier AS system,
	('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int8 AS timeline,
	(SELECT oid::int8 FROM pg_database WHERE datname = current_database()) AS database FROM pg_control_system()`

// raiseMark raises the mark, unless it is below the known one or of another history.
const raiseMark = `WITH server AS MATERIALIZED (` + readIdentity + `)
	UPDATE record_marks AS m SET mark = m.mark + 1, marked_at = $2 FROM server
	WHERE m.id = $1 AND m.mark >= $3 AND m.system_id = server.system AND m.timeline = server.timeline
	AND m.database_id = server.database RETURNING m.mark, m.lost, m.recovered, m.lost_at`

// identity reads the identity of the server. Some managed services do not report it.
func (w *Watch) identity(ctx context.Context) (is identity, err error) {
	w.mu.Lock()
	unnamed := w.unnamed
	w.mu.Unlock()
	if unnamed || w.cfg.DB.Dialect != dialect.Postgres {
		return is, nil
	}
	err = w.cfg.DB.SQL.QueryRowContext(ctx, readIdentity).Scan(&is.system, &is.timeline, &is.database)
	if err != nil && postgres.IsUnsupported(err) {
		w.mu.Lock()
		w.unnamed = true
		w.mu.Unlock()
		return identity{}, nil
	}
	if err != nil {
		return is, fmt.Errorf("read the identity of postgres: %w", err)
	}
	return is, nil
}

// mark writes the next mark to Postgres, and after the commit to Redis, and returns the row.
// Redis is read before Postgres: what it has was committed before.
func (w *Watch) mark(ctx context.Context) (row *ent.RecordMark, err error) {
	known, readErr := w.known(ctx) // without Redis, this process still knows its own marks
	if row, err = w.raise(ctx, known); err != nil {
		return nil, err
	}
	if row != nil {
		return row, errors.Join(readErr, w.noteMark(ctx, row))
	}
	is, err := w.identity(ctx)
	if err != nil {
		return nil, err
	}
	now := w.cfg.Clock.Now()
	var was *ent.RecordMark
	found := false
	err = w.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := postgres.Insert(ctx, tx, sql.Insert(recordmark.Table).Columns(recordmark.FieldID, recordmark.FieldMarkedAt).
			Values(markID, now).OnConflict(sql.DoNothing()))
		if err != nil {
			return fmt.Errorf("create the mark: %w", err)
		}
		// Also locks the row, on every database.
		if err := tx.RecordMark.UpdateOneID(markID).AddMark(1).SetMarkedAt(now).Exec(ctx); err != nil {
			return fmt.Errorf("raise the mark: %w", err)
		}
		if was, err = tx.RecordMark.Get(ctx, markID); err != nil {
			return fmt.Errorf("read the mark: %w", err)
		}
		before := was.Mark - 1
		update := tx.RecordMark.UpdateOneID(markID).SetMark(max(before, known) + 1)
		if is.system != 0 {
			update.SetSystemID(is.system).SetTimeline(is.timeline).SetDatabaseID(is.database)
		}
		if found = before < known || is.after(was); found {
			update.SetLost(max(before, known) + 1).SetLostAt(now)
		}
		row, err = update.Save(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write the mark of the record: %w", err)
	}
	if found {
		w.found.Inc()
		w.cfg.Log.ErrorContext(ctx, "postgres has lost commits", slog.Int64("mark", was.Mark-1),
			slog.Int64("known_mark", known),
			slog.Int64("timeline", is.timeline), slog.Int64("former_timeline", was.Timeline),
			slog.Bool("replaced", is.system != was.SystemID || is.database != was.DatabaseID))
	}
	if found {
		w.mu.Lock()
		w.mine = row.Lost
		w.mu.Unlock()
	}
	noteErr := w.noteMark(ctx, row)
	if found { // what can be recovered does not wait for the mark in Redis
		return row, nil
	}
	return row, errors.Join(readErr, noteErr)
}

// raise writes the next mark in one statement if the server has the history of the last one and
// nothing is lost; nil = mark has to look closer.
func (w *Watch) raise(ctx context.Context, known int64) (*ent.RecordMark, error) {
	w.mu.Lock()
	unnamed := w.unnamed
	w.mu.Unlock()
	if unnamed || w.cfg.DB.Dialect != dialect.Postgres {
		return nil, nil
	}
	var row *ent.RecordMark
	err := w.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := w.cfg.Clock.Now()
		rows, err := tx.QueryContext(ctx, raiseMark, markID, now, known)
		if err != nil {
			return err
		}
		defer rows.Close()
		if row = nil; rows.Next() {
			row = &ent.RecordMark{ID: markID, MarkedAt: now}
			if err := rows.Scan(&row.Mark, &row.Lost, &row.Recovered, &row.LostAt); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil && postgres.IsUnsupported(err) {
		return nil, nil // identity reports it
	}
	if err != nil {
		return nil, fmt.Errorf("raise the mark of the record: %w", err)
	}
	return row, nil
}

// noteMark notes a committed mark in this process and in Redis.
func (w *Watch) noteMark(ctx context.Context, row *ent.RecordMark) error {
	w.mu.Lock()
	w.highest = max(w.highest, row.Mark)
	w.mu.Unlock()
	if err := noteMarkScript.Run(ctx, w.cfg.Redis.Script, []string{w.key}, row.Mark).Err(); err != nil {
		return fmt.Errorf("note the mark of the record in redis: %w", err)
	}
	return nil
}

// after reports whether a server has a later history than the one that wrote the mark, or
// one of its own.
func (is identity) after(was *ent.RecordMark) bool {
	return is.system != 0 && was.SystemID != 0 && (is.system != was.SystemID || is.timeline > was.Timeline ||
		is.database != was.DatabaseID)
}

// known returns the highest mark that Redis or this process has seen committed.
func (w *Watch) known(ctx context.Context) (int64, error) {
	mark, err := w.cfg.Redis.Cmd.HGet(ctx, w.key, "mark").Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read the mark of the record in redis: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(mark, w.highest), err
}

// noteRecovered records that the recovery from a loss is complete.
func (w *Watch) noteRecovered(ctx context.Context, lost int64) error {
	err := w.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.RecordMark.Update().Where(recordmark.ID(markID), recordmark.RecoveredLT(lost)).SetRecovered(lost).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("note the recovery: %w", err)
	}
	return nil
}
