// Package deadletter keeps the dead letters in Postgres, so that they outlive Redis.
//
//	          ┌ REPLAYED: its message was appended to its stream again by an operator's
//	          │           decision, or its order exists
//	OPEN ─────┼ RETRIED:  its message was appended again without a decision, once
//	          └ DROPPED:  by an operator's decision
//
// Each change is a compare-and-set of OPEN. Ended letters are deleted after 30 days. A stream
// entry has at most one open letter, and may become a letter again after the decision: Redis
// can go back to an older state and deliver it again.
//
// It does not own how messages become letters (package stream), nor who decides about them
// (package orderintake).
package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/deadletter"
	"seckill/ent/predicate"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
)

const (
	// keep is the retention of a letter after it ended.
	keep = 30 * 24 * time.Hour
	// maxListed bounds the letters of one List.
	maxListed = 500
)

// Lengths of the columns, in bytes.
const (
	maxName   = 200 // of streams, messages and handlers
	maxEntry  = 64
	maxReason = 1600
)

// State is the state of a letter.
type State = deadletter.State

// States that end a letter.
const (
	Replayed = deadletter.StateREPLAYED
	Retried  = deadletter.StateRETRIED
	Dropped  = deadletter.StateDROPPED
)

// Inbox learns that a letter is new or gone; inbox.Reporter implements it.
type Inbox interface {
	Changed(ctx context.Context)
}

// Config holds the dependencies of a Store.
type Config struct {
	DB    *postgres.DB
	Clock clock.Clock // nil = clock.System
	Inbox Inbox       // nil = changes are not reported
}

// Store reads and writes dead letters. It is safe for concurrent use.
type Store struct {
	cfg Config
}

// NewStore returns a Store.
func NewStore(cfg Config) *Store {
	cfg.Clock = clock.OrSystem(cfg.Clock)
	return &Store{cfg: cfg}
}

// Add implements stream.Record.
func (s *Store) Add(ctx context.Context, l stream.Letter) (bool, error) {
	letterID := id.New[uuid.UUID]()
	if l.ID == "" {
		l.At = s.cfg.Clock.Now().UTC()
	} else if known, err := uuid.Parse(l.ID); err == nil {
		letterID = known
	} else {
		return false, err
	}
	fields, err := json.Marshal(l.Fields)
	if err != nil {
		return false, err
	}
	message := fault.Shorten(l.MessageID, maxName)
	row := s.cfg.DB.Ent.DeadLetter.Create().SetID(letterID).SetStream(fault.Shorten(l.Stream, maxName)).
		SetMessageID(message).SetHandler(fault.Shorten(l.Handler, maxName)).SetReason(fault.Shorten(l.Reason, maxReason)).
		SetDeliveries(max(0, l.Deliveries)).SetAttempts(max(0, l.Attempts)).SetFields(fields).SetCreatedAt(l.At)
	// Redis gives the id of an entry again after it was emptied and its clock was set back:
	// another message of that id is another letter.
	for _, entry := range []string{l.Entry, l.Entry + "/" + message} {
		entry = fault.Shorten(entry, maxEntry)
		err = row.SetEntry(entry).Exec(ctx)
		if err == nil {
			s.changed(ctx)
			return true, nil
		}
		if !postgres.IsUnique(err) {
			return false, fmt.Errorf("record a dead letter: %w", err)
		}
		same, err := s.cfg.DB.Ent.DeadLetter.Query().Where(deadletter.Or(
			deadletter.ID(letterID),
			deadletter.And(open(), deadletter.Stream(fault.Shorten(l.Stream, maxName)), deadletter.Entry(entry),
				deadletter.MessageID(message)),
		)).Exist(ctx)
		if same || err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("record a dead letter of %s/%s: %w", l.Stream, l.Entry, err)
}

// List selects open letters.
type List struct {
	After  string // id of the letter before the first; "" = from the oldest
	Stream string // key of their stream; "" = of any
	Limit  int    // at most 500
	Fields bool   // with their fields
}

// List returns open letters, oldest first.
func (s *Store) List(ctx context.Context, in List) ([]stream.Letter, error) {
	match := []predicate.DeadLetter{open()}
	if in.After != "" {
		after, err := uuid.Parse(in.After)
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, "Invalid cursor.", err)
		}
		match = append(match, deadletter.IDGT(after))
	}
	if in.Stream != "" {
		match = append(match, deadletter.Stream(in.Stream))
	}
	query := s.cfg.DB.Ent.DeadLetter.Query().Where(match...).Order(ent.Asc(deadletter.FieldID)).
		Limit(min(max(in.Limit, 1), maxListed))
	if !in.Fields {
		query.Select(
			deadletter.FieldID, deadletter.FieldStream, deadletter.FieldEntry, deadletter.FieldMessageID,
			deadletter.FieldHandler,
			deadletter.FieldReason, deadletter.FieldDeliveries, deadletter.FieldAttempts, deadletter.FieldCreatedAt,
		)
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return collect.Map(rows, toLetter), nil
}

// Letter returns an open letter with its fields, or nil when none has that id.
func (s *Store) Letter(ctx context.Context, letterID string) (*stream.Letter, error) {
	u, err := uuid.Parse(letterID)
	if err != nil {
		return nil, nil // no letter has such an id
	}
	row, err := s.cfg.DB.Ent.DeadLetter.Query().Where(deadletter.ID(u), open()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %s: %w", letterID, err)
	}
	l := toLetter(row)
	return &l, nil
}

// Count returns the number of open letters.
func (s *Store) Count(ctx context.Context) (int, error) { return s.count(ctx, open()) }

// CountBefore returns the number of open letters that are older than a time.
func (s *Store) CountBefore(ctx context.Context, t time.Time) (int, error) {
	return s.count(ctx, deadletter.And(open(), deadletter.CreatedAtLT(t)))
}

func (s *Store) count(ctx context.Context, match predicate.DeadLetter) (int, error) {
	n, err := s.cfg.DB.Ent.DeadLetter.Query().Where(match).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}

// Retried reports whether a letter of a message was retried in the last 30 days.
func (s *Store) Retried(ctx context.Context, messageID string) (bool, error) {
	return s.cfg.DB.Ent.DeadLetter.Query().Where(deadletter.StateEQ(Retried), deadletter.MessageID(messageID)).Exist(ctx)
}

// End ends an open letter and reports whether it was open.
func (s *Store) End(ctx context.Context, letterID string, as State) (bool, error) {
	u, err := uuid.Parse(letterID)
	if err != nil {
		return false, nil // no letter has such an id
	}
	n, err := s.cfg.DB.Ent.DeadLetter.Update().Where(deadletter.ID(u), open()).
		SetState(as).SetEndedAt(s.cfg.Clock.Now().UTC()).Save(ctx)
	if err != nil {
		return false, fmt.Errorf("end dead letter %s: %w", letterID, err)
	}
	if n > 0 {
		s.changed(ctx)
	}
	return n > 0, nil
}

// Purge deletes letters that ended 30 days ago, in batches. It is a periodic.Step.
func (s *Store) Purge(ctx context.Context) (map[string]int, error) {
	return s.cfg.DB.Purge(ctx, "dead_letters_deleted", deadletter.Table,
		deadletter.EndedAtLT(s.cfg.Clock.Now().Add(-keep)))
}

func (s *Store) changed(ctx context.Context) {
	if s.cfg.Inbox != nil {
		s.cfg.Inbox.Changed(ctx)
	}
}

// open selects letters without an end.
func open() predicate.DeadLetter { return deadletter.StateEQ(deadletter.StateOPEN) }

func toLetter(r *ent.DeadLetter) stream.Letter {
	l := stream.Letter{
		ID: r.ID.String(), At: r.CreatedAt.UTC(), Stream: r.Stream, Entry: r.Entry, MessageID: r.MessageID,
		Handler: r.Handler, Reason: r.Reason, Deliveries: r.Deliveries, Attempts: r.Attempts,
	}
	_ = json.Unmarshal(r.Fields, &l.Fields) // a damaged letter has none
	return l
}
