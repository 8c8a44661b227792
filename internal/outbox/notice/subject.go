package notice

import (
	"context"

	"github.com/google/uuid"

	"seckill/ent/order"
	"seckill/ent/sale"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Subjects implements mail.Subjects: it reads what notices are about before they are sent,
// because a notice may wait for its mail server or the operator's service.
type Subjects struct{ DB *postgres.DB }

// Holds reports whether the order is unpaid, the waitlist entry has its offer or still waits, or the sale
// will open.
func (s Subjects) Holds(ctx context.Context, kind mail.Kind, subject uuid.UUID) (bool, error) {
	switch kind {
	case mail.PaymentDeadline, mail.OrderPlaced:
		return s.DB.Ent.Order.Query().Where(order.ID(id.Order(subject)), order.StatusEQ(order.StatusPENDING_PAYMENT)).
			Exist(ctx)
	case mail.OrderReview:
		return s.DB.Ent.Order.Query().Where(order.ID(id.Order(subject)), order.StatusEQ(order.StatusPENDING_PAYMENT),
			order.ReviewEQ(order.ReviewHELD)).Exist(ctx)
	case mail.WaitlistOffer:
		return s.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ID(id.Waitlist(subject)), waitlistentry.StatusEQ(waitlistentry.StatusOFFERED)).Exist(ctx)
	case mail.DrawResult:
		return s.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ID(id.Waitlist(subject)), waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).Exist(ctx)
	case mail.SaleReminder:
		return s.DB.Ent.Sale.Query().Where(sale.ID(id.Sale(subject)), sale.StatusNEQ(sale.StatusCANCELLED)).Exist(ctx)
	default: // what an e-mail without an end is about
		return true, nil
	}
}
