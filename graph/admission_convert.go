package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/captcha"
)

// prompts are the instructions for each kind of captcha.
var prompts = map[captcha.Kind]text{
	captcha.Text:        {"Type the characters in the picture.", "请输入图中的字符。"},
	captcha.Math:        {"Type the result of the sum in the picture.", "请输入图中算式的结果。"},
	captcha.External:    {"Complete the check.", "请完成验证。"},
	captcha.ProofOfWork: {"Your device solves a small puzzle; there is nothing to do.", "设备将自动完成验证，无需操作。"},
}

func toChallenge(ctx context.Context, c *captcha.Challenge) *model.CaptchaChallenge {
	if c == nil {
		return nil
	}
	out := &model.CaptchaChallenge{
		ID: c.ID, Kind: c.Kind, ExpiresAt: c.ExpiresAt, Prompt: prompts[c.Kind].in(ctx), Early: c.Early,
	}
	if c.Image != "" {
		out.Image = &c.Image
	}
	if c.Parameters != "" {
		out.Parameters = &c.Parameters
	}
	return out
}

func toAnswer(a *model.CaptchaAnswerInput) captcha.Answer {
	if a == nil {
		return captcha.Answer{}
	}
	return captcha.Answer{ChallengeID: a.ChallengeID, Text: a.Answer}
}

func toPath(p path.Path) *model.SeckillPath {
	if p.Token == "" {
		return nil
	}
	return &model.SeckillPath{Token: p.Token, ExpiresAt: p.ExpiresAt}
}

func toTicket(t *queue.Ticket) *model.QueueTicket {
	if t == nil {
		return nil
	}
	out := &model.QueueTicket{
		ID: t.ID, Status: t.Status, Position: toPosition(t), Source: t,
	}
	if t.Ended != "" {
		out.EndReason = &t.Ended
	}
	if t.Path != nil {
		out.Path = toPath(*t.Path)
	}
	return out
}

// toPositionedTask returns a task with its position among the orders that wait for a worker.
func toPositionedTask(ctx context.Context, p orderintake.PositionedTask) *model.OrderTask {
	out := toTask(ctx, p.Task)
	out.Position = p.Position
	return out
}

func toOrderQueue(p *orderintake.QueuePosition) *model.OrderQueue {
	if p == nil {
		return nil
	}
	return &model.OrderQueue{Ahead: p.Ahead, Estimate: toSeconds(p.Wait)}
}

func toSeconds(d *time.Duration) *int {
	if d == nil {
		return nil
	}
	seconds := int(d.Seconds())
	return &seconds
}

func toPosition(t *queue.Ticket) *model.QueuePosition {
	p := t.Position
	if p == nil {
		return nil
	}
	out := &model.QueuePosition{Ahead: p.Ahead, ChancePercent: p.Chance, EtaSeconds: toSeconds(p.Wait), UpdatedAt: t.At}
	if p.Span != nil {
		out.Wait = &model.QueueWait{FromSeconds: int(p.Span.From.Seconds()), ToSeconds: int(p.Span.To.Seconds())}
	}
	return out
}
