package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/saleitem"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Header is the first line of an exported log.
type Header struct {
	Type string `json:"type"` // log
	Start
	Title      string     `json:"title"`
	Status     string     `json:"status"`
	ExportedAt time.Time  `json:"exportedAt"`
	Items      []ItemSums `json:"items"`
}

// ItemSums are the units of an item by its row, which the moves explain.
type ItemSums struct {
	Item  string `json:"item"`
	Total int    `json:"total"` // put on sale: 0 before the approval
	Held  int    `json:"held"`
	Sold  int    `json:"sold"`
}

// Trailer is the last line of an exported log.
type Trailer struct {
	Type    string `json:"type"` // end
	Entries int    `json:"entries"`
	Head    string `json:"head"`             // of all entries, sealed or not
	Header  string `json:"header,omitempty"` // SHA-256 of the head and the first line; absent in files of former releases
}

const (
	typeLog = "log"
	typeEnd = "end"
)

// Exporter writes logs of sales.
type Exporter struct {
	DB    *postgres.DB
	Clock clock.Clock
}

// Export writes the log of a sale as JSON lines: header, entries, seals after what they
// cover, trailer. All is read in one snapshot. It writes what the tables hold; a Verify of
// the output finds what does not agree with the seals.
func (x Exporter) Export(ctx context.Context, of id.Sale, out io.Writer) (*Trailer, error) {
	end := &Trailer{Type: typeEnd}
	return end, x.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Sale.Get(ctx, of)
		if ent.IsNotFound(err) {
			return ErrUnknownSale
		}
		if err != nil {
			return fmt.Errorf("read the sale: %w", err)
		}
		entries, err := readEntries(ctx, tx, of, span{uuid.Nil, uuid.Max})
		if err != nil {
			return err
		}
		positions, err := readPositions(ctx, tx, of)
		if err != nil {
			return err
		}
		byPosition(entries, positions)
		seals, err := readSeals(ctx, tx.SaleLog, of)
		if err != nil {
			return err
		}
		w := json.NewEncoder(out)
		h := Header{
			Type: typeLog, Start: startOf(row, seals), Title: row.Title, Status: string(row.Status),
			ExportedAt: x.Clock.Now().UTC(),
		}
		if h.Items, err = sums(ctx, tx, row); err != nil {
			return err
		}
		header, err := json.Marshal(h)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(slices.Clone(header), '\n')); err != nil {
			return err
		}
		c, err := newChain(h.Start)
		if err != nil {
			return err
		}
		next := 0
		for i := 0; ; i++ {
			for next < len(seals) && (i == len(entries) || seals[next].endsBefore(entries[i], positions[entries[i].ID])) {
				if err := w.Encode(seals[next]); err != nil {
					return err
				}
				next++
			}
			if i == len(entries) {
				break
			}
			text, err := c.add(entries[i])
			if err != nil {
				return err
			}
			if _, err := out.Write(append(text, '\n')); err != nil {
				return err
			}
		}
		end.Entries, end.Head, end.Header = c.entries, c.hex(), c.over(header)
		return w.Encode(end)
	})
}

func sums(ctx context.Context, tx *ent.Tx, row *ent.Sale) ([]ItemSums, error) {
	items, err := tx.SaleItem.Query().Where(saleitem.SaleID(row.ID)).Order(saleitem.ByPosition()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the items: %w", err)
	}
	list := make([]ItemSums, len(items))
	for i, it := range items {
		list[i] = ItemSums{it.ID.Public(), it.Total, it.Held, it.Sold}
		switch sale.Status(row.Status) { //nolint:exhaustive // of later statuses the stock is in the ledger
		case sale.Draft, sale.PendingApproval, sale.Rejected, sale.Cancelled:
			moved, err := readLedger(ctx, tx, it.ID)
			if err != nil {
				return nil, err
			}
			if len(moved) == 0 {
				list[i].Total = 0 // stock enters the ledger with the approval
			}
		}
	}
	return list, nil
}
