package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/admission/path"
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
