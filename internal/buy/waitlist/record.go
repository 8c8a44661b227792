package waitlist

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/id"
)

// Record returns what is published of a draw: the root once it is known, the order and the offers
// once it is drawn; nil before.
func (s *Service) Record(ctx context.Context, item id.Item) (*draw.Record, error) {
	d, err := s.Drawing(ctx, item)
	if err != nil || d == nil || d.PublishedAt == nil {
		return nil, err
	}
	r := d.record()
	if r.Leaves, err = s.Leaves(ctx, item); err != nil || d.State != Drawn {
		return r, err
	}
	randomness, err := s.randomness(d)
	if err != nil {
		return nil, err
	}
	r.Order = draw.Order(randomness, r.Leaves)
	r.Offers, err = s.turns(ctx, item)
	return r, err
}

// RoundTime returns when the random value of a round can exist.
func (s *Service) RoundTime(round uint64) time.Time { return s.chain.RoundTime(round) }

// RecordPath returns the path of the record of a draw on the public listener.
func RecordPath(item id.Item) string { return "/draws/" + item.Public() + ".json" }

// recordAge is how long caches may keep a record: offers are added to it.
const recordAge = 10 * time.Second

// Records returns the handler of the records of draws, at RecordPath. A record is computed for each
// request, one at a time: that of a million entries takes some seconds and 200 MB.
func (s *Service) Records() http.Handler {
	var turn sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, named := strings.CutSuffix(path.Base(r.URL.Path), ".json")
		item, err := id.ParseItem(name)
		if !named || err != nil || r.URL.Path != RecordPath(item) {
			http.NotFound(w, r)
			return
		}
		if !turn.TryLock() {
			w.Header().Set("Retry-After", "2")
			http.Error(w, "another record is being computed", http.StatusServiceUnavailable)
			return
		}
		text, err := s.recordText(r.Context(), item)
		turn.Unlock()
		switch {
		case err != nil:
			s.log.ErrorContext(r.Context(), "record of a draw", slog.Any("error", err))
			http.Error(w, "the record cannot be read now", http.StatusServiceUnavailable)
		case text == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(recordAge.Seconds())))
			w.Header().Set("Access-Control-Allow-Origin", "*") // others check it in their pages
			_, _ = w.Write(text)                               //nolint:gosec // JSON of the server, as its type says
		}
	})
}

func (s *Service) recordText(ctx context.Context, item id.Item) ([]byte, error) {
	r, err := s.Record(ctx, item)
	if r == nil {
		return nil, err
	}
	return r.Encode()
}

// record returns what is published of a draw without its lists.
func (d *Drawing) record() *draw.Record {
	r := &draw.Record{
		Version: draw.Version, Sale: d.Sale.Public(), Item: d.Item.Public(), Count: d.Entries, Root: draw.Hash(d.Root),
		SignedRoot: d.Statement, Source: d.Source, Round: d.Round, Signature: hex.EncodeToString(d.Signature), Value: d.Value,
		RootPublishedAt: d.PublishedAt.Unix(),
	}
	if d.ClosedAt != nil {
		r.ClosedAt = d.ClosedAt.Unix()
	}
	return r
}

// turns returns what became of the entries up to the last one that was offered units, in the order
// of their numbers. The others wanted more units than were left.
func (s *Service) turns(ctx context.Context, item id.Item) ([]draw.Offer, error) {
	notWaiting := waitlistentry.StatusNEQ(waitlistentry.StatusWAITING)
	last, err := s.db.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(item), waitlistentry.LineGT(0), notWaiting,
		waitlistentry.OfferExpiresAtNotNil()).
		Order(ent.Desc(waitlistentry.FieldLine)).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last offer of item %s: %w", item, err)
	}
	turns := make([]draw.Offer, last.Line)
	for i := range turns {
		turns[i] = draw.Offer{Rank: i + 1, Quantity: 1, Skipped: draw.ReasonTooFewLeft}
	}
	for first := int64(0); first < last.Line; first += drawChunk {
		rows, err := s.db.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(item), waitlistentry.LineGT(0), notWaiting,
			waitlistentry.LineGT(first), waitlistentry.LineLTE(min(first+drawChunk, last.Line))).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the offers of item %s: %w", item, err)
		}
		for _, row := range rows {
			turns[row.Line-1] = turnOf(row)
		}
	}
	return turns, nil
}

// turnOf returns what became of an entry whose turn has come.
func turnOf(row *ent.WaitlistEntry) draw.Offer {
	turn := draw.Offer{Rank: int(row.Line), Quantity: row.Quantity}
	switch {
	case row.OfferExpiresAt != nil:
	case row.Skipped != "":
		turn.Skipped = draw.Reason(row.Skipped)
	case row.Status == waitlistentry.StatusLEFT:
		turn.Skipped = draw.ReasonLeft
	default:
		turn.Skipped = draw.ReasonTooFewLeft
	}
	return turn
}
