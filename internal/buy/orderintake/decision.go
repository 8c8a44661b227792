package orderintake

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/letteract"
	"seckill/ent/predicate"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/typed"
)

// maxNote bounds operators' notes, in characters.
const maxNote = 200

// Kind is the kind of an operator's decision.
type Kind string

// Kinds of decisions.
const (
	Replayed Kind = "REPLAY" // appended to its stream again
	Dropped  Kind = "DROP"   // removed permanently
)

// Act is a line of the log: an operator's decision about a letter.
type Act struct {
	ID     uuid.UUID
	Letter string
	Kind   Kind
	Task   *id.Task // the order task of the message
	Reason string   // why it became a dead letter
	Note   string   // the operator's reason
	Actor  id.User
	At     time.Time
}

// Decision is a request to replay or drop a letter.
type Decision struct {
	Letter string
	Actor  id.User
	Note   string // the operator's reason
}

// Replay appends a message to its stream again, once. It is refused when the task has
// ended, because the message would have no effect.
func (d *DeadLetters) Replay(ctx context.Context, in Decision) (*Letter, error) {
	l, err := d.open(ctx, &in)
	if err != nil {
		return nil, err
	}
	if l.Task != nil && l.Task.Ended() || len(l.Fields) == 0 {
		return l, conflict()
	}
	if err := d.log(ctx, l, in, Replayed); err != nil {
		return nil, err
	}
	can, _, err := d.replay(ctx, l, deadletter.Replayed) // or another process did at the same time
	if err != nil {
		return nil, err
	}
	if !can {
		return l, conflict()
	}
	return l, nil
}

// ReplayedAll counts what ReplayAll did.
type ReplayedAll struct {
	Replayed int
	Refused  int // their tasks have ended, or they have no message
}

// ReplayAll replays all letters that there are now, for example after an outage. The
// letter of the decision is ignored.
func (d *DeadLetters) ReplayAll(ctx context.Context, in Decision) (out ReplayedAll, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	var letters []string
	err = d.each(ctx, deadletter.List{}, func(l stream.Letter) { letters = append(letters, l.ID) })
	for _, letter := range letters {
		if err != nil {
			break
		}
		in.Letter = letter
		switch _, refused := d.Replay(ctx, in); fault.ReasonOf(refused) {
		case fault.Conflict, fault.Unknown: // its task has ended, or it was decided in the meantime
			out.Refused++
		default:
			if err = refused; err == nil {
				out.Replayed++
			}
		}
	}
	return out, err
}

// Drop removes a message permanently: its task fails, and its units return to stock.
// After a crash in between, the letter remains and can be dropped again.
func (d *DeadLetters) Drop(ctx context.Context, in Decision) (*Letter, error) {
	l, err := d.open(ctx, &in)
	if err != nil {
		return nil, err
	}
	if err := d.log(ctx, l, in, Dropped); err != nil {
		return nil, err
	}
	if _, err := d.failTask(ctx, l, "dropped by an operator: "+in.Note); err != nil {
		return nil, err
	}
	if _, err := d.cfg.Store.End(ctx, l.ID, deadletter.Dropped); err != nil {
		return nil, err
	}
	l.Task, err = d.taskOf(ctx, l)
	return l, err
}

func (d *DeadLetters) open(ctx context.Context, in *Decision) (*Letter, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	l, err := d.Letter(ctx, in.Letter)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fault.Refused{Why: fault.Unknown, At: []string{"letterId"}}
	}
	return l, nil
}

// check puts the note into the form in which it is stored, and checks it.
func (in *Decision) check() error {
	in.Note = typed.Text(in.Note)
	rule := fault.Lines(in.Note, 1, maxNote)
	if rule == fault.NotEmpty || rule == fault.MaxLength(maxNote) {
		rule = fault.Rule{Code: fmt.Sprintf("1 to %d characters", maxNote)} // which the command line shows as it is
	}
	if rule != (fault.Rule{}) {
		return fault.BadField{At: []string{"note"}, Rule: rule}
	}
	return nil
}

func conflict() error {
	return fault.Refused{Why: fault.Conflict, At: []string{"letterId"}}
}

// log records a decision, the first of its kind about a letter.
func (d *DeadLetters) log(ctx context.Context, l *Letter, in Decision, kind Kind) error {
	err := d.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row := tx.LetterAct.Create().SetID(id.New[uuid.UUID]()).SetLetter(l.ID).SetKind(letteract.Kind(kind)).
			SetStream(l.Stream).
			SetReason(l.Reason).SetNote(in.Note).SetActorID(in.Actor).SetCreatedAt(d.cfg.Clock.Now().UTC())
		if len(l.requests) > 0 {
			row.SetTaskID(l.requests[0].Task)
		}
		return row.Exec(ctx)
	})
	if err != nil && !postgres.IsUnique(err) { // already logged by an earlier attempt
		return fmt.Errorf("log %s of dead letter %s: %w", kind, l.ID, err)
	}
	d.cfg.Log.InfoContext(ctx, "dead letter decided", slog.String("letter", l.ID), slog.String("kind", string(kind)),
		slog.String("actor", in.Actor.String()))
	return nil
}

// ActList selects decisions about dead letters.
type ActList struct {
	Kind  Kind      // "" = of every kind
	After uuid.UUID // the decision before the first; zero = from the newest
	Limit int
}

func (in ActList) match() (match []predicate.LetterAct) {
	if in.Kind != "" {
		match = append(match, letteract.KindEQ(letteract.Kind(in.Kind)))
	}
	return match
}

// Acts returns decisions, newest first.
func (d *DeadLetters) Acts(ctx context.Context, in ActList) ([]*Act, error) {
	query := d.cfg.DB.Ent.LetterAct.Query().Where(in.match()...)
	if in.After != uuid.Nil {
		query.Where(letteract.IDLT(in.After))
	}
	rows, err := query.Order(ent.Desc(letteract.FieldID)).Limit(in.Limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read decisions about dead letters: %w", err)
	}
	acts := collect.Map(rows, func(r *ent.LetterAct) *Act {
		return &Act{
			ID: r.ID, Letter: r.Letter, Kind: Kind(r.Kind), Task: r.TaskID, Reason: r.Reason, Note: r.Note,
			Actor: r.ActorID, At: r.CreatedAt.UTC(),
		}
	})
	return acts, nil
}

// CountActs returns how many decisions there are on all pages of a list.
func (d *DeadLetters) CountActs(ctx context.Context, in ActList) (int, error) {
	n, err := d.cfg.DB.Ent.LetterAct.Query().Where(in.match()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count decisions about dead letters: %w", err)
	}
	return n, nil
}
