package sale

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/goodslog"
	"seckill/ent/salelog"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// LogLine is one act on a sale.
type LogLine struct {
	ID       uuid.UUID
	Sale     id.Sale
	Actor    *id.User // nil = the clock
	Act      Act
	From, To Status
	Revision int64 // of the sale after the act
	Note     string
	Details  string // JSON, or empty
	At       time.Time
}

// actSeal is the act of the seals that package audit writes into the log; they are not
// shown.
const actSeal = "SEAL"

// Log returns the newest lines of a sale's log, newest first, at most limit.
func (s *Store) Log(ctx context.Context, saleID id.Sale, limit int) ([]LogLine, error) {
	rows, err := s.db.SaleLog.Query().Where(salelog.SaleID(saleID), salelog.ActNEQ(actSeal)).
		Order(ent.Desc(salelog.FieldRevision), ent.Desc(salelog.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of sale %s: %w", saleID, err)
	}
	lines := collect.Map(rows, func(r *ent.SaleLog) LogLine {
		return LogLine{
			ID: r.ID, Sale: r.SaleID, Actor: r.ActorID, Act: Act(r.Act),
			From: Status(r.FromStatus), To: Status(r.ToStatus), Revision: r.Revision,
			Note: r.Note, Details: r.Details, At: r.CreatedAt.UTC(),
		}
	})
	return lines, nil
}

// Authors returns the users who created or edited a sale: they must not approve it. What a
// service token did counts as done by the user who created it.
func (s *Store) Authors(ctx context.Context, v *Sale) ([]id.User, error) {
	lines, err := s.db.SaleLog.Query().
		Where(salelog.SaleID(v.ID), salelog.ActorIDNotNil(), salelog.ActIn(string(ActCreate), string(ActUpdate))).
		Select(salelog.FieldSaleID, salelog.FieldActorID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who wrote sale %s: %w", v.ID, err)
	}
	var acts []prepared
	if v.CreatedBy != nil {
		acts = append(acts, prepared{v.ID, *v.CreatedBy})
	}
	for _, line := range lines {
		acts = append(acts, prepared{line.SaleID, *line.ActorID})
	}
	owners, err := s.owners(ctx, acts)
	if err != nil {
		return nil, err
	}
	return collect.Map(acts, func(act prepared) id.User { return cmp.Or(owners[act.actor], act.actor) }), nil
}

// GoodsLine is one change of a product.
type GoodsLine struct {
	ID       uuid.UUID
	Goods    id.Goods
	Actor    id.User
	Act      Act   // ActCreate or ActUpdate
	Revision int64 // of the product after the change
	Note     string
	Details  string // JSON of what changed, or empty
	At       time.Time
}

// GoodsLog returns the newest lines of a product's log, newest first, at most limit.
func (s *Store) GoodsLog(ctx context.Context, goodsID id.Goods, limit int) ([]GoodsLine, error) {
	rows, err := s.db.GoodsLog.Query().Where(goodslog.GoodsID(goodsID)).
		Order(ent.Desc(goodslog.FieldRevision), ent.Desc(goodslog.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of goods %s: %w", goodsID, err)
	}
	lines := collect.Map(rows, func(r *ent.GoodsLog) GoodsLine {
		return GoodsLine{
			ID: r.ID, Goods: r.GoodsID, Actor: r.ActorID, Act: Act(r.Act), Revision: r.Revision,
			Note: r.Note, Details: r.Details, At: r.CreatedAt.UTC(),
		}
	})
	return lines, nil
}

// ValueKind is the kind of a value in a log.
type ValueKind string

// Kinds of values.
const (
	ValueBoolean ValueKind = "BOOLEAN"
	ValueInstant ValueKind = "INSTANT" // RFC 3339
	ValueJSON    ValueKind = "JSON"    // a list or an object
	ValueNumber  ValueKind = "NUMBER"
	ValueText    ValueKind = "TEXT"
)

// LogChange is a field that an act changed.
type LogChange struct {
	Name      string
	Kind      ValueKind
	From      *string // the former value; nil = there was none, or it was not recorded
	FromKnown bool    // the former value was recorded
	To        string  // text as it is, everything else as JSON; "null" = there is none now
}

// FormerValues is the field of an act's details with the former values of the other fields.
const FormerValues = "before"

// Changes returns what an act changed, by name.
func (l LogLine) Changes() []LogChange { return changesOf(l.Details) }

// Changes returns what an act changed, by name.
func (l GoodsLine) Changes() []LogChange { return changesOf(l.Details) }

func changesOf(details string) []LogChange {
	changes := []LogChange{}
	var now, before map[string]json.RawMessage
	if json.Unmarshal([]byte(details), &now) != nil {
		return changes // of an act that changed nothing
	}
	if json.Unmarshal(now[FormerValues], &before) == nil {
		delete(now, FormerValues)
	}
	renamed(now)
	renamed(before)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, changed := before[name]; len(before) > 0 && !changed && slices.Contains(loggedWhole, name) {
			continue
		}
		change := LogChange{Name: name, Kind: kindOf(name, now[name]), To: plain(now[name])}
		former, known := before[name]
		change.FromKnown = known
		if known && !none(former) {
			text := plain(former)
			change.From = &text
		}
		if none(now[name]) && change.From != nil {
			change.Kind = kindOf(name, former)
		}
		changes = append(changes, change)
	}
	return changes
}

// loggedWhole are the fields that entries of former releases have also where they did not
// change, together with those that did.
var loggedWhole = []string{
	"captchaRequired", "captchaKinds", "proofOfWorkMax", "permitRatio", "inflowPerSecond", "limitBurst", "limitPerSecond",
	"startsAt", "endsAt", "preheatAt",
}

// renamed gives the fields of former releases the names of the inputs.
func renamed(fields map[string]json.RawMessage) {
	var perMille float64
	if value, ok := fields["permitPerMille"]; ok && json.Unmarshal(value, &perMille) == nil {
		delete(fields, "permitPerMille")
		fields["permitRatio"] = json.RawMessage(strconv.FormatFloat(perMille/1000, 'g', -1, 64))
	}
}

func none(value json.RawMessage) bool { return string(value) == "null" }

// kindOf returns the kind of a value. Instants are the texts of fields that are named for it.
func kindOf(name string, value json.RawMessage) ValueKind {
	switch value[0] {
	case '"', 'n':
		if strings.HasSuffix(name, "At") {
			return ValueInstant
		}
		return ValueText
	case 't', 'f':
		return ValueBoolean
	case '{', '[':
		return ValueJSON
	}
	return ValueNumber
}

// plain returns the text of a JSON string, and the JSON of every other value.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && !none(value) {
		return text
	}
	return string(value)
}
