package graph

import (
	"context"
	"slices"

	"seckill/graph/model"
	"seckill/internal/buy/sale"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

// noticeSettings returns the settings of a user as the API shows them.
func (r *Resolver) noticeSettings(ctx context.Context, user id.User) (*model.NoticeSettings, error) {
	set, err := r.Notices.Settings(ctx, user)
	if err != nil {
		return nil, err
	}
	out := &model.NoticeSettings{Offered: r.Notices.Channels(), Reaching: set.Channels,
		Choices: make([]*model.NoticeChoice, len(set.Choices)), Devices: []*model.PushDevice{}}
	for _, d := range set.Devices {
		out.Devices = append(out.Devices, &model.PushDevice{
			ID: d.ID, Label: d.Label, Endpoint: d.Endpoint, CreatedAt: d.CreatedAt, LastNoticeAt: d.SentAt,
		})
	}
	for i, c := range set.Choices {
		out.Choices[i] = &model.NoticeChoice{Kind: c.Kind, Channels: channelsOf(c), Offered: r.Notices.ChannelsOf(c.Kind)}
	}
	return out, nil
}

func channelsOf(c notice.Choice) []notice.Channel {
	channels := []notice.Channel{}
	if c.Hook {
		channels = append(channels, notice.Hook)
	}
	if c.Mail {
		channels = append(channels, notice.Mail)
	}
	if c.Push {
		channels = append(channels, notice.Push)
	}
	return channels
}

func choices(in []*model.NoticeChoiceInput) []notice.Choice {
	out := make([]notice.Choice, len(in))
	for i, c := range in {
		has := func(channel notice.Channel) bool { return slices.Contains(c.Channels, channel) }
		out[i] = notice.Choice{Kind: c.Kind, Mail: has(notice.Mail), Hook: has(notice.Hook), Push: has(notice.Push)}
	}
	return out
}

func (r *Resolver) reminder(ctx context.Context, v *sale.Sale) (*model.SaleReminder, error) {
	got, err := r.Notices.Reminder(ctx, auth.PrincipalFrom(ctx).UserID, notice.Opening{Sale: v.ID, At: v.StartsAt})
	if err != nil {
		return nil, err
	}
	return &model.SaleReminder{Set: got.Set, SentAt: got.At, Channels: got.Channels}, nil
}

// upcoming returns a sale of an input that buyers see.
func (r *Resolver) upcoming(ctx context.Context, text string) (*sale.Sale, error) {
	saleID, err := id.ParseSale(text)
	if err != nil {
		return nil, unknown("saleId")
	}
	v, err := r.Shop.Sale(ctx, saleID)
	if v, err = r.visible(ctx, v, err); err == nil && v == nil {
		err = unknown("saleId")
	}
	return v, err
}
