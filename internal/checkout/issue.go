package checkout

import (
	"context"

	"github.com/google/uuid"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/fault"
	"seckill/internal/reservation"
)

// IssueInput asks for the right to try for an item.
type IssueInput struct {
	User    uuid.UUID
	Item    uuid.UUID
	Captcha captcha.Answer
}

// IssuePath trades an answered captcha for a path. What is hopeless by this
// process's own view of the gate is refused before Redis and costs no captcha.
func (c *Checkout) IssuePath(ctx context.Context, in IssueInput) (path.Path, fault.Refusal, error) {
	item, parent, refusal, err := c.find(ctx, in.Item)
	if refusal != nil || err != nil {
		return path.Path{}, refusal, err
	}
	if o, refused := c.board.Refuse(item.ID); refused {
		_, refusal, err := c.refuse(ctx, parent, PlaceInput{User: in.User, Item: in.Item}, o)
		return path.Path{}, refusal, err
	}
	issued, refusal, err := c.paths.Issue(ctx, path.IssueInput{
		Sale: parent.ID, Item: item.ID, User: in.User, Captcha: in.Captcha, Opens: parent.StartsAt,
	})
	if limit, ok := refusal.(reservation.LimitReached); ok {
		limit.Limit = parent.PurchaseLimit
		refusal = limit
	}
	return issued, refusal, err
}
