package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/staff/inbox"
)

// inboxViewer returns the caller as a reader of the inbox.
func (r *Resolver) inboxViewer(ctx context.Context) (inbox.Viewer, error) {
	return r.Waiting.Viewer(ctx, auth.PrincipalFrom(ctx))
}

func toInbox(v inbox.Viewer, list inbox.List) *model.Inbox {
	out := &model.Inbox{
		TotalCount: list.Total, DecidableCount: list.Decidable, Counts: toInboxCounts(list.Counts),
		Entries: make([]*model.InboxEntry, len(list.Entries)),
	}
	for i, e := range list.Entries {
		out.Entries[i] = &model.InboxEntry{
			Kind: e.Kind, SubjectID: e.Subject, Since: e.Since, Note: unlessZero(e.Note), Quantity: unlessZero(e.Units),
			Decidable: e.Decidable(v), Source: e,
		}
	}
	return out
}

func toInboxCounts(counts []inbox.Count) []*model.InboxKindCount {
	return collect.Map(counts, func(c inbox.Count) *model.InboxKindCount {
		return &model.InboxKindCount{Kind: c.Kind, Count: c.Count, Decidable: c.Decidable, More: c.More}
	})
}

func (r *Resolver) toInboxEvent(list inbox.List, snapshot bool) *model.InboxCountEvent {
	return &model.InboxCountEvent{
		Kind: kindOf(snapshot), ServerTime: r.Shop.Now(), TotalCount: list.Total, DecidableCount: list.Decidable,
		Counts: toInboxCounts(list.Counts),
	}
}
