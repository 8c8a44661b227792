package waitlist

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"seckill/ent"
	"seckill/ent/drawleaves"
	"seckill/ent/predicate"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/id"
)

// RoundTime returns when the random value of a round can exist.
func (s *Service) RoundTime(round uint64) time.Time { return s.cfg.Chain.RoundTime(round) }

// RecordPath returns the path of the record of a draw on the public listener.
func RecordPath(item id.Item) string { return "/draws/" + item.Public() + ".json" }

const (
	// recordAge is how long caches may keep a record: offers are added to it.
	recordAge = 10 * time.Second
	// maxRecords bounds the records that a process sends at the same time: each reads its draw again,
	// in parts of 128 KiB.
	maxRecords = 8
	// recordPartTimeout is the timeout of the client for a part of a record.
	recordPartTimeout = 20 * time.Second
)

// Records returns the handler of the records of draws, at RecordPath.
func (s *Service) Records() http.Handler {
	turns := make(chan struct{}, maxRecords)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, named := strings.CutSuffix(path.Base(r.URL.Path), ".json")
		item, err := id.ParseItem(name)
		if !named || err != nil || r.URL.Path != RecordPath(item) {
			http.NotFound(w, r)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		default:
			w.Header().Set("Retry-After", "2")
			http.Error(w, "other records are being sent", http.StatusServiceUnavailable)
			return
		}
		d, err := s.Drawing(r.Context(), item)
		switch {
		case err != nil:
			s.cfg.Log.ErrorContext(r.Context(), "record of a draw", slog.Any("error", err))
			http.Error(w, "the record cannot be read now", http.StatusServiceUnavailable)
		case d == nil || d.PublishedAt == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(recordAge.Seconds())))
			w.Header().Set("Access-Control-Allow-Origin", "*") // others check it in their pages
			if err := s.WriteRecord(r.Context(), timedWriter{w, http.NewResponseController(w)}, d); err != nil {
				s.cfg.Log.WarnContext(r.Context(), "record of a draw", slog.Any("error", err))
				panic(http.ErrAbortHandler) // a part was sent
			}
		}
	})
}

// timedWriter limits how long a client may take for each part.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w timedWriter) Write(p []byte) (int, error) {
	err := w.control.SetWriteDeadline(time.Now().Add(recordPartTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// WriteRecord writes what is published of a draw since its root: the order and the offers once it is
// drawn.
func (s *Service) WriteRecord(ctx context.Context, w io.Writer, d *Drawing) error {
	lists := draw.Lists{
		Leaves: partsOf(ctx, s, d.Item, drawleaves.FieldLeaves, func(part *ent.DrawLeaves) [][32]byte {
			return appendLeaves(nil, part.Leaves)
		}),
		Order:  func(func([]int, error) bool) {},
		Offers: func(func([]draw.Offer, error) bool) {},
	}
	if d.State == Drawn {
		lists.Order = partsOf(ctx, s, d.Item, drawleaves.FieldRanked, func(part *ent.DrawLeaves) []int {
			order := make([]int, 0, len(part.Ranked)/4)
			for index := range slices.Chunk(part.Ranked, 4) {
				order = append(order, int(binary.BigEndian.Uint32(index)))
			}
			return order
		})
		lists.Offers = s.turns(ctx, d.Item)
	}
	return d.record().Write(w, lists)
}

// partsOf returns a list of a draw, which a field has, by its parts.
func partsOf[T any](ctx context.Context, s *Service, item id.Item, field string,
	of func(*ent.DrawLeaves) []T) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		if err := s.parts(ctx, item, field, func(part *ent.DrawLeaves) bool { return yield(of(part), nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// record returns what is published of a draw without its lists.
func (d *Drawing) record() *draw.Record {
	r := &draw.Record{
		Version: draw.Version, Sale: d.Sale.Public(), Item: d.Item.Public(), Count: d.Entries, Root: draw.Hash(d.Root),
		SignedRoot: d.Statement, Source: d.Source, Round: d.Round,
		Signature: hex.EncodeToString(d.Signature), Value: d.Value, ValueSource: d.ValueSource,
		RootPublishedAt: d.PublishedAt.Unix(),
	}
	if d.ClosedAt != nil {
		r.ClosedAt = d.ClosedAt.Unix()
	}
	return r
}

// turns returns the results of the entries up to the last one that was offered units, in the order
// of their numbers. Those that wait wanted more units than were left.
func (s *Service) turns(ctx context.Context, item id.Item) iter.Seq2[[]draw.Offer, error] {
	return func(yield func([]draw.Offer, error) bool) {
		ofItem, notWaiting := waitlistentry.ItemID(item), waitlistentry.StatusNEQ(waitlistentry.StatusWAITING)
		last, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(ofItem, waitlistentry.LineGT(0), notWaiting,
			waitlistentry.OfferExpiresAtNotNil()).Order(ent.Desc(waitlistentry.FieldLine)).First(ctx)
		if ent.IsNotFound(err) {
			return
		}
		if err != nil {
			yield(nil, fmt.Errorf("read the last offer of item %s: %w", item, err))
			return
		}
		for first := int64(0); first < last.Line; first += drawChunk {
			end := min(first+drawChunk, last.Line)
			turns := make([]draw.Offer, end-first)
			for i := range turns { // also of entries that were purged after the sale
				turns[i] = draw.Offer{Rank: int(first) + i + 1, Quantity: 1, Skipped: draw.ReasonTooFewLeft}
			}
			waiting := waitlistentry.StatusEQ(waitlistentry.StatusWAITING)
			for _, status := range []predicate.WaitlistEntry{notWaiting, waiting} { // each has its index
				rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(ofItem, waitlistentry.LineGT(0), status,
					waitlistentry.LineGT(first), waitlistentry.LineLTE(end)).All(ctx)
				if err != nil {
					yield(nil, fmt.Errorf("read the offers of item %s: %w", item, err))
					return
				}
				for _, row := range rows {
					turns[row.Line-first-1] = turnOf(row)
				}
			}
			if !yield(turns, nil) {
				return
			}
		}
	}
}

// turnOf returns the result of an entry whose turn has come.
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
